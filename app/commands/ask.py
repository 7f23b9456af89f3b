"""`python -m app ask "TEXT"`: one answer in the terminal, as it is written.

The answer goes to standard output, everything about it to standard error. The same engine and the same
transcript as the page's; no server and no database.
"""

from __future__ import annotations

import argparse
import json
import queue
import signal
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.commands import FAILED, CommandError, say
from app.commands.loading import check_model_path, load, quiet_about_sentences
from app.settings import Settings, add_options

NAME = "ask"  # of the one conversation and the one reply there are
NO_TEXT = 'there is nothing to answer: give a question, as in: python -m app ask "What is the capital of Japan?"'
ENDINGS = {
    "length": "the answer was cut at {max_tokens} tokens; --max-tokens allows more",
    "context_full": "the answer was cut: question and answer fill all {context} tokens of the context",
    "cancelled": "stopped",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="*", help="the question, in quotation marks; - reads it from standard input")
    add_options(parser, "model", "adapter", "device", "dtype", "threads", "context", "system", "temperature", "top_k", "max_tokens", "seed")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead, when the answer is complete")
    parser.add_argument("--no-cache", action="store_true",
                        help="the reference way: compute everything anew for each token, to compare with")


def run(args: argparse.Namespace) -> int:
    text = _question(args.text)
    settings = Settings.from_args(args)
    check_model_path(settings)
    quiet_about_sentences()
    asking = Asking(settings, use_cache=not args.no_cache)
    try:
        return asking.as_json(text) if args.json else asking.in_the_terminal(text)
    finally:
        asking.worker.stop()


def _question(words: list[str]) -> str:
    if len(words) > 1:
        raise CommandError(f"more than one text was given; put the question in quotation marks: \"{' '.join(words)}\"")
    text = sys.stdin.read() if words == ["-"] else "".join(words)
    if not text.strip():
        raise CommandError(NO_TEXT)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # bytes that are no text


class Asking:
    """One question to a worker of its own."""

    def __init__(self, settings: Settings, use_cache: bool):
        from app.engine import EngineWorker

        self.settings, self.use_cache = settings, use_cache
        self.worker = EngineWorker(self._load, rows=1, context=settings.context, warm_up=False)
        self.problem: Exception | None = None  # why the model could not be loaded
        self.request = self.finished = None
        self.stopped = False  # by the person, with Ctrl-C

    def _load(self):
        try:
            return load(self.settings)
        except Exception as error:
            self.problem = error
            raise

    def in_the_terminal(self, text: str) -> int:
        from app.chat.transcript import Transcript
        from app.engine.messages import ToolCall, ToolState

        transcript = None
        for event in self._events(text):
            transcript = transcript or Transcript(self.worker.tokenizer)
            shown = visible(transcript.take(event))
            if isinstance(event, ToolCall) and event.state is not ToolState.WRITING:
                shown += tool_line(event)
            sys.stdout.write(shown)
            sys.stdout.flush()
        print()
        if ending := ENDINGS.get(self.finished.reason):
            say("[" + ending.format(max_tokens=self.request.max_tokens, context=self.worker.snapshot().context) + "]")
        if sys.stderr.isatty():
            say(self._figures())
        return self._status()

    def as_json(self, text: str) -> int:
        from app.chat.numbers import cache_numbers, last_reply_numbers, reply_stats
        from app.chat.transcript import Transcript

        events = list(self._events(text))
        transcript = Transcript(self.worker.tokenizer)
        for event in events:
            transcript.take(event)
        self.worker.stop()  # so that the snapshot is of the end
        finished = self.finished
        print(json.dumps({
            "text": transcript.text, "segments": transcript.as_json(), "finish_reason": finished.reason,
            "token_ids": finished.ids, "masks": finished.masks, "stats": reply_stats(self.request, finished),
            "cache": cache_numbers(self.worker.snapshot(), finished.counts.cached, last_reply_numbers(finished.counts)),
        }, ensure_ascii=False))
        return self._status()

    def _events(self, text: str) -> Iterator[object]:
        """Ask, and yield events until the reply is finished. Ctrl-C stops the reply, which then still finishes."""
        from app.engine.messages import Finished

        events: queue.SimpleQueue = queue.SimpleQueue()
        self.worker.start()
        self.worker.wait_ready()
        if self.problem is not None:
            raise self.problem
        self.request = self._request(text)
        try:
            self.worker.submit(self.request, events.put)
        except (ValueError, RuntimeError) as error:  # does not fit: the sentence says why
            raise CommandError(str(error)) from None
        with first_ctrl_c(self._stop):
            while self.finished is None:
                event = events.get()
                if isinstance(event, Finished):
                    self.finished = event
                yield event

    def _stop(self) -> None:
        self.stopped = True
        self.worker.cancel(NAME)

    def _request(self, text: str):
        from app.chat.reply_settings import ReplySettings
        from app.engine.messages import Request

        asked = ReplySettings.defaults(self.settings, self.worker.model).with_seed()
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": ""}]
        if asked.system is not None:
            messages.insert(0, {"role": "system", "content": asked.system})
        prompt_ids = tuple(self.worker.tokenizer.render_for_completion({"messages": messages}))
        return Request(NAME, NAME, prompt_ids, asked.temperature, asked.top_k, asked.max_tokens, asked.seed, self.use_cache)

    def _status(self) -> int:
        if self.finished.reason == "error":
            raise CommandError(self.finished.error or "the engine failed", FAILED)
        return 130 if self.stopped else 0

    def _figures(self) -> str:
        counts, timing = self.finished.counts, self.finished.timing
        figures = [f"{counts.read} tokens read, {counts.written} written"]
        if counts.forced:
            figures.append(f"{counts.forced} put in by the calculator")
        if timing.time_to_first_token_s is not None:
            figures.append(f"{timing.time_to_first_token_s:.2f} s to the first")
        if timing.write_tokens_per_s is not None:
            figures.append(f"{timing.write_tokens_per_s:.0f} tokens/s")
        if self.use_cache:
            figures.append(f"{counts.cached} remembered in {counts.cached * self.worker.snapshot().model.bytes_per_token:,} bytes")
        return "[" + ", ".join(figures) + f", seed {self.finished.seed}]"


@contextmanager
def first_ctrl_c(stop: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C calls `stop`, whatever is being done at that moment; a second one is as always."""
    def stop_once(number, frame):
        signal.signal(signal.SIGINT, before)
        stop()

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:  # as of what runs in the background of a shell
        signal.signal(signal.SIGINT, stop_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def tool_line(call) -> str:
    """A tool call as it stands in the text."""
    expression = visible(call.expression)
    if call.state == "done":
        return f"[calculator: {expression} = {visible(call.result)}]"
    if call.state == "refused":
        return f"[calculator: {expression} was refused: {call.reason}]"
    return f"[calculator: {expression} was not finished]"


def visible(text: str) -> str:
    """What a model writes must not steer the terminal: control characters are spelled out."""
    return "".join(f"\\x{ord(c):02x}" if unicodedata.category(c) == "Cc" and c not in "\n\t" else c for c in text)
