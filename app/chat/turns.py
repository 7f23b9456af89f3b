"""A turn begins: from a question to a reply that the engine is writing.

In this order, under the lock of the conversation's channel: the prompt is built and made to fit; the engine
holds a place for it or refuses; the turn is stored, or the disk refuses; rows that nobody needs any more are
freed, and the engine gets the request, which it cannot refuse now; listeners are told. What is refused leaves
nothing behind: nothing is stored, and nothing that was remembered is forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace

from app.chat.answers import check_answers, copies_of, fold, picked_event, request_for_copy, unpicked
from app.chat.conversation import Choice, Conversation, Message, new_id
from app.chat.errors import ChatError
from app.chat.fitting import Fitted, fit
from app.chat.hub import Channel
from app.chat.live_reply import LiveReply
from app.chat.memory_events import MemoryTeller
from app.chat.prompt import PromptBuilder
from app.chat.publisher import Publisher
from app.chat.reply_settings import ReplySettings
from app.chat.store import Store
from app.chat.turn_story import Story
from app.chat.views import message_event
from app.engine.messages import Request


@dataclass
class Turn:
    """`history` is what stands before the question and stays; `removed` what this turn takes the place of.
    `unpicked` are answers that stood to choice beside the last one, which is now gone on with."""
    conversation: Conversation
    history: list[Message]
    question: Message
    reply: Message
    is_new_conversation: bool = False
    is_going_on: bool = False
    removed: tuple[Message, ...] = ()
    unpicked: tuple[Message, ...] = ()

    @classmethod
    def of(cls, conversation: Conversation, history: list[Message], question: Message, removed=(),
           is_new: bool = False) -> Turn:
        """With a reply of its own."""
        reply = Message(conversation.id, question.place + 1, "assistant", reply_to=question.id)
        return cls(conversation, history, question, reply, is_new_conversation=is_new, removed=tuple(removed))

    @classmethod
    def going_on(cls, conversation: Conversation, history: list[Message], question: Message, reply: Message) -> Turn:
        """With a reply that was cut and grows."""
        return cls(conversation, history, question, reply, is_going_on=True)

    @property
    def last_answer(self) -> Message:
        """The one that `unpicked` stand beside."""
        return self.reply if self.is_going_on else self.history[-1]

    @property
    def is_new_question(self) -> bool:
        return self.question.ids is None and self.question.fingerprint is None

    @property
    def kind(self) -> str:
        """What was asked for: see `Story`."""
        if self.is_going_on:
            return "went_on"
        if not self.removed:
            return "asked"
        return "edited" if self.is_new_question else "again"

    def kept_tokens(self) -> int:
        """How many of the prompt's tokens were there before this turn."""
        kept = [*self.history, self.question, *([self.reply] if self.is_going_on else [])]
        return sum(len(message.ids or []) for message in kept if not message.left_out)

    def replies_before(self) -> list[Message]:
        before = [*self.history, *self.removed, *([self.reply] if self.is_going_on else [])]
        return [message for message in before if message.is_reply]

    def takes_back_what_was_left_out(self) -> bool:
        """Whether the chat is cut so far back that its oldest turns may fit again."""
        goes_back = bool(self.removed) and self.removed[-1].place > self.question.place + 1
        was_left_out = any(message.left_out for message in [*self.history, self.question])
        return was_left_out and (goes_back or self.question.left_out)

    def messages(self, system: str | None) -> list[Message]:
        """Those that the prompt is made of. A question whose ids do not hold any more has none: questions,
        unlike replies, encode to the same ids whenever they are encoded."""
        messages = [*self.history, self.question, *([self.reply] if self.is_going_on else [])]
        if self.takes_back_what_was_left_out():
            return [message if message.is_reply else replace(message, ids=None) for message in messages]
        messages = [message for message in messages if not message.left_out]
        if system != self.conversation.system:  # it is encoded with the first question
            messages[0] = replace(messages[0], ids=None)
        return messages


class TurnMaker:
    def __init__(self, worker, store: Store, publisher: Publisher, teller: MemoryTeller):
        self._worker, self._store, self._publisher, self._teller = worker, store, publisher, teller
        self._remembered: set[str] = set()  # conversations that this process has read

    def refuse_if_too_long(self, text: str, settings: ReplySettings) -> None:
        """A first question, before anything else is done with it."""
        self._fit([Message("", 0, "user", text=text)], settings)

    def begin(self, caller, channel: Channel, turn: Turn, settings: ReplySettings) -> None:
        """Raises ChatError where the turn cannot be had, and then nothing has changed."""
        settings = settings.with_seed()
        check_answers(settings, self._worker.snapshot().pool.rows)
        messages = turn.messages(settings.system)
        fitted = self._fit(messages, settings)
        reply = turn.reply
        reply.settings, reply.fingerprint = asdict(settings), self._builder().fingerprint
        reply.ids = fitted.prompt.ids_by_message.get(reply.id, reply.ids or [])
        reply.reason = reply.error = None
        if not turn.is_going_on:  # one that was picked stays so
            reply.choice = (Choice.ONLY if settings.n == 1 else Choice.OPEN).value
        request = Request(reply=new_id(), conversation=turn.conversation.id, prompt_ids=tuple(fitted.prompt.ids),
                          temperature=settings.temperature, top_k=settings.top_k, max_tokens=settings.max_tokens,
                          seed=settings.seed, use_cache=settings.use_cache)
        copies = copies_of(reply, settings)
        requests = [request, *(request_for_copy(request, copy) for copy in copies)]
        replies = [LiveReply(message, request, channel, self._worker.tokenizer)
                   for message, request in zip([reply, *copies], requests, strict=True)]
        if turn.is_going_on:
            replies[0].had_chances(self._store.chances([reply.id]).get(reply.id, b""))
        lost_tokens = self._lost_tokens(channel, turn, settings)
        replies[0].question_tokens = len(fitted.prompt.ids_by_message.get(turn.question.id, ()))
        replies[0].story = self._story(channel, turn, replies[0]) if settings.use_cache else None
        freed = [] if turn.is_new_conversation else unpicked(self._store, turn.conversation.id)
        turn.unpicked = () if turn.removed else tuple(freed)  # those that stay, folded
        with self._place_for(requests) as begin:
            self._store_turn(turn, copies, fitted, settings)
            for answer in freed:  # before the engine looks for a row, or it would take somebody else's
                self._worker.forget(answer.row_name)
            for live in replies:
                self._publisher.add(live)
            begin(self._publisher.sink)
        if settings.use_cache:
            self._remembered.add(turn.conversation.id)
        self._tell(caller, channel, turn, replies, fitted, settings)
        is_told_why = fitted.left_out or self._is_encoded_again(turn) or self._is_system_changed(turn, settings)
        if lost_tokens and not is_told_why:  # a whole chat that is read again needs one reason
            self._teller.lost(channel, lost_tokens)

    def _builder(self) -> PromptBuilder:
        return PromptBuilder(self._worker.tokenizer)

    def _fit(self, messages: list[Message], settings: ReplySettings) -> Fitted:
        return fit(self._builder(), messages, settings.system, self._worker.snapshot().context, settings.max_tokens)

    def took_in(self, conversation: str) -> None:
        """It came from a file: this process has no memory of it that could have been lost."""
        self._remembered.add(conversation)

    def _lost_tokens(self, channel: Channel, turn: Turn, settings: ReplySettings) -> int:
        """How much of what is read now a former process remembered, and had not given to another chat."""
        before = turn.replies_before()
        if not before or not settings.use_cache or turn.conversation.id in self._remembered:
            return 0
        last = before[-1]
        was_kept = bool((last.settings or {}).get("use_cache", True))
        return turn.kept_tokens() if was_kept and not self._teller.was_told_of_eviction(channel, last.created_s) else 0

    def _story(self, channel: Channel, turn: Turn, live: LiveReply) -> Story:
        id, before = turn.conversation.id, turn.replies_before()
        remembered = self._worker.snapshot().cached_tokens.get(id, 0)
        return Story(
            turn.kind, question=len(self._worker.tokenizer.encode(turn.question.text)), added=live.question_tokens,
            nth=turn.question.place // 2 + 1, remembered=remembered, kept=turn.kept_tokens(),
            was_evicted=bool(before and not remembered
                             and self._teller.was_told_of_eviction(channel, before[-1].created_s)),
            was_uncached=bool(before and (before[-1].settings or {}).get("use_cache") is False))

    def _is_encoded_again(self, turn: Turn) -> bool:
        builder = self._builder()
        return any(message.ids and not builder.knows(message) for message in turn.history)

    @staticmethod
    def _is_system_changed(turn: Turn, settings: ReplySettings) -> bool:
        return settings.system != turn.conversation.system and not turn.is_new_conversation

    @contextmanager
    def _place_for(self, requests: list[Request]) -> Iterator[Callable]:
        """See `EngineWorker.place_for`; raises ChatError."""
        first, *copies = requests
        with ExitStack() as held:
            try:
                begin = held.enter_context(self._worker.place_for(first, copies))
            except RuntimeError as error:
                raise ChatError("queue_full", "So many replies are waiting already that no other is taken. Please try again "
                                "in a moment.") from error
            except ValueError as error:  # typed by the engine, with a sentence
                raise ChatError("unfit", "This cannot be answered: {reason}.", reason=str(error)) from error
            yield begin

    def _store_turn(self, turn: Turn, copies: list[Message], fitted: Fitted, settings: ReplySettings) -> None:
        store, id, fingerprint = self._store, turn.conversation.id, self._builder().fingerprint
        ids_of = fitted.prompt.ids_by_message
        with store.transaction():
            if turn.is_new_conversation:
                store.add_conversation(turn.conversation)
            if turn.removed:
                store.delete_messages_from(id, turn.removed[0].place)
            if turn.unpicked:
                fold(store, turn.last_answer, list(turn.unpicked))
            if turn.takes_back_what_was_left_out():
                for message in [*turn.history, turn.question]:
                    store.update_message(message.id, left_out=False)
            for message in fitted.left_out:
                store.update_message(message.id, left_out=True)
            for message in fitted.prompt.encoded:
                store.update_message(message.id, ids=ids_of[message.id], fingerprint=fingerprint)
            if turn.is_new_question:
                store.add_message(replace(turn.question, ids=ids_of.get(turn.question.id), fingerprint=fingerprint))
            if turn.is_going_on:
                reply = turn.reply
                store.update_message(reply.id, ids=reply.ids, fingerprint=fingerprint, reason=None, error=None,
                                     settings=reply.settings, request=reply.request)
            else:
                for reply in (turn.reply, *copies):
                    store.add_message(reply)
            store.update_conversation(id, system=settings.system, changed_s=time.time())

    def _tell(self, caller, channel: Channel, turn: Turn, replies: list[LiveReply], fitted: Fitted,
              settings: ReplySettings) -> None:
        if caller.outbox is not None:
            channel.join(caller.outbox, None, dict)
        if turn.is_new_conversation:
            channel.publish(caller.conversation_event(turn.conversation))
        if turn.unpicked:
            channel.publish(picked_event(turn.last_answer, list(turn.unpicked)))
        if turn.is_new_question:
            channel.publish(message_event(turn.question, edge="read"))
        for live in replies:
            channel.publish(message_event(live.message, [live], edge="written"))
        if fitted.left_out:
            self._teller.left_out(channel, fitted.left_out)
        if self._is_encoded_again(turn):
            self._teller.encoded_again(channel)
        if self._is_system_changed(turn, settings):
            self._teller.system_changed(channel)
