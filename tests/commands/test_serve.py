"""The server as a process: it says when it is ready, stops when asked, and fails in a sentence."""

import http.client
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.chat.fitting import longest_prompt
from app.settings import Settings
from tests.free_port import free_port
from tests.scripted import ByteTokenizer

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300  # a busy machine is slow to start Python and PyTorch


@pytest.fixture
def start():
    """start(context, failure) -> port, process. Ended after the test whatever happens."""
    started = []

    def start(context="2048", *failure):
        port = free_port()
        process = subprocess.Popen([sys.executable, "-m", "tests.commands.small_server", str(port), context, *failure], cwd=ROOT,
                                   text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        return port, process

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def test_it_prints_its_address_once_ready_and_answers_there(start):
    port, process = start()
    assert process.stdout.readline() == f"Glasschat is ready: http://127.0.0.1:{port}/  (Ctrl-C stops it)\n"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", "/")
    assert connection.getresponse().read() == b"a line"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_when_asked_even_with_open_sockets_and_closes_what_it_holds(start, how):
    port, process = start()
    process.stdout.readline()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", "/wait")  # which is never answered
    connection_is_open = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection_is_open.request("GET", "/")
    connection_is_open.getresponse().read()
    process.send_signal(how)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (0, "closed\n", "")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_it_stops_when_the_signal_comes_while_a_connection_is_handed_to_its_threads(start, how):
    port, process = start("2048", "", "", str(int(how)))
    process.stdout.readline()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.connect()
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (0, "closed\n", "")


def test_a_model_that_cannot_be_loaded_ends_it_with_a_sentence(start):
    _, process = start("2048", "model.gguf is cut short")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2 and "ready" not in out
    assert err.splitlines()[-1] == "glasschat: model.gguf is cut short"


def test_a_context_that_the_model_does_not_have_ends_it_with_a_sentence(start):
    _, process = start("5000")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2 and "ready" not in out
    assert err == 'glasschat: --context is "5000"; allowed: at most 4096 with this model\n'


def test_a_context_in_which_no_question_has_room_ends_it_with_a_sentence(start):
    _, process = start("5")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2 and "ready" not in out
    shortest = len(ByteTokenizer().render_for_completion({"messages": [
        {"role": "user", "content": "?"}, {"role": "assistant", "content": ""}]}))
    least = int(re.search("at least ([0-9]+) with this model", err)[1])
    assert longest_prompt(least, Settings.max_tokens) >= shortest > longest_prompt(least - 1, Settings.max_tokens)
    assert err.startswith('glasschat: --context is "5"; allowed: at least') and err.count("\n") == 1


def test_a_cache_in_which_nothing_has_room_ends_it_with_a_sentence_alone(start):
    _, process = start("2048", "", "1000")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2 and "ready" not in out
    assert err.startswith("glasschat: the cache may take 1,000 bytes, but") and err.count("\n") == 1
