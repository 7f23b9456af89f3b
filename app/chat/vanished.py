"""Replies that nobody listens to any more: which of them are stopped, and when.

Whoever vanishes may only be loading the page again, so their reply goes on: for a while at most, and while
somebody waits for its row for a moment only. What it has written stays, and stays remembered.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.chat.live_reply import LiveReply

ABANDONED_AFTER_S = 60  # long enough to come back
MAKES_WAY_AFTER_S = 3   # long enough to load the page again


def stop_unheard(worker, replies: Sequence[LiveReply], now_s: float) -> None:
    """Cancel those of `replies`, all that are being written, that nobody is coming back to; the longest alone first."""
    queued = worker.snapshot().queued
    awaited = [reply.request.use_cache for reply in replies  # a row, or the one lane without the cache
               if reply.request.reply in queued and reply.channel.listeners]
    alone_s = {reply: now_s - max(reply.channel.left_alone_since_s, reply.began_s) for reply in replies
               if not (reply.channel.listeners or reply.abandoned or reply.finished)}
    for reply in sorted(alone_s, key=alone_s.get, reverse=True):
        holds_it = reply.request.use_cache in awaited and reply.request.reply not in queued
        if holds_it and alone_s[reply] > MAKES_WAY_AFTER_S:
            awaited.remove(reply.request.use_cache)
            reply.made_way = True
        elif alone_s[reply] <= ABANDONED_AFTER_S:
            continue
        reply.abandoned = True
        worker.cancel(reply.request.reply)
