"""What people ask for: an answer, another one, one to another question, the rest of one.

Every call names the browser session that makes it. A call that cannot be done raises ChatError and
changes nothing. What happens is told in the conversation's channel. This module decides whether a turn may
be had; `turns` begins it and `publisher` follows it. It never waits for an answer.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace

from app.chat.answers import Picker, unpicked
from app.chat.chats import Caller, Chats
from app.chat.conversation import Conversation, Message
from app.chat.errors import CannotStoreError, ChatError, NotFoundError
from app.chat.fitting import longest_prompt
from app.chat.hub import Channel, Hub, to_json
from app.chat.memory_events import MemoryTeller
from app.chat.prompt import PromptBuilder
from app.chat.publisher import ENGINE_IS_GONE, Publisher
from app.chat.recovery import delete_chats_of_sockets, mark_interrupted
from app.chat.reply_settings import ReplySettings
from app.chat.store import Store
from app.chat.texts import check_text, clean, title_of
from app.chat.transfers import Transfers
from app.chat.turns import Turn, TurnMaker
from app.chat.views import message_event
from app.engine.tool_calls import ToolMarks

READY_TIMEOUT_S = 120
GOES_ON_AFTER = ("length", "cancelled", "interrupted", "error", "context_full")


class Replies:
    """`chats` is the other half: looking at chats, renaming and deleting them."""

    def __init__(self, worker, store: Store, settings):
        self.worker, self.store, self.settings = worker, store, settings
        self.hub = Hub(store)
        teller = MemoryTeller(worker, store, self.hub)
        self.publisher = Publisher(worker, store, self.hub, teller)
        self.chats = Chats(worker, store, self.hub, self.publisher, Picker(worker, store, self.publisher, teller))
        self._turns = TurnMaker(worker, store, self.publisher, teller)
        self.transfers = Transfers(worker, store, self.chats, self._turns)
        self._new_lock = threading.Lock()  # held while a conversation begins: one request begins one
        worker.on_event = self.publisher.sink
        mark_interrupted(store)
        delete_chats_of_sockets(store)
        self.publisher.start()

    def close(self) -> None:
        """After the engine has stopped: tell and store the ends of all replies, and say goodbye."""
        self.publisher.stop()
        self.hub.settle()
        self.hub.close()

    @property
    def defaults(self) -> ReplySettings:
        return ReplySettings.defaults(self.settings, self.worker.model)

    @property
    def has_calculator(self) -> bool:
        """Whether the model's family has marks for the tool; true until the model is loaded."""
        return self.worker.tokenizer is None or ToolMarks.of(self.worker.tokenizer) is not None

    # --- a question

    def send(self, caller: Caller, conversation: str | None, text: str, request: str | None = None,
             base: str | None = None, fields: dict | None = None) -> None:
        """`request` makes a repeat harmless; `base` is the last message that the asker has seen."""
        text = check_text(text)
        self.wait_until_ready()
        settings = self.defaults.changed_by(fields)
        if conversation is None:
            self._begin(caller, text, request, settings)
        else:
            self._follow(caller, conversation, text, request, base, settings)

    def _begin(self, caller: Caller, text: str, request: str | None, settings: ReplySettings) -> None:
        if len(text) > self._limit(settings):  # much to count: not while others wait for the lock
            self._turns.refuse_if_too_long(text, settings)
        with self._new_lock:
            if self._answer_again(caller, request):
                return
            conversation = Conversation(owner=caller.owner, title=title_of(text))
            question = Message(conversation.id, 0, "user", text=text, request=request)
            channel = self.hub.begin(conversation.id)
            try:
                with channel.lock:
                    self._turns.begin(caller, channel, Turn.of(conversation, [], question, is_new=True), settings)
            except BaseException:
                self.hub.drop(conversation.id)
                raise
            self.hub.tell_session(caller.owner, conversation.id, caller.conversation_event(conversation), caller.outbox)

    def _follow(self, caller: Caller, id: str, text: str, request: str | None, base: str | None,
                settings: ReplySettings) -> None:
        self.publisher.let_stopped_end(id)
        with self.chats.own(caller, id) as (conversation, channel):
            if self._answer_again(caller, request):
                return
            history = self.store.messages(id)
            last = history[-1]
            self._check_base(history, base)
            self._check_idle(channel)
            question = Message(id, last.place + 1, "user", reply_to=last.id, text=text, request=request)
            self._turns.begin(caller, channel, Turn.of(conversation, history, question), settings)

    def _answer_again(self, caller: Caller, request: str | None) -> bool:
        """Whether `request` was done already. If so its answer is told once more, to the caller alone."""
        message = self.store.message_of_request(caller.owner, request) if request else None
        if message is None:
            return False
        with self.chats.own(caller, message.conversation) as (conversation, channel):
            if caller.outbox is not None and caller.outbox not in channel.listeners:
                self.chats.open(caller, conversation.id, after=0)
            elif caller.outbox is not None:
                own = [caller.conversation_event(conversation)] if message.place == 0 else []
                turn = [*self.store.messages(conversation.id), *unpicked(self.store, conversation.id)]
                turn = [other for other in turn if message.place <= other.place <= message.place + 1]
                live = self.publisher.live_in(conversation.id)
                for event in own + [message_event(other, live) for other in turn]:
                    caller.outbox.put(to_json({**event, "conversation": conversation.id, "repeat": True}))
        return True

    # --- other ways to a reply

    def regenerate(self, caller: Caller, conversation: str, message: str, fields: dict | None = None,
                   request: str | None = None) -> None:
        """Another reply to the same question. The old one, and all after it, is gone."""
        self.wait_until_ready()
        self.publisher.let_stopped_end(conversation)
        with self.chats.own(caller, conversation) as (own, channel):
            if self._answer_again(caller, request):
                return
            messages = self._messages_to_change(channel)
            old = _find([*messages, *self.store.answers_beside(conversation)], message, "assistant")
            turn = Turn.of(own, messages[:old.place - 1], messages[old.place - 1], removed=messages[old.place:])
            turn.reply.request = request
            self._turns.begin(caller, channel, turn, self._settings_like(old, fields))

    def edit(self, caller: Caller, conversation: str, message: str, text: str, fields: dict | None = None,
             request: str | None = None, base: str | None = None) -> None:
        """Another question in the place of `message`. All after it is gone."""
        text = check_text(text)
        self.wait_until_ready()
        self.publisher.let_stopped_end(conversation)
        with self.chats.own(caller, conversation) as (own, channel):
            if self._answer_again(caller, request):
                return
            messages = self._messages_to_change(channel)
            self._check_base(messages, base)
            old = _find(messages, message, "user")
            question = Message(own.id, old.place, "user", reply_to=old.reply_to, text=text, request=request)
            old_reply = messages[old.place + 1] if old.place + 1 < len(messages) else None
            turn = Turn.of(own, messages[:old.place], question, removed=messages[old.place:])
            self._turns.begin(caller, channel, turn, self._settings_like(old_reply, fields))
            if old.place == 0 and own.title == title_of(old.text):  # nobody gave it another
                with suppress(CannotStoreError):  # the answer has begun, and is worth more than the title
                    self.chats.rename(caller, own.id, title_of(text))

    def go_on(self, caller: Caller, conversation: str, message: str, fields: dict | None = None,
              request: str | None = None) -> None:
        """Let the last reply, which was cut, go on where it ended."""
        self.wait_until_ready()
        self.publisher.let_stopped_end(conversation)
        with self.chats.own(caller, conversation) as (own, channel):
            if self._answer_again(caller, request):
                return
            messages = self._messages_to_change(channel)
            reply = _find([*messages, *self.store.answers_beside(conversation)], message, "assistant")
            if reply.is_beside:
                raise ChatError("not_picked", "This is one of several answers. Pick it, then it can go on.")
            if reply is not messages[-1]:
                raise ChatError("not_last", "Only the last answer of a chat can go on.")
            if reply.reason not in GOES_ON_AFTER:
                raise ChatError("complete", "This answer is complete: the model ended it by itself.")
            settings = replace(self._settings_like(reply, fields), n=1)
            reply.request = request or reply.request
            self._turns.begin(caller, channel, Turn.going_on(own, messages[:-2], messages[-2], reply), settings)

    def stop(self, caller: Caller, conversation: str, message: str) -> None:
        """End a reply. One that has ended already is left alone."""
        with self.chats.own(caller, conversation):
            for live in self.publisher.live_in(conversation):
                if live.message.id == message:
                    live.told_to_stop = True
                    self.worker.cancel(live.request.reply)

    def count(self, caller: Caller, conversation: str | None, text: str, fields: dict | None = None) -> dict:
        """How many tokens `text` is, how many with the marks and the system prompt that it needs (`alone`) and with
        all of the chat (`whole`), and how many a prompt may have. With `read`, those that the next reply would read,
        where that can be known: not without the cache, nor when turns are left out or a reply is being written."""
        self.wait_until_ready()
        text, settings, tokenizer = clean(text), self.defaults.changed_by(fields), self.worker.tokenizer
        history, kept, stored_ids, is_busy = [], [], [], False
        if conversation is not None:
            with self.chats.own(caller, conversation) as (own, _):
                history = [message for message in self.store.messages(conversation) if not message.left_out]
                is_busy = bool(self.publisher.live_in(conversation))
            kept = Turn.of(own, history, Message(own.id, len(history), "user", text=text)).messages(settings.system)
            stored_ids = [id for message in history for id in message.ids or []]
        builder, question = PromptBuilder(tokenizer), Message("", 0, "user", text=text)
        whole = builder.build(kept or [question], settings.system).ids
        alone = builder.build([question], settings.system).ids if kept else whole
        numbers = {"tokens": len(tokenizer.encode(text)), "alone": len(alone), "whole": len(whole),
                   "limit": self._limit(settings)}
        if settings.use_cache and not is_busy and len(whole) <= numbers["limit"]:
            cached = self.worker.snapshot().cached_tokens.get(conversation, 0) if conversation else 0
            # the last token of a prompt is always read: what comes next is found from it
            shared = min(_shared_length(stored_ids, whole), cached, len(whole) - 1)
            numbers["read"] = len(whole) - shared
        return numbers

    # --- what they have in common

    def _messages_to_change(self, channel: Channel) -> list[Message]:
        self._check_idle(channel)
        return self.store.messages(channel.conversation)

    def _check_idle(self, channel: Channel) -> None:
        live = self.publisher.live_in(channel.conversation)
        for reply in live:
            if reply.unstored:  # there is nothing to be stopped
                raise reply.unstored
        if live:
            raise ChatError("busy", "An answer is still being written here. Stop it first, or wait for its end.")

    def _check_base(self, messages: list[Message], base: str | None) -> None:
        """`base` is the last message that the asker has seen; None where they do not say. Of several answers that
        none is picked of, any may be the last."""
        if base in (None, messages[-1].id):
            return
        if all(base != answer.id for answer in unpicked(self.store, messages[-1].conversation)):
            raise ChatError("stale", "This chat has gone on elsewhere, in another window perhaps. Look at what is new, "
                            "then send again.")

    def _settings_like(self, reply: Message | None, fields: dict | None) -> ReplySettings:
        """What the page asks for; where it asks for nothing, what `reply` was asked for with, but for its
        seed: another reply is another draw."""
        if fields is not None or reply is None or not reply.settings:
            return self.defaults.changed_by(fields)
        return ReplySettings(**{**reply.settings, "seed": self.settings.seed})

    def wait_until_ready(self) -> None:
        snapshot = self.worker.wait_ready(READY_TIMEOUT_S)
        if snapshot.state == "loading":
            raise ChatError("not_ready", "The model is still being loaded. Please try again in a moment.")
        if snapshot.state != "ready" or not self.worker.alive:
            raise ChatError("failed", snapshot.failure or ENGINE_IS_GONE)

    def _limit(self, settings: ReplySettings) -> int:
        return longest_prompt(self.worker.snapshot().context, settings.max_tokens)


def _shared_length(one: list[int], other: list[int]) -> int:
    """How many ids both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _find(messages: list[Message], id: str, role: str) -> Message:
    message = next((message for message in messages if message.id == id), None)
    if message is None:
        raise NotFoundError("There is no such message in this chat any more.")
    if message.role != role:
        sentence = "Only an answer can be written again." if role == "assistant" else "Only a question can be edited."
        raise ChatError("bad_message", sentence)
    return message
