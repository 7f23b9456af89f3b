"""Conversations as pages and snapshots show them: plain dictionaries, the same for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from app.chat.conversation import Choice, Message
from app.chat.live_reply import LiveReply
from app.chat.parts import Parts


def message_view(message: Message, live: Sequence[LiveReply] = (), edge: str = "none") -> dict:
    """One message. `live` are the replies being written, of which this may be one. `others` are further answers to
    the same question, which `message_views` fills in."""
    view = {"id": message.id, "role": message.role, "reply_to": message.reply_to, "request": message.request,
            "state": "done", "reason": message.reason, "error": message.error, "stats": message.stats,
            "text": message.text, "html": escape(message.text), "parts": [], "tail": "",
            "left_out": message.left_out, "edge": edge}
    if not message.is_reply:
        return view
    own = _live_of(message, live)
    parts = own.parts if own else Parts.of(message.segments)
    state = "writing" if own or message.reason is None else "done" if message.reason == "stop" else message.reason
    return view | {"state": state, "parts": list(parts.parts), "tail": parts.tail, "html": Markup(parts.html),
                   "text": own.transcript.text if own else message.text, "answer": message.answer,
                   "choice": message.choice, "seed": (message.settings or {}).get("seed"), "others": []}


def message_views(messages: list[Message], beside: list[Message], live: Sequence[LiveReply],
                  cached_tokens: Mapping[str, int]) -> list[dict]:
    """All messages, each with its edge: how the memory came by it. `beside` are the answers that the conversation
    does not go on with; `cached_tokens` those in each row."""
    views, position = [], 0
    last_turn = messages[-2:]
    for message in messages:
        position += 0 if message.left_out else len(message.ids or [])
        # the last token of the last reply is never in the memory yet
        remembered = cached_tokens.get(message.conversation, 0) + (message is messages[-1])
        is_remembered = _live_of(message, live) or (not message.left_out and 0 < position <= remembered)
        if not is_remembered:
            edge = "none"
        elif message not in last_turn:
            edge = "reused"
        else:
            edge = "written" if message.is_reply else "read"
        views.append(message_view(message, live, edge))
        if message.is_reply:
            views[-1]["others"] = [_view_beside(other, live, cached_tokens) for other in beside
                                   if other.place == message.place]
    return views


def _view_beside(message: Message, live: Sequence[LiveReply], cached_tokens: Mapping[str, int]) -> dict:
    has_row = message.choice == Choice.OPEN and (_live_of(message, live) or message.row_name in cached_tokens)
    return message_view(message, live, "written" if has_row else "none")


def _live_of(message: Message, live: Sequence[LiveReply]) -> LiveReply | None:
    return next((reply for reply in live if reply.message.id == message.id), None)


def message_event(message: Message, live: Sequence[LiveReply] = (), edge: str = "none") -> dict:
    """As it is told on the socket when a turn begins or a reply goes on."""
    view = message_view(message, live, edge)
    wanted = ("id", "role", "html", "reply_to", "text", "request", "parts", "tail", "state", "edge", "answer", "choice",
              "seed")
    return {"type": "message", **{name: view[name] for name in wanted if name in view}}
