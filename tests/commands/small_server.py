"""The server of `serve` around a page of one line, for the tests of starting and stopping.

    python -m tests.commands.small_server PORT CONTEXT [FAILURE [BYTES]]

With FAILURE the model cannot be loaded; where that is empty, the cache may take BYTES.
"""

import sys
import time
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


if __name__ == "__main__":
    SmallServer.failure = sys.argv[3] if len(sys.argv) > 3 else None
    SmallServer.cache_bytes = int(sys.argv[4]) if len(sys.argv) > 4 else None
    sys.exit(SmallServer(Settings(port=int(sys.argv[1]), context=int(sys.argv[2]))).serve())
