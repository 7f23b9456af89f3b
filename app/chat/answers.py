"""Several answers to one question: each has a row of the cache, until one of them is picked.

The first is written in the row of the conversation itself, the others in copies of it, under names of their
own. Picking one gives the conversation its row and frees the rest; the others stay stored, folded away.
A conversation that goes on without a pick goes on with the first.
"""

from __future__ import annotations

from dataclasses import replace

from app.chat.conversation import Choice, Message, new_id
from app.chat.errors import ChatError, NotFoundError
from app.chat.hub import Channel
from app.chat.memory_events import MemoryTeller
from app.chat.publisher import Publisher
from app.chat.reply_settings import ReplySettings
from app.chat.store import Store
from app.engine.messages import Request
from app.engine.sampling import MAX_SEED


def check_answers(settings: ReplySettings, rows: int) -> None:
    """Raises ChatError where so many answers at once are not to be had."""
    if settings.n > 1 and not settings.use_cache:
        raise ChatError("bad_settings", "Several answers at once are written in copies of the cache, so they need it. "
                        "Switch the cache on, or ask for one answer.")
    if settings.n > rows:
        raise ChatError("bad_settings", "{answers} answers at once need as many places in the memory; places here: {rows}.",
                        answers=settings.n, rows=rows)


def copies_of(reply: Message, settings: ReplySettings) -> list[Message]:
    """The answers to be written beside `reply`, each drawn with a seed of its own: the next."""
    return [replace(reply, id=new_id(), answer=answer, request=None,
                    settings={**reply.settings, "seed": (settings.seed + answer) % (MAX_SEED + 1)})
            for answer in range(1, settings.n)]


def request_for_copy(request: Request, copy: Message) -> Request:
    return replace(request, reply=new_id(), conversation=copy.row_name, seed=copy.settings["seed"])


def unpicked(store: Store, conversation: str) -> list[Message]:
    """The answers to the last question that have rows of their own, while none is picked."""
    return [answer for answer in store.answers_beside(conversation) if answer.choice == Choice.OPEN]


def fold(store: Store, picked: Message, others: list[Message]) -> None:
    """The conversation goes on with `picked`."""
    with store.transaction():
        for answer in [picked, *others]:
            answer.choice = Choice.PICKED.value if answer is picked else Choice.FOLDED.value
            store.update_message(answer.id, choice=answer.choice)


def picked_event(picked: Message, others: list[Message]) -> dict:
    return {"type": "picked", "message": picked.id, "others": [other.id for other in others], "stats": picked.stats}


class Picker:
    """What a person does with several answers: pick one."""

    def __init__(self, worker, store: Store, publisher: Publisher, teller: MemoryTeller):
        self._worker, self._store, self._publisher, self._teller = worker, store, publisher, teller

    def pick(self, channel: Channel, message: str) -> None:
        """Let the conversation go on with this answer to its last question. What is still being written beside it
        is stopped. To be called under the lock of the channel."""
        conversation = channel.conversation
        current = self._store.last_message(conversation)
        answers = [current, *self._store.answers_beside(conversation)]
        picked = next((answer for answer in answers if answer.id == message), None)
        if picked is None:
            raise NotFoundError("There is no such answer in this chat any more.")
        if picked.place != current.place:
            raise ChatError("not_last", "The chat has gone on with another answer since. To go on with this one, ask "
                            "its question again.")
        if any(live.message.id == message for live in self._publisher.live_in(conversation)):
            raise ChatError("busy", "This answer is still being written. Stop it first, or wait for its end.")
        others = [answer for answer in answers if answer.place == picked.place and answer is not picked]
        if picked.choice == Choice.OPEN:
            self._close_choice(channel, picked, others)
        elif picked.choice == Choice.FOLDED:
            self._change_choice(channel, picked, others)

    def _close_choice(self, channel: Channel, picked: Message, others: list[Message]) -> None:
        """The row of `picked` becomes that of the conversation; the rows of the others are free."""
        cached_tokens = self._worker.snapshot().cached_tokens
        freed = [cached_tokens[other.row_name] for other in others if other.row_name in cached_tokens]
        fold(self._store, picked, others)
        for live in self._publisher.live_in(channel.conversation):
            live.message.choice = Choice.FOLDED.value
            self._worker.cancel(live.request.reply)  # before its row goes: it would come back with its end
        self._worker.adopt(channel.conversation, picked.row_name)
        for other in others:
            if other.answer > 0:
                self._worker.forget(other.row_name)
        channel.publish(picked_event(picked, others))
        self._teller.picked(channel, picked.answer, len(freed), sum(freed))
        self._publisher.tell_numbers_soon(channel)

    def _change_choice(self, channel: Channel, picked: Message, others: list[Message]) -> None:
        fold(self._store, picked, others)
        channel.publish(picked_event(picked, others))
        self._teller.picked_again(channel, picked.answer)
        channel.publish({"type": "cache", "cache": self._publisher.cache_of(channel.conversation)})
