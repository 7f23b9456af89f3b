"""Conversations as pages and snapshots show them: plain dictionaries, the same for both."""

from __future__ import annotations

from markupsafe import Markup, escape

from app.chat.conversation import Message
from app.chat.live_reply import LiveReply
from app.chat.parts import Parts


def message_view(message: Message, live: LiveReply | None = None, edge: str = "none") -> dict:
    """One message. `live` is the reply being written, if this is it."""
    is_live = live is not None and live.message.id == message.id
    view = {"id": message.id, "role": message.role, "reply_to": message.reply_to, "request": message.request,
            "state": "done", "reason": message.reason, "error": message.error, "stats": message.stats,
            "text": message.text, "html": escape(message.text), "parts": [], "tail": "",
            "left_out": message.left_out, "edge": edge}
    if not message.is_reply:
        return view
    parts = live.parts if is_live else Parts.of(message.segments)
    state = "writing" if is_live or message.reason is None else "done" if message.reason == "stop" else message.reason
    return view | {"state": state, "parts": list(parts.parts), "tail": parts.tail, "html": Markup(parts.html),
                   "text": live.transcript.text if is_live else message.text}


def message_views(messages: list[Message], live: LiveReply | None, cached_tokens: int) -> list[dict]:
    """All messages, each with its edge: how the memory came by it."""
    views, position = [], 0
    last_turn = messages[-2:]
    for message in messages:
        position += 0 if message.left_out else len(message.ids or [])
        is_live = live is not None and live.message.id == message.id
        # the last token of the last reply is never in the memory yet
        is_remembered = is_live or (not message.left_out and 0 < position <= cached_tokens + (message is messages[-1]))
        if not is_remembered:
            edge = "none"
        elif message not in last_turn:
            edge = "reused"
        else:
            edge = "written" if message.is_reply else "read"
        views.append(message_view(message, live, edge))
    return views


def message_event(message: Message, live: LiveReply | None = None, edge: str = "none") -> dict:
    """As it is told on the socket when a turn begins or a reply goes on."""
    view = message_view(message, live, edge)
    wanted = ("id", "role", "html", "reply_to", "text", "request", "parts", "tail", "state", "edge")
    return {"type": "message", **{name: view[name] for name in wanted}}
