"""What a browser may say on the socket: one JSON object a frame, every field checked before it is used."""

from __future__ import annotations

from app.chat.errors import ChatError
from app.chat.texts import read_json

LONGEST_ID = 100


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_ID


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


# name -> (whether a value will do, what would do)
FIELDS = {
    "conversation": (_is_id, "the id of a chat"),
    "message": (_is_id, "the id of a message"),
    "base": (_is_id, "the id of a message"),
    "request": (_is_id, f"a text of 1 to {LONGEST_ID} characters"),
    "after": (_is_number, "a whole number from 0 up"),
    "text": (lambda value: isinstance(value, str), "a text"),
    "title": (lambda value: isinstance(value, str), "a text"),
    "settings": (lambda value: isinstance(value, dict), "an object"),
    "race": (_is_id, "the id of a race"),
    "max_tokens": (_is_number, "a whole number from 0 up"),
    "seed": (_is_number, "a whole number from 0 up"),
    "temperature": (lambda value: isinstance(value, int | float) and not isinstance(value, bool), "a number"),
}

# type -> (fields that it must have, fields that may be missing or null)
TYPES = {
    "open": (("conversation",), ("after",)),
    "send": (("text",), ("conversation", "request", "base", "settings")),
    "stop": (("conversation", "message"), ()),
    "regenerate": (("conversation", "message"), ("request", "settings")),
    "continue": (("conversation", "message"), ("request", "settings")),
    "edit": (("conversation", "message", "text"), ("request", "base", "settings")),
    "pick": (("conversation", "message"), ("request",)),
    "rename": (("conversation", "title"), ("request",)),
    "delete": (("conversation",), ("request",)),
    "race": (("text",), ("max_tokens", "seed", "temperature", "request")),
    "race_open": (("race",), ()),
    "race_stop": (("race",), ()),
    "ping": ((), ()),
}


def read_frame(frame: str | bytes) -> dict:
    """The type and fields of a frame, those that are missing as None. Raises ChatError."""
    if not isinstance(frame, str):
        raise ChatError("bad_json", "A frame must be text with one JSON object in it, not bytes.")
    try:
        message = read_json(frame)
    except ValueError:
        raise ChatError("bad_json", "A frame must be one JSON object; this one cannot be read.") from None
    if not isinstance(message, dict):
        raise ChatError("bad_json", "A frame must be one JSON object.")
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in TYPES:
        raise ChatError("bad_message", "There is no message type {kind}; there are {kinds}.",
                        kind=_shown(kind), kinds=", ".join(TYPES))
    required, optional = TYPES[kind]
    fields = {"type": kind}
    for name in required + optional:
        value = message.get(name)
        will_do, wanted = FIELDS[name]
        if value is None and name in optional:
            fields[name] = None
        elif value is None:
            raise ChatError("bad_message", "A message of type {kind} needs the field {field}.", kind=kind, field=name)
        elif not will_do(value):
            raise ChatError("bad_message", "The field {field} must be {wanted}, not {shown}.",
                            field=name, wanted=wanted, shown=_shown(value))
        else:
            fields[name] = value
    return fields


def request_of(frame: str | bytes) -> str | None:
    """The request id of a frame that could not be taken, so that its sender knows which it was."""
    try:
        request = read_json(frame).get("request")
    except (ValueError, AttributeError):
        return None
    return request if _is_id(request) else None


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:60] + "…"
