"""After a restart: replies that were being written are marked, with what was written of them."""

from __future__ import annotations

from app.chat.store import Store
from app.engine.messages import Reason, ToolState


def mark_interrupted(store: Store) -> int:
    """-> how many there were. Must run before anything is written."""
    replies = store.unfinished_replies()
    for reply in replies:
        for segment in reply.segments:
            if segment.get("state") == ToolState.WRITING.value:
                segment["state"] = ToolState.UNFINISHED.value
        with store.transaction():
            store.update_message(reply.id, reason=Reason.INTERRUPTED.value, segments=reply.segments)
            conversation = store.conversation(reply.conversation)
            # a page that was up to date is so no longer
            store.update_conversation(conversation.id, seq=conversation.seq + 1)
    return len(replies)
