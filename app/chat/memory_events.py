"""What happened to a conversation's memory, in sentences: stored with it and told to its listeners."""

from __future__ import annotations

from dataclasses import asdict

from app.chat.conversation import MemoryEvent, Message, conversation_of_row
from app.chat.errors import NotFoundError
from app.chat.hub import Channel, Hub
from app.chat.numbers import cache_numbers, last_reply_from_stats
from app.chat.store import Store
from app.engine.messages import Evicted


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count:,} tokens"


def _bytes(count: int) -> str:
    """Three digits that count: 7188480 is 7.19 MB, as on the page."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            break
        count /= 1000
    digits = 0 if unit == "B" or count >= 99.95 else 1 if count >= 9.995 else 2
    return f"{count:.{digits}f} {unit}"


class MemoryTeller:
    def __init__(self, worker, store: Store, hub: Hub):
        self._worker, self._store, self._hub = worker, store, hub

    def tell(self, channel: Channel, code: str, text: str, **figures) -> None:
        event = MemoryEvent(channel.conversation, code, text, figures)
        self._store.add_event(event)
        channel.publish(event_of(event))

    def evicted(self, event: Evicted) -> Channel | None:
        try:
            channel = self._hub.channel(conversation_of_row(event.conversation))
        except NotFoundError:  # deleted meanwhile
            return None
        with channel.lock:
            if event.conversation != channel.conversation:
                self.tell(channel, "copy_evicted", "Another chat needed the room: one of the answers to choose from "
                          f"was forgotten, {_tokens(event.tokens)}. If it is picked, it is read again.",
                          tokens=event.tokens)
                return channel
            self.tell(channel, "evicted", f"Another chat needed the room: the {_tokens(event.tokens)} of this one were "
                      "forgotten. They will be read again when it goes on.", tokens=event.tokens)
            last = self._store.last_message(event.conversation)
            numbers = cache_numbers(self._worker.snapshot(), 0, last_reply_from_stats(last and last.stats))
            channel.publish({"type": "cache", "cache": numbers})
        return channel

    def copied(self, channel: Channel, prompt_tokens: int, copies: int) -> None:
        tokens = copies * prompt_tokens
        size_bytes = tokens * self._worker.snapshot().model.bytes_per_token
        self.tell(channel, "copied", f"{copies + 1} answers at once: the {_tokens(prompt_tokens)} before them were "
                  f"read once, and copied for the other {'one' if copies == 1 else copies}: {_tokens(tokens)}, "
                  f"{_bytes(size_bytes)}.", copies=copies, prompt_tokens=prompt_tokens, tokens=tokens, bytes=size_bytes)

    def picked(self, channel: Channel, answer: int, rows: int, tokens: int) -> None:
        size_bytes = tokens * self._worker.snapshot().model.bytes_per_token
        freed = f": {_tokens(tokens)}, {_bytes(size_bytes)}, are free again" if tokens else ""
        self.tell(channel, "picked", f"The chat goes on with answer {answer + 1}. What was remembered of the others "
                  f"was given back{freed}.", answer=answer, rows=rows, tokens=tokens, bytes=size_bytes)

    def picked_again(self, channel: Channel, answer: int) -> None:
        self.tell(channel, "picked", f"The chat goes on with answer {answer + 1} after all. What was remembered of it "
                  "was given back before, so it is read again with the next question.", answer=answer)

    def abandoned(self, channel: Channel, after_s: float) -> None:
        self.tell(channel, "abandoned", f"Nobody was listening for {after_s:g} seconds, so the answer was stopped "
                  "where it was.", after_s=after_s)

    def left_out(self, channel: Channel, messages: list[Message]) -> None:
        tokens = sum(len(message.ids or []) for message in messages)
        self.tell(channel, "left_out", f"The chat has grown too long for the memory: its oldest {len(messages)} "
                  f"messages ({_tokens(tokens)}) are left out from now on. What remains is read again.",
                  messages=len(messages), tokens=tokens)

    def lost(self, channel: Channel, tokens: int) -> None:
        self.tell(channel, "lost", "The server was started again since, and what it remembered of this chat was lost: "
                  f"{_tokens(tokens)} {'is' if tokens == 1 else 'are'} read again.", tokens=tokens)

    def was_told_of_eviction(self, channel: Channel, since_s: float) -> bool:
        return any(event.code == "evicted" and event.created_s > since_s
                   for event in self._store.events(channel.conversation))

    def encoded_again(self, channel: Channel) -> None:
        self.tell(channel, "encoded_again", "This chat was written with another model: its text was encoded again for "
                  "this one, and is read anew.")

    def system_changed(self, channel: Channel) -> None:
        self.tell(channel, "system_changed", "The system prompt has changed. It stands at the very beginning, so the "
                  "whole chat is read again.")


def event_of(event: MemoryEvent) -> dict:
    """As it is told on the socket and shown on the page."""
    values = asdict(event)
    del values["conversation"]
    return {"type": "event", **values}
