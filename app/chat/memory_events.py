"""What happened to a conversation's memory, in sentences: stored with it and told to its listeners.

What is stored is a sentence as `app.chat.sentences` has it, English and with slots, and its figures.
"""

from __future__ import annotations

import logging

from app.chat.conversation import MemoryEvent, Message, conversation_of_row
from app.chat.errors import CannotStoreError, NotFoundError
from app.chat.hub import Channel, Hub
from app.chat.numbers import cache_numbers, last_reply_from_stats
from app.chat.sentences import fill
from app.chat.store import Store
from app.chat.turn_story import Story
from app.engine.messages import Evicted, Finished, Reading, Reason, Request


logger = logging.getLogger(__name__)


class MemoryTeller:
    def __init__(self, worker, store: Store, hub: Hub):
        self._worker, self._store, self._hub = worker, store, hub

    def tell(self, channel: Channel, code: str, sentence: str, **figures) -> None:
        event = MemoryEvent(channel.conversation, code, sentence, figures)
        try:
            self._store.add_event(event)
        except CannotStoreError as error:  # whoever is here hears of it all the same
            logger.warning("what happened to chat %s is told, but not stored (%s): %s", channel.conversation, error.reason, code)
        channel.publish(event_of(event))

    def evicted(self, event: Evicted) -> Channel | None:
        try:
            channel = self._hub.channel(conversation_of_row(event.conversation))
        except NotFoundError:  # deleted meanwhile
            return None
        with channel.lock:
            if event.conversation != channel.conversation:
                self.tell(channel, "copy_evicted", "Another chat needed the room: one of the answers to choose from "
                          "was forgotten, {tokens:tokens}. If it is picked, it is read again.",
                          tokens=event.tokens)
                return channel
            self.tell(channel, "evicted", "Another chat needed the room: the {tokens:tokens} of this one were "
                      "forgotten. They will be read again when it goes on.", tokens=event.tokens)
            last = self._store.last_message(event.conversation)
            numbers = cache_numbers(self._worker.snapshot(), 0, last_reply_from_stats(last and last.stats))
            channel.publish({"type": "cache", "cache": numbers})
        return channel

    def has_read(self, channel: Channel, story: Story, event: Reading) -> None:
        """The prompt of a turn has been read."""
        code, sentence, figures = story.told(event.reused, event.done - event.reused, event.seconds)
        self.tell(channel, code, sentence, **figures)

    def ended(self, channel: Channel, request: Request, finished: Finished, forced_marks: int) -> None:
        """What there is to say of a reply that has ended: nothing, mostly. `forced_marks` of what was put in are marks."""
        counts, made = finished.counts, finished.counts.written + finished.counts.forced
        if not request.use_cache and made:
            self.tell(channel, "without_cache", "The cache was off: for each token of the answer all before it were computed, "
                      "{positions} tokens for {made}. With it there would have been {with_cache} at most.", made=made,
                      positions=counts.without_cache, with_cache=len(request.prompt_ids) + made - 1)
        if counts.forced:
            sentence = ("The calculator answered: {forced:tokens} put in, not written by the model; {marks} of them are marks "
                        "around a result.") if forced_marks > 1 else \
                "The calculator answered: {forced:tokens} put in, not written by the model."
            self.tell(channel, "put_in", sentence, forced=counts.forced, marks=forced_marks)
        if finished.reason == Reason.CONTEXT_FULL:
            self.tell(channel, "context_full", "The memory of this chat is full, {limit:tokens}, so the answer was cut "
                      "there. When it goes on, the oldest turns are left out.",
                      limit=self._worker.snapshot().context)

    def copied(self, channel: Channel, prompt_tokens: int, copies: int) -> None:
        tokens = copies * prompt_tokens
        size_bytes = tokens * self._worker.snapshot().model.bytes_per_token
        if copies == 1:
            sentence = ("2 answers at once: the {prompt_tokens:tokens} before them were read once, and copied for the "
                        "other one: {tokens:tokens}, {bytes:size}.")
        else:
            sentence = ("{answers} answers at once: the {prompt_tokens:tokens} before them were read once, and copied "
                        "for the other {copies}: {tokens:tokens}, {bytes:size}.")
        self.tell(channel, "copied", sentence, answers=copies + 1, copies=copies, prompt_tokens=prompt_tokens,
                  tokens=tokens, bytes=size_bytes)

    def picked(self, channel: Channel, answer: int, rows: int, tokens: int) -> None:
        size_bytes = tokens * self._worker.snapshot().model.bytes_per_token
        sentence = ("The chat goes on with answer {number}. What was remembered of the others was given back: "
                    "{tokens:tokens}, {bytes:size}, are free again.") if tokens else \
            "The chat goes on with answer {number}. What was remembered of the others was given back."
        self.tell(channel, "picked", sentence, number=answer + 1, answer=answer, rows=rows, tokens=tokens,
                  bytes=size_bytes)

    def picked_again(self, channel: Channel, answer: int) -> None:
        self.tell(channel, "picked", "The chat goes on with answer {number} after all. What was remembered of it was "
                  "given back before, so it is read again with the next question.", number=answer + 1, answer=answer)

    def abandoned(self, channel: Channel, after_s: float) -> None:
        self.tell(channel, "abandoned", "Nobody was listening for {after_s} seconds, so the answer was stopped "
                  "where it was.", after_s=after_s)

    def made_way(self, channel: Channel) -> None:
        self.tell(channel, "made_way", "Nobody was listening here, and somebody else waited for room in the memory, so "
                  "the answer was stopped where it was.")

    def left_out(self, channel: Channel, messages: list[Message]) -> None:
        tokens = sum(len(message.ids or []) for message in messages)
        self.tell(channel, "left_out", "The chat has grown too long for the memory: its oldest {messages} "
                  "messages ({tokens:tokens}) are left out from now on. What remains is read again.",
                  messages=len(messages), tokens=tokens)

    def lost(self, channel: Channel, tokens: int) -> None:
        sentence = "The server was started again since, and what it remembered of this chat was lost: {tokens} tokens " \
            "are read again." if tokens > 1 else \
            "The server was started again since, and what it remembered of this chat was lost: 1 token is read again."
        self.tell(channel, "lost", sentence, tokens=tokens)

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
    return {"type": "event", "code": event.code, "text": fill(event.text, event.figures), "sentence": event.text,
            "figures": event.figures, "created_s": event.created_s}
