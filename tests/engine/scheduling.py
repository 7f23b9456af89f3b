"""Replies of a tiny model through the scheduler, and what each would be if nobody else had ever been served."""

from __future__ import annotations

from app.engine import Engine
from app.engine.messages import Finished, Request, Token, Tokens
from tests.engine.tiny import END, EXPRESSION_END, EXPRESSION_START, PlainTokenizer, TinyConfig, TinyModel

TOKENIZER = PlainTokenizer()


def tiny(sequence_len=96, seed=3):
    model = TinyModel(TinyConfig(sequence_len=sequence_len), seed)
    model.head[[END]] *= 1.6  # so that replies end by themselves now and then
    model.head[[EXPRESSION_START, EXPRESSION_END]] *= 1.3
    return model


def fresh_run(model, request):
    """The reply as it would be if nobody else had ever been served."""
    engine = Engine(model, TOKENIZER)
    return [(column[0], masks[0]) for column, masks in engine.generate(
        list(request.prompt_ids), max_tokens=request.max_tokens, temperature=request.temperature,
        top_k=request.top_k, seed=request.seed)]


class Listener(list):
    """The events of one reply, in order."""
    @property
    def finished(self) -> Finished | None:
        return self[-1] if self and isinstance(self[-1], Finished) else None

    @property
    def tokens(self) -> list[Token]:
        return [token for event in self if isinstance(event, Tokens) for token in event.tokens]


def submit(scheduler, reply, prompt, conversation=None, **settings):
    listener = Listener()
    request = Request(reply, conversation or reply, tuple(prompt), **{"temperature": 0.0, "max_tokens": 20} | settings)
    scheduler.submit(request, listener.append)
    listener.request = request
    return listener


def run(scheduler, *listeners):
    for _ in range(10_000):
        if all(listener.finished for listener in listeners):
            return
        scheduler.step()
        scheduler.retention.check()
    raise AssertionError("10,000 steps were not enough")
