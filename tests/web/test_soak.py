"""Many people who act at random, and many who vanish: nothing lost, nothing mixed, nothing left behind.

The first is the short form of `python -m tests.bench.soak`.
"""

import os
import threading
from pathlib import Path

import pytest

from app.chat.store import FILE_NAME
from tests.bench.soak import soak
from tests.bench.soak_checks import Gauges, rest_of
from tests.models.tiny_llama import tiny_llama
from tests.scripted import ByteTokenizer, ScriptedModel
from tests.web.talk import Browser, Socket, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="what a process holds is read from /proc")
CONTEXT = 1500


def make_model():
    return tiny_llama(vocab_size=265, sequence_len=CONTEXT)


def test_six_people_who_act_at_random_lose_nothing_mix_nothing_and_leave_nothing_behind(serve, tmp_path):
    server = serve(make_model(), rows=4, context=CONTEXT)
    # so short a time is spent warming up, and this process has the people in it: memory says nothing here
    soaked = soak(server, os.getpid(), tmp_path / "data" / FILE_NAME, people=6, seconds=5, seed=1,
                  more_memory_bytes=2**40)
    assert soaked.faults == []
    assert soaked.records.made
    assert soaked.records.compare(make_model(), ByteTokenizer()) == []


@pytest.mark.parametrize("has_cookie", [True, False])
def test_two_hundred_sockets_opened_begun_and_killed_leave_rows_threads_and_files_as_they_were(serve, has_cookie):
    model = ScriptedModel("word " * 4)
    server = serve(model, rows=4)
    server.worker._max_queue = 200
    browser = Browser(server)
    browser.socket().ask("hi")
    before = rest_of(lambda: Gauges.of(os.getpid()), lambda gauges: False, patience_s=0.5)
    headers = {"Cookie": browser.cookie} if has_cookie else {}
    model.hold(1)
    sockets = []
    for _ in range(200):
        sockets.append(Socket(server, headers))
        sockets[-1].send("hi")
    for socket in sockets:
        socket.until("message", role="assistant")
    assert threading.active_count() > before.threads + 200
    for socket in sockets:
        socket.kill()
    model.let_go()
    assert Browser(server).socket().ask("I am the 201st")["reason"] == "stop"
    wait_until(lambda: not server.replies.publisher._live)
    pool = server.worker.snapshot().pool
    assert pool.rows_used <= pool.rows
    after = rest_of(lambda: Gauges.of(os.getpid()), lambda gauges: gauges.threads <= before.threads + 4 and gauges.files <= before.files + 4,
                    patience_s=60)
    assert after.threads <= before.threads + 4 and after.files <= before.files + 4  # the 201st still listens
    wait_until(lambda: len(server.replies.hub._outboxes) <= 2)
    server.worker.forget("nobody")  # and the engine thread finds its books in order when it rests
    assert Browser(server).get("/healthz").status == 200
