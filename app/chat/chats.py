"""The chats of a browser session: look at them, listen to them, pick, rename, delete, forget.

What belongs to another session is not found, whatever is asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.chat.answers import Picker, unpicked
from app.chat.conversation import Conversation
from app.chat.errors import ChatError, NotFoundError
from app.chat.hub import Channel, Hub, Outbox, to_json
from app.chat.memory_events import event_of
from app.chat.numbers import cache_numbers
from app.chat.publisher import Publisher
from app.chat.store import Store
from app.chat.texts import MAX_TITLE_CHARACTERS, clean, is_blank
from app.chat.views import message_views


@dataclass(frozen=True)
class Caller:
    """Who asks: a browser session, the outbox that it listens with, and where its pages lie."""
    owner: str
    outbox: Outbox | None = None
    root: str = "/"

    def url(self, conversation: str) -> str:
        return f"{self.root}c/{conversation}"

    def conversation_event(self, conversation: Conversation) -> dict:
        return {"type": "conversation", "id": conversation.id, "url": self.url(conversation.id),
                "title": conversation.title}


class Chats:
    def __init__(self, worker, store: Store, hub: Hub, publisher: Publisher, picker: Picker):
        self._worker, self._store, self._hub, self._publisher = worker, store, hub, publisher
        self._picker = picker

    @contextmanager
    def own(self, caller: Caller, id: str) -> Iterator[tuple[Conversation, Channel]]:
        """A conversation of the caller's, under its lock: nothing happens in it meanwhile."""
        if not self._is_own(caller, id):
            raise NotFoundError()
        channel = self._hub.channel(id)
        with channel.lock:
            conversation = self._store.conversation(id)
            if conversation is None:  # deleted while this waited
                raise NotFoundError()
            yield conversation, channel

    def _is_own(self, caller: Caller, id: str) -> bool:
        conversation = self._store.conversation(id)
        return conversation is not None and conversation.owner == caller.owner

    # --- looking and listening

    def list(self, caller: Caller) -> list[dict]:
        """The last used first; `tokens` that are in memory, None where it will be read again."""
        cached_tokens = self._worker.snapshot().cached_tokens
        return [{"id": conversation.id, "url": caller.url(conversation.id), "title": conversation.title,
                 "tokens": cached_tokens.get(conversation.id) or None, "imported_s": conversation.imported_s}
                for conversation in self._store.conversations(caller.owner)]

    def look(self, caller: Caller, id: str) -> dict:
        """A whole conversation as it stands: what the page and a snapshot show."""
        with self.own(caller, id) as (conversation, channel):
            live = self._publisher.live_in(id)
            views = message_views(self._store.messages(id), self._store.answers_beside(id), live,
                                  self._worker.snapshot().cached_tokens)
            return {"id": id, "title": conversation.title, "url": caller.url(id), "seq": channel.seq,
                    "messages": views, "cache": self._publisher.cache_of(id),
                    "events": [event_of(event) for event in self._store.events(id)],
                    **(live[0].state if live else {"state": "idle"})}

    def open(self, caller: Caller, id: str, after: int | None) -> None:
        """Listen, from what came after the event number `after` on; without one, from a snapshot on."""
        with self.own(caller, id) as (_, channel):
            channel.join(caller.outbox, -1 if after is None else after,
                         lambda: {"type": "snapshot", "conversation": id, **self.look(caller, id)})

    def cache(self, caller: Caller, id: str | None = None) -> dict:
        """The `cache` object of a conversation, or that of pool and model alone."""
        if id is None:
            return cache_numbers(self._worker.snapshot())
        if not self._is_own(caller, id):
            raise NotFoundError()
        return self._publisher.cache_of(id)

    def strip(self, caller: Caller, id: str) -> dict:
        """The tokens of a conversation: those in its row of the cache and those that are not, as its event `seq` left
        them."""
        with self.own(caller, id) as (_, channel):
            if self._worker.tokenizer is None:
                return {"seq": channel.seq, "cached": 0, "tokens": [], "waiting": []}
            return {"seq": channel.seq, **self._publisher.strips.of(id, self._publisher.live_in(id))}

    # --- changing

    def pick(self, caller: Caller, id: str, message: str) -> None:
        """Of several answers to the last question, go on with this one."""
        self._publisher.let_stopped_end(id)
        with self.own(caller, id) as (_, channel):
            self._picker.pick(channel, message)

    def rename(self, caller: Caller, id: str, title: str) -> None:
        title = " ".join(clean(title).split())[:MAX_TITLE_CHARACTERS]
        if is_blank(title):
            raise ChatError("empty", "A title needs at least one letter.")
        with self.own(caller, id) as (conversation, channel):
            conversation.title = title
            self._store.update_conversation(id, title=title)
            self._tell_all_and_caller(caller, channel, caller.conversation_event(conversation))

    def delete(self, caller: Caller, id: str) -> None:
        """The chat, its memory and its reply in the making are gone."""
        with self.own(caller, id) as (conversation, channel):
            rows = [id, *(answer.row_name for answer in unpicked(self._store, id))]
            self._store.delete_conversation(id)  # first: where that cannot be done, nothing is lost
            for live in self._publisher.live_in(id):
                self._publisher.remove(live)
            for row in rows:
                self._worker.forget(row)
            self._tell_all_and_caller(caller, channel, caller.conversation_event(conversation) | {"deleted": True})
        self._hub.drop(id)

    def forget_everything(self, owner: str) -> None:
        """All chats of a browser session and all memory of them; its open sockets are closed."""
        for conversation in self._store.conversations(owner):
            try:
                self.delete(Caller(owner), conversation.id)
            except NotFoundError:  # somebody was quicker
                pass
        self._hub.close(owner)

    def _tell_all_and_caller(self, caller: Caller, channel: Channel, event: dict) -> None:
        is_listener = caller.outbox in channel.listeners
        channel.publish(event)
        self._hub.tell_session(caller.owner, channel.conversation, event, but=caller.outbox)
        if caller.outbox is not None and not is_listener:
            caller.outbox.put(to_json({**event, "conversation": channel.conversation}))
