"""A conversation as the token ids that the model reads.

A prompt is put together from the ids that are stored with each message, never from text that is encoded
again: the same text can encode to other ids than the model wrote, and then nothing after that point
could be reused. Only what is new is encoded.

    stored with:  question 1              reply 1       question 2                         reply 2
                  [bos user .. asst]      [ .. end]     [(end) user .. end asst]           [ .. ]
                  all up to where the     what was      all between the last reply's ids
                  model begins to write   written       and where the model begins again

This works with any tokenizer of the contract. This module must never store anything, nor read settings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.chat.conversation import Message
from app.chat.transcript import special_id


class _NotAContinuationError(Exception):
    """This tokenizer lays out the beginning of a conversation in another way once there is more of it."""


@dataclass
class Prompt:
    """`ids_by_message` are the ids of each message, to be stored; `encoded` the messages that had none."""
    ids: list[int]
    ids_by_message: dict[str, list[int]]
    encoded: list[Message]


class PromptBuilder:
    """Builds prompts with one tokenizer. `system` is the system prompt, None for the model's own."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._end = special_id(tokenizer, "<|assistant_end|>")
        self.fingerprint = fingerprint_of(tokenizer)

    def build(self, messages: list[Message], system: str | None) -> Prompt:
        """The prompt of these messages, a user's first. Ends where the model begins to write: after a user's
        message, or inside of a reply that goes on."""
        try:
            return self._build_from_stored_ids(messages, system)
        except _NotAContinuationError:
            *before, last = messages
            ids = self._render_for_reply(before if last.is_reply else messages, system)
            return Prompt(ids + (last.ids or [] if last.is_reply else []), {}, [])

    def _build_from_stored_ids(self, messages: list[Message], system: str | None) -> Prompt:
        ids_by_message: dict[str, list[int]] = {}
        encoded: list[Message] = []
        for index, message in enumerate(messages):
            ids = message.ids if self.knows(message) else None
            if ids is None:
                before = messages[:index]
                last_ids = ids_by_message[before[-1].id] if before else []
                ids = self._encode_reply(before, message, system) if message.is_reply \
                    else self._encode_question(before, message, system, last_ids)
                encoded.append(message)
            ids_by_message[message.id] = self.without_foreign_end(ids) if message.is_reply else ids
        return Prompt([id for ids in ids_by_message.values() for id in ids], ids_by_message, encoded)

    def knows(self, message: Message) -> bool:
        """Whether its ids are this tokenizer's. Those of a chat that was taken in from a file may only say so."""
        is_marked = message.fingerprint == self.fingerprint
        return is_marked and max(message.ids or (), default=0) < self._tokenizer.get_vocab_size()

    def _encode_question(self, before: list[Message], message: Message, system: str | None,
                         last_ids: list[int]) -> list[int]:
        """All that the turn of a user's message adds between the ids so far and where the model begins. What was said
        before does not matter for that, so a long chat is not encoded once more."""
        before = [replace(earlier, text=".", segments=[]) for earlier in before]
        whole = self._render_for_reply([*before, message], system)
        if not before:
            return whole
        past = self._render(before, system)
        if self._end is None or self._end not in past or whole[:len(past)] != past:
            raise _NotAContinuationError
        since_end = past[len(past) - past[::-1].index(self._end) - 1:]  # the last reply's end mark, and what follows it
        is_ended = bool(last_ids) and last_ids[-1] == self._end
        return since_end[is_ended:] + whole[len(past):]

    def _encode_reply(self, before: list[Message], message: Message, system: str | None) -> list[int]:
        """A reply again from its text, up to its end mark."""
        opening = self._render_for_reply(before, system)
        ids = self._render([*before, message], system)[len(opening):]
        if self._end is not None and self._end in ids:
            ids = ids[:len(ids) - ids[::-1].index(self._end)]
        return ids

    def without_foreign_end(self, ids: list[int]) -> list[int]:
        """A family may end a reply with another token than its end mark; inside of a conversation that is
        a token the model was never shown."""
        ends = getattr(self._tokenizer, "end_token_ids", None) or {self._tokenizer.get_bos_token_id()}
        return ids[:-1] if ids and ids[-1] in ends and ids[-1] != self._end else ids

    def _render(self, messages: list[Message], system: str | None) -> list[int]:
        return self._with_or_without_parts(lambda as_parts: self._tokenizer.render_conversation(
            {"messages": _contents(messages, system, as_parts)})[0])

    def _render_for_reply(self, messages: list[Message], system: str | None) -> list[int]:
        placeholder = {"role": "assistant", "content": ""}
        return self._with_or_without_parts(lambda as_parts: self._tokenizer.render_for_completion(
            {"messages": [*_contents(messages, system, as_parts), placeholder]}))

    @staticmethod
    def _with_or_without_parts(render) -> list[int]:
        """Tool calls as parts; as plain text for a family that has no tool."""
        try:
            return list(render(True))
        except (KeyError, ValueError, TypeError):
            return list(render(False))


def fingerprint_of(tokenizer) -> str:
    """What stored ids are marked with. A tokenizer without a fingerprint is told by what it looks like."""
    own = getattr(tokenizer, "fingerprint", None)
    return own or f"{type(tokenizer).__name__}:{tokenizer.get_vocab_size()}:{tokenizer.get_bos_token_id()}"


def _contents(messages: list[Message], system: str | None, as_parts: bool) -> list[dict]:
    contents = [{"role": "system", "content": system}] if system else []
    for message in messages:
        content = _parts(message) if message.is_reply and as_parts else message.text
        contents.append({"role": message.role, "content": content})
    return contents


def _parts(message: Message) -> str | list[dict]:
    """A reply as a tokenizer takes it. A call that was cut is left out, as it is in the ids."""
    if not any(segment["type"] == "tool_call" for segment in message.segments):
        return message.text
    parts = []
    for segment in message.segments:
        if segment["type"] == "text":
            parts.append({"type": "text", "text": segment["text"]})
        elif segment["state"] in ("done", "refused"):
            parts.append({"type": "python", "text": segment["expression"]})
            if segment["result"] is not None:
                parts.append({"type": "python_output", "text": segment["result"]})
    return parts
