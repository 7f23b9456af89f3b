"""What is stored: a conversation, its messages, and what happened to its memory."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from enum import StrEnum


def new_id() -> str:
    """128 random bits: nobody can guess the address of somebody else's chat."""
    return secrets.token_urlsafe(16)


@dataclass
class Conversation:
    """`imported_s` is when it was taken in from a file, None of one that began here."""
    owner: str
    title: str
    id: str = field(default_factory=new_id)
    system: str | None = None
    seq: int = 0
    created_s: float = field(default_factory=time.time)
    changed_s: float = field(default_factory=time.time)
    imported_s: float | None = None


class Choice(StrEnum):
    """How an answer stands among those to the same question."""
    ONLY = "only"      # there is no other
    OPEN = "open"      # none is picked yet: the chat goes on with the first
    PICKED = "picked"  # the chat goes on with this one
    FOLDED = "folded"  # another was picked: stored, but not part of the conversation


@dataclass
class Message:
    """`ids` are the tokens that stand for it in a prompt: of a user's message all that its turn adds, of a
    reply what the model wrote and was given. None: to be encoded from its text."""
    conversation: str
    place: int
    role: str
    reply_to: str | None = None
    text: str = ""
    id: str = field(default_factory=new_id)
    segments: list[dict] = field(default_factory=list)
    ids: list[int] | None = None
    masks: list[int] | None = None
    fingerprint: str | None = None
    reason: str | None = None
    error: str | None = None
    stats: dict | None = None
    settings: dict | None = None
    request: str | None = None
    left_out: bool = False
    answer: int = 0             # which of the answers to its question, from 0 on
    choice: str = Choice.ONLY.value
    created_s: float = field(default_factory=time.time)

    @property
    def is_reply(self) -> bool:
        return self.role == "assistant"

    @property
    def row_name(self) -> str:
        """The engine's name for the row of a reply while the choice is open: the first is in the row of the
        conversation itself, the others in rows of their own."""
        return self.conversation if self.answer == 0 else f"{self.conversation}/{self.id}"

    @property
    def is_beside(self) -> bool:
        """Whether it stands beside the conversation: another answer to the same question is part of it."""
        return self.choice == Choice.FOLDED or (self.choice == Choice.OPEN and self.answer > 0)


def conversation_of_row(row_name: str) -> str:
    return row_name.partition("/")[0]


@dataclass
class MemoryEvent:
    """A sentence about what happened to the memory of a conversation, with its figures."""
    conversation: str
    code: str
    text: str
    figures: dict = field(default_factory=dict)
    created_s: float = field(default_factory=time.time)
