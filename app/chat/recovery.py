"""After a restart: replies that were being written are marked, with what was written of them, and chats
that nobody can ever open again are deleted."""

from __future__ import annotations

from app.chat.store import Store
from app.engine.messages import Reason, ToolState

SOCKET_OWNER = "socket:"  # how the owner's name begins where there is no cookie, but only a socket


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


def delete_chats_of_sockets(store: Store) -> None:
    """Those begun by a program without a cookie: they live as long as its socket, and no socket is left."""
    for conversation in store.conversations_of_owners_like(SOCKET_OWNER + "%"):
        store.delete_conversation(conversation.id)
