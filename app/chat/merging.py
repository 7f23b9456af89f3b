"""What the engine tells of one reply, in fewer events: tokens that came together are told together."""

from __future__ import annotations

from app.engine.messages import Finished, Tokens


def merged(events: list[object]) -> list[object]:
    """Tokens that follow each other as one event."""
    fewer: list[object] = []
    for event in events:
        if isinstance(event, Tokens) and fewer and isinstance(fewer[-1], Tokens):
            fewer[-1] = Tokens(event.reply, fewer[-1].tokens + event.tokens, event.counts)
        else:
            fewer.append(event)
    assert all(not isinstance(event, Finished) for event in fewer[:-1]), "a reply went on after its end"
    return fewer
