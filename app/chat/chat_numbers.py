"""The `cache` object of one conversation, from what the engine last said and what is known of its replies.

Reads and names; it must never count a token itself.
"""

from __future__ import annotations

from collections.abc import Callable

from app.chat.conversation import Choice, Message, conversation_of_row
from app.chat.fitting import longest_prompt
from app.chat.live_reply import LiveReply
from app.chat.numbers import cache_numbers, copies_numbers, last_reply_from_stats, room_numbers
from app.chat.store import Store
from app.engine.messages import Snapshot


class ChatNumbers:
    """`live_in(conversation)` gives the replies that are being written there."""

    def __init__(self, worker, store: Store, live_in: Callable[[str], list[LiveReply]]):
        self._worker, self._store, self._live_in = worker, store, live_in

    def of(self, conversation: str, ended: LiveReply | None = None) -> dict:
        """`ended` is a reply of whose end the snapshot may not know yet."""
        snapshot = self._worker.snapshot()
        replies = [reply for reply in (ended, *self._live_in(conversation)) if reply]
        replies = [reply for reply in replies if reply.message.choice != Choice.FOLDED]
        rows = {name: tokens for name, tokens in snapshot.cached_tokens.items()
                if conversation_of_row(name) == conversation}
        rows |= {reply.request.conversation: reply.cached_tokens for reply in replies
                 if reply.cached_tokens is not None}
        main = next((reply for reply in replies if reply.request.conversation == conversation), None)
        message = main.message if main else self._store.last_message(conversation)
        stats = message.stats if message else None
        copies = [tokens for name, tokens in rows.items() if name != conversation]
        if not copies or message.choice != Choice.OPEN:
            numbers = None
        else:
            prompt_tokens = len(main.request.prompt_ids) if main else (stats or {}).get("prompt_tokens", 0)
            numbers = copies_numbers(snapshot, prompt_tokens, copies)
        last_reply = main.last_reply if main else last_reply_from_stats(stats)
        if message and not main and self._is_from_file(message):
            last_reply |= {"from_file": True}
        room = self._room(snapshot, message, main) if message else None
        return cache_numbers(snapshot, rows.get(conversation, 0), last_reply, numbers, room)

    def _is_from_file(self, message: Message) -> bool:
        """Whether it was made before its conversation was taken in: somewhere else, perhaps."""
        conversation = self._store.conversation(message.conversation)
        return conversation is not None and conversation.imported_s is not None and message.created_s < conversation.imported_s

    def _room(self, snapshot: Snapshot, last: Message, live: LiveReply | None) -> dict | None:
        """What fits until the oldest turns are left out. `live` is the last message while it is being written."""
        if live:
            prompt, made = len(live.request.prompt_ids), live.counts.written + live.counts.forced
            question = live.question_tokens
        else:
            stats, asked = last.stats or {}, self._store.message(last.reply_to) if last.reply_to else None
            prompt, question = stats.get("prompt_tokens", 0), len(asked.ids or ()) if asked else 0
            made = stats.get("generated_tokens", 0) + stats.get("forced_tokens", 0)
        limit = longest_prompt(snapshot.context, (last.settings or {}).get("max_tokens", snapshot.context))
        return room_numbers(prompt + made, question, made, limit) if prompt and made else None
