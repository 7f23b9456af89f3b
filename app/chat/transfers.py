"""Chats that leave as files and come in as files, and those that are played again.

None of it needs the model: what is stored is all that is wanted.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.chat.chats import Caller, Chats
from app.chat.conversation import Conversation, MemoryEvent, Message
from app.chat.errors import ChatError
from app.chat.exports import export
from app.chat.imports import read_import
from app.chat.replay import script_of
from app.chat.replay_cells import cells_of
from app.chat.sentences import sentence
from app.chat.store import Store
from app.chat.turns import TurnMaker

TAKEN_IN = "taken_in"  # of this copy of a chat alone: no file and no replay has it


@dataclass(frozen=True)
class Recording:
    """What a replay is made of: `script` as in replay.py, `tokens` as in replay_cells.py. `model` made the last reply;
    None where that is not known."""
    conversation: Conversation
    model: str | None
    script: list[list]
    tokens: list[dict]


class Transfers:
    def __init__(self, worker, store: Store, chats: Chats, turns: TurnMaker):
        self._worker, self._store, self._chats, self._turns = worker, store, chats, turns

    def export(self, caller: Caller, id: str) -> dict:
        """Raises NotFoundError where it is not the caller's."""
        conversation, messages, events, timelines = self._whole(caller, id, beside=True)
        return export(conversation, messages, events, timelines, self._store.chances([message.id for message in messages]))

    def replay(self, caller: Caller, id: str) -> Recording:
        conversation, messages, events, timelines = self._whole(caller, id, beside=False)
        runs = [run for message in messages for run in timelines.get(message.id, ())]
        chances = self._store.chances([message.id for message in messages])
        return Recording(conversation, model=runs[-1]["model"]["name"] if runs else None,
                         script=script_of(messages, timelines, events),
                         tokens=cells_of(messages, chances, self._worker.tokenizer))

    def take_in(self, caller: Caller, document: object) -> tuple[Conversation, int]:
        """A new chat of the caller's, and how many messages it has. Raises ChatError for a file that is no export."""
        imported = read_import(document, caller.owner)
        with self._store.transaction():
            self._store.add_conversation(imported.conversation)
            for message in imported.messages:
                self._store.add_message(message)
            for id, runs in imported.timelines.items():
                self._store.keep_timeline(id, runs)
            for id, records in imported.chances.items():
                self._store.keep_chances(id, records)
            for event in imported.events:
                self._store.add_event(event)
            self._store.add_event(MemoryEvent(imported.conversation.id, TAKEN_IN, sentence(
                "This chat was opened from a file. Nothing of it is remembered here: what happened before this, "
                "happened where it was saved.")))
        self._turns.took_in(imported.conversation.id)
        return imported.conversation, sum(not message.is_beside for message in imported.messages)

    def _whole(self, caller: Caller, id: str, beside: bool) \
            -> tuple[Conversation, list[Message], list[MemoryEvent], dict[str, list[dict]]]:
        with self._chats.own(caller, id) as (conversation, _):
            messages = self._store.messages(id) + (self._store.answers_beside(id) if beside else [])
            if any(message.is_reply and message.reason is None for message in messages):
                raise ChatError("busy", "An answer is still being written here. Stop it first, or wait for its end.")
            events = [event for event in self._store.events(id) if event.code != TAKEN_IN]
            return conversation, messages, events, self._store.timelines([message.id for message in messages])
