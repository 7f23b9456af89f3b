"""A conversation on its way to token ids: what is read from it, and the ids with their training mask.

Every family's chat format is written with these two: `read_conversation` checks the shape of what was
given, `Rendering` collects the ids. This module must never know a family's marks, nor change its input.

    {"messages": [{"role": "system"|"user"|"assistant", "content": TEXT or, for an assistant, PARTS}, ...]}
    PARTS = [{"type": "text"|"python"|"python_output", "text": TEXT}, ...]

A python part is what the model asks of the calculator, a python_output part what it was answered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

PART_TYPES = ("text", "python", "python_output")


class ConversationError(ValueError):
    """A conversation that cannot be rendered. The message is a sentence for a person."""


class Turn(NamedTuple):
    role: str                     # "user" or "assistant"
    parts: list[tuple[str, str]]  # (type, text); a user's is one text


def read_conversation(conversation: dict) -> tuple[str | None, list[Turn]]:
    """The system text, or None, and the turns: user and assistant by turns, a user first.

    Raises ConversationError for anything else.
    """
    messages = conversation.get("messages") if isinstance(conversation, dict) else None
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise ConversationError("A conversation is a list of messages, each with a role and a content.")
    system = None
    if messages and messages[0].get("role") == "system":
        system = _text_of(messages[0], 0)
        messages = messages[1:]
    if not messages:
        raise ConversationError("The conversation is empty: it needs at least one message of a user.")
    turns = []
    for index, message in enumerate(messages):
        expected = "assistant" if index % 2 else "user"
        role = message.get("role")
        if role != expected:
            raise ConversationError(f"Message {index + 1} must be the {expected}'s, not {role!r}: "
                                    "user and assistant take turns, and the user begins.")
        parts = _parts_of(message, index) if role == "assistant" else [("text", _text_of(message, index))]
        turns.append(Turn(role, parts))
    return system, turns


def _text_of(message: dict, index: int) -> str:
    content = message.get("content")
    if not isinstance(content, str):
        raise ConversationError(f"The content of message {index + 1} ({message.get('role')}) must be text.")
    return content


def _parts_of(message: dict, index: int) -> list[tuple[str, str]]:
    content = message.get("content")
    if isinstance(content, str):
        return [("text", content)]
    if not isinstance(content, list):
        raise ConversationError(f"The content of message {index + 1} must be text or a list of parts.")
    parts = []
    for part in content:
        kind, text = (part.get("type"), part.get("text")) if isinstance(part, dict) else (None, None)
        if kind not in PART_TYPES or not isinstance(text, str):
            raise ConversationError(f"Message {index + 1} has a part that is not known: its type must be one of "
                                    f"{', '.join(PART_TYPES)} and its text a string.")
        parts.append((kind, text))
    return parts


class Rendering:
    """Ids in the making, each with a mask: 1 where the assistant itself writes the token, else 0."""

    def __init__(self):
        self.ids: list[int] = []
        self.mask: list[int] = []

    def add(self, ids: Iterable[int], mask: int) -> None:
        before = len(self.ids)
        self.ids.extend(ids)
        self.mask.extend([mask] * (len(self.ids) - before))
