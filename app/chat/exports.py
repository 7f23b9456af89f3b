"""A chat as a file: one JSON object that holds all there is to know of it, but for whose it is.

    {"format": "glasschat-conversation", "version": 1,
     "title": "…", "system": null, "created_s": 1790000000.0,
     "messages": [{
        "id", "reply_to",                 names within this file
        "place", "role",                  0 user, 1 assistant, 2 user, …
        "answer", "choice",               of several answers to one question: which, and whether the chat goes on with it
        "text",                           of a question as it was typed; of a reply its prose
        "segments",                       of a reply: its prose and tool calls, in order
        "ids", "masks", "fingerprint",    its tokens, 1 sampled and 0 put in, and the tokenizer that they belong to
        "reason", "error", "stats", "settings", "left_out", "created_s",
        "timeline",                       when it was read and written: see timeline.py; null where that is not known
        "chances"                         how likely each token was: see chance_records.py, in base64; null likewise
     }, …],
     "events": [{"code", "text", "figures", "created_s"}, …]}     what happened to its memory

`imports.py` reads the same. A field that is added keeps the version; one that changes its meaning makes a new one.
"""

from __future__ import annotations

import base64

from app.chat.conversation import Conversation, MemoryEvent, Message

FORMAT, VERSION = "glasschat-conversation", 1
MESSAGE_FIELDS = ("id", "reply_to", "place", "role", "answer", "choice", "text", "segments", "ids", "masks", "fingerprint",
                  "reason", "error", "stats", "settings", "left_out", "created_s")
EVENT_FIELDS = ("code", "text", "figures", "created_s")


def export(conversation: Conversation, messages: list[Message], events: list[MemoryEvent],
           timelines: dict[str, list[dict]], chances: dict[str, bytes]) -> dict:
    """`messages` are all, those beside the conversation too; `timelines` and `chances` go by their ids."""
    in_order = sorted(messages, key=lambda message: (message.place, message.answer))
    return {
        "format": FORMAT, "version": VERSION,
        "title": conversation.title, "system": conversation.system, "created_s": conversation.created_s,
        "messages": [{**{name: getattr(message, name) for name in MESSAGE_FIELDS},
                      "timeline": timelines.get(message.id), "chances": _text(chances.get(message.id))}
                     for message in in_order],
        "events": [{name: getattr(event, name) for name in EVENT_FIELDS} for event in events],
    }


def _text(records: bytes | None) -> str | None:
    return None if records is None else base64.b64encode(records).decode()
