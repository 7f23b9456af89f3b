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
    """All messages, each with its edge: see `edges_of`. `beside` are the answers that the conversation
    does not go on with; `cached_tokens` those in each row."""
    views = []
    edges = edges_of(messages, live, cached_tokens.get(messages[0].conversation, 0)) if messages else {}
    for message in messages:
        views.append(message_view(message, live, edges[message.id]))
        if message.is_reply:
            views[-1]["others"] = [_view_beside(other, live, cached_tokens) for other in beside
                                   if other.place == message.place]
    return views


def edges_of(messages: Sequence[Message], live: Sequence[LiveReply], cached_tokens: int) -> dict[str, str]:
    """How the memory came by each message when the last reply was made, by its id:

        reused   it was remembered         read   it was read (anew, or for the first time)
        written  the model wrote it then   none   it is not remembered

    A reply of which most was remembered counts as such: its last token is always read with the next turn. Of a question
    it has to be all but one token: one that was changed still shares its beginning, the system prompt, with the old one.
    """
    edges, position = {}, 0
    last = messages[-1] if messages else None
    own = _live_of(last, live) if last else None
    if own and own.cached_tokens is not None:
        cached_tokens = own.cached_tokens
    all_reused = _reused_tokens(last, own, cached_tokens) if last else 0
    for message in messages:
        start = position
        position += 0 if message.left_out else len(message.ids or [])
        # the last token of a reply comes into the memory only with the next turn
        is_cached = not message.left_out and start < position <= cached_tokens + 1
        if message is last and (own.request.use_cache if own else is_cached):
            edges[message.id] = "written" if message.is_reply else "read"
        elif not is_cached:
            edges[message.id] = "none"
        else:
            reused = all_reused - start
            enough = (position - start) // 2 + 1 if message.is_reply else position - start - 1
            edges[message.id] = "reused" if reused >= enough else "read"
    return edges


def _reused_tokens(last: Message, own: LiveReply | None, cached_tokens: int) -> int:
    """How many of the first tokens were remembered when the last reply was made. One that has read nothing yet, or
    reads for itself alone, without the cache, has left the memory as it was."""
    if own:
        uses_cache, reused, read = own.request.use_cache, own.counts.reused, own.counts.read
    else:
        stats = last.stats or {}
        uses_cache, reused, read = (stats.get(name) for name in ("use_cache", "reused_tokens", "read_tokens"))
    return reused if uses_cache and read else cached_tokens


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
