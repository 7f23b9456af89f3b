"""What streaming costs: the same reply from the engine alone, and through a socket to another process.

    .venv/bin/python -m tests.bench.streaming [--tokens 200] [--rounds 5] [--port 8000] [--model, --dtype ... as for serve]

Both ways use the one engine of this process, whose server is idle while the engine is asked directly: two
processes would differ by more than streaming costs, by where their weights happen to lie in memory. Rounds of the
two ways alternate, so that a slow minute falls on both; the figures are medians. A rate is that of all tokens
after the first, as seen by whoever receives them.
"""

from __future__ import annotations

import argparse
import json
import logging
import queue
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

import simple_websocket
from werkzeug.serving import make_server

from app import create_app
from app.engine import EngineWorker
from app.engine.messages import Finished, Request, Tokens
from app.settings import Settings, add_options

logging.getLogger("werkzeug").setLevel(logging.ERROR)
ROOT = Path(__file__).parents[2]
QUESTION = "Write a long story about a lighthouse, a storm and a dog."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, "model", "device", "dtype", "threads", "port")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--listen", action="store_true", help="be the process at the other end")
    args = parser.parse_args()
    settings = Settings.from_args(args)
    if args.listen:
        print(through_socket(settings.port, args.tokens))
        return 0
    with tempfile.TemporaryDirectory() as data, served_here(replace(settings, data=Path(data))) as parts:
        rates = {"engine": [], "socket": []}
        for _ in range(args.rounds + 1):  # the first warms both up
            rates["engine"].append(from_engine(parts.worker, parts.worker.tokenizer, args.tokens))
            listener = [sys.executable, "-m", "tests.bench.streaming", "--listen", f"--port={settings.port}", f"--tokens={args.tokens}"]
            rates["socket"].append(float(subprocess.run(listener, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout))
    engine, socket = (median(rates[way][1:]) for way in ("engine", "socket"))
    for way, rate in (("the engine alone", engine), ("through the socket", socket)):
        print(f"{way:20}{rate:8.1f} tokens/s")
    print(f"{'streaming costs':20}{100 * (1 - socket / engine):8.1f} %")
    return 0


@contextmanager
def served_here(settings: Settings):
    """The application in this process, on a threaded server; yields its parts."""
    app = create_app(settings)
    server = make_server("127.0.0.1", settings.port, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    parts = app.extensions["glasschat"]
    parts.worker.wait_ready()
    try:
        yield parts
    finally:
        server.shutdown()
        parts.close()


@contextmanager
def serving(settings: Settings, port: int, data: str):
    """A server in a process of its own, which is yielded."""
    options = [f"--model={settings.model}", f"--device={settings.device}", f"--dtype={settings.dtype}"]
    options += [f"--threads={settings.threads}"] if settings.threads else []
    options += [f"--context={settings.context}"] if settings.asked_context else []
    options += [f"--rows={settings.rows}"]
    server = subprocess.Popen([sys.executable, "-m", "app", "serve", f"--port={port}", f"--data={data}", *options],
                              cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        if not server.stdout.readline():
            sys.exit("the server did not start")
        yield server
    finally:
        server.terminate()
        server.wait()


def from_engine(worker: EngineWorker, tokenizer, max_tokens: int) -> float:
    ids = tokenizer.render_for_completion({"messages": [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ""}]})
    events: queue.SimpleQueue = queue.SimpleQueue()
    worker.submit(Request("reply", f"at {time.time()}", tuple(ids), temperature=0.0, max_tokens=max_tokens), events.put)
    clock = Clock()
    while not isinstance(event := events.get(), Finished):
        if isinstance(event, Tokens):
            clock.count(len(event.tokens))
    return clock.rate()


def through_socket(port: int, max_tokens: int) -> float:
    socket = simple_websocket.Client(f"ws://127.0.0.1:{port}/ws")
    socket.send(json.dumps({"type": "send", "conversation": None, "text": QUESTION, "request": "bench",
                            "settings": {"temperature": 0, "max_tokens": max_tokens}}))
    clock = Clock()
    while True:
        event = json.loads(socket.receive())
        if event["type"] == "token":
            clock.count(len(event["tokens"]))
        elif event["type"] == "done":
            socket.close()
            return clock.rate()
        elif event["type"] == "error":
            sys.exit(f"the server said: {event['text']}")


class Clock:
    """Tokens a second, from the first on."""

    def __init__(self):
        self.tokens, self.first_at, self.last_at = 0, None, None

    def count(self, tokens: int) -> None:
        self.last_at = time.perf_counter()
        if self.first_at is None:
            self.first_at = self.last_at
        else:
            self.tokens += tokens

    def rate(self) -> float:
        return self.tokens / (self.last_at - self.first_at)


if __name__ == "__main__":
    sys.exit(main())
