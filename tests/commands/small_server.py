"""The server of `serve` around a page of one line, for the tests of starting and stopping.

    python -m tests.commands.small_server PORT CONTEXT [FAILURE [BYTES [SIGNAL]]]

With FAILURE the model cannot be loaded; where that is empty, the cache may take BYTES. With SIGNAL it gets that one
while it hands the first connection to its threads.
"""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from flask import Flask

from app.commands.loading import quiet_about_sentences
from app.commands.serve import Server
from app.settings import Settings


class SmallServer(Server):
    failure = cache_bytes = None

    def load(self):
        from app.engine import EngineWorker
        from tests.scripted import ByteTokenizer, ScriptedModel

        def load_model():
            if self.failure:
                raise ValueError(self.failure)
            return ScriptedModel("Hello.", sequence_len=4096), ByteTokenizer()

        page = Flask(__name__)
        quiet_about_sentences()
        worker = EngineWorker(load_model, rows=1, context=self.settings.context, cache_bytes=self.cache_bytes)
        page.extensions["glasschat"] = SimpleNamespace(worker=worker, close=lambda: (worker.stop(), print("closed", flush=True)))
        page.add_url_rule("/", "page", view_func=lambda: "a line")
        page.add_url_rule("/wait", "wait", view_func=lambda: time.sleep(600))  # as an open socket does
        worker.start()
        return page


def send_while_a_connection_is_handed_over(number: int) -> None:
    start_thread = ThreadPoolExecutor._adjust_thread_count  # called with the pool's lock held

    def start_thread_and_send(pool) -> None:
        start_thread(pool)
        os.kill(os.getppid(), number)
        time.sleep(1)  # the signal comes in the middle of it

    ThreadPoolExecutor._adjust_thread_count = start_thread_and_send


if __name__ == "__main__":
    failure, cache_bytes, number = (sys.argv[3:] + ["", "", ""])[:3]
    SmallServer.failure = failure
    SmallServer.cache_bytes = int(cache_bytes) if cache_bytes else None
    if number:
        send_while_a_connection_is_handed_over(int(number))
    sys.exit(SmallServer(Settings(port=int(sys.argv[1]), context=int(sys.argv[2]))).serve())
