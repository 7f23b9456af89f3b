"""The thread between the engine and those who listen.

The engine's sink only puts events into a queue. This thread takes whatever waits there, at most a few
dozen times a second, and does the rest for each reply: text, Markdown, events, numbers, storing. So a
token costs the engine next to nothing, and tokens that came together are told together.

It also looks after replies that nobody ends: those that nobody listens to, and those whose engine is gone.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from app.chat.chance_records import fit
from app.chat import vanished
from app.chat.chat_numbers import ChatNumbers
from app.chat.conversation import Choice, conversation_of_row
from app.chat.errors import CannotStoreError
from app.chat.hub import Channel, Hub
from app.chat.live_reply import LiveReply
from app.chat.memory_events import MemoryTeller
from app.chat.merging import merged
from app.chat.sentences import sentence
from app.chat.store import Store
from app.chat.strip import Strips
from app.chat.views import edges_of
from app.engine.messages import Evicted, Finished, Reading, Reason, Tokens

logger = logging.getLogger(__name__)

ROUND_S = 0.03          # between two rounds: tokens that come faster are told together, but for the first
STORE_EVERY_S = 0.5
STOPPED_WITHIN_S = 3    # a reply that was told to stop has ended: two steps of the engine, and then some
ENGINE_IS_GONE = sentence("The engine has stopped working; the server must be started again.")
CANNOT_BE_SHOWN = sentence("Something went wrong in showing this answer. What it was is written in the server's log.")
_END = object()


class Publisher:
    """`live` are the replies being written, by the engine's name for them."""

    def __init__(self, worker, store: Store, hub: Hub, teller: MemoryTeller):
        self._worker, self._store, self._hub, self._teller = worker, store, hub, teller
        self.strips = Strips(worker, store)
        self.cache_of = ChatNumbers(worker, store, self.live_in).of
        self._events: queue.SimpleQueue = queue.SimpleQueue()
        self._live: dict[str, LiveReply] = {}
        self._numbers_wanted: set[Channel] = set()
        self._lock = threading.Lock()  # guards both, for an instant
        self._stored_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._is_urgent = threading.Event()  # something waits that is told without waiting for the next round

    def sink(self, event: object) -> None:
        """What the engine tells. Called on its thread."""
        self._events.put(event)
        if isinstance(event, Finished) or isinstance(event, Tokens) and event.counts.written + event.counts.forced == 1:
            self._is_urgent.set()  # the first token is what people wait for

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Tell what has happened so far; replies that are still open are interrupted."""
        self._events.put(_END)
        self._thread.join(timeout_s)

    # --- which replies are being written

    def add(self, reply: LiveReply) -> None:
        with self._lock:
            self._live[reply.request.reply] = reply

    def remove(self, reply: LiveReply) -> None:
        with self._lock:
            self._live.pop(reply.request.reply, None)

    def live_in(self, conversation: str) -> list[LiveReply]:
        """Those being written in a conversation: one, or several answers to the same question, in their order."""
        with self._lock:
            return [reply for reply in self._live.values() if reply.channel.conversation == conversation]

    def let_stopped_end(self, conversation: str) -> None:
        """Wait until replies that were told to stop have ended, so that what comes right behind a stop is not
        refused. Not to be called under the lock of the channel."""
        until = time.monotonic() + STOPPED_WITHIN_S
        while any(reply.told_to_stop and not reply.unstored for reply in self.live_in(conversation)) \
                and time.monotonic() < until:
            time.sleep(0.01)

    def tell_numbers_soon(self, channel: Channel) -> None:
        """The engine was asked to change what it remembers: tell the numbers once it has."""
        with self._lock:
            self._numbers_wanted.add(channel)

    # --- the thread

    def _run(self) -> None:
        going_on = True
        while going_on:
            events = self._wait_for_events()
            going_on = _END not in events
            self._tell([event for event in events if event is not _END])
            self._look_after(going_on)
            if going_on and events:
                self._is_urgent.wait(ROUND_S)

    def _wait_for_events(self) -> list[object]:
        self._is_urgent.clear()  # what is urgent is in the queue by now
        events = []
        try:
            events.append(self._events.get(timeout=STORE_EVERY_S))
            while True:
                events.append(self._events.get_nowait())
        except queue.Empty:
            return events

    def _tell(self, events: list[object]) -> None:
        by_reply: dict[str, list[object]] = {}
        for event in events:
            if isinstance(event, Evicted):
                _try(self._tell_evicted, event)
            else:
                by_reply.setdefault(event.reply, []).append(event)
        for name, own_events in by_reply.items():
            reply = self._live.get(name)
            if reply is not None:
                _try(self._tell_of, reply, merged(own_events))

    def _tell_of(self, reply: LiveReply, events: list[object]) -> None:
        channel = reply.channel
        with channel.lock:
            if reply.request.reply not in self._live:  # its conversation was deleted meanwhile
                return
            try:
                for event in events:
                    for told in reply.take(event):
                        channel.publish(self._with_tokens_read(reply, told) if isinstance(event, Reading) else told)
                    if isinstance(event, Reading):
                        self._tell_read(reply, event)
            except Exception:
                logger.exception("reply %s could not be told", reply.message.id)
                self._worker.cancel(reply.request.reply)
                reply.finished = reply.cut_off(Reason.ERROR, CANNOT_BE_SHOWN)
            if reply.finished is not None:
                self._finish_or_say_why_not(reply)
            elif reply is self.live_in(channel.conversation)[0]:  # once for all that are written side by side
                channel.publish({"type": "cache", "cache": self.cache_of(channel.conversation)})

    def _tell_read(self, reply: LiveReply, event: Reading) -> None:
        channel = reply.channel
        if reply.message.answer == 1:  # the first of the copies was made
            self._teller.copied(channel, event.total, reply.message.settings["n"] - 1)
        if reply.story is not None and event.done == event.total:
            self._teller.has_read(channel, reply.story, event)
            reply.story = None
            self._tell_edges(channel)
        elif not reply.request.use_cache and event.done == event.total:
            self._tell_edges(channel)  # it leaves the row as it is: all in there is of before now
            self._tell_strip(channel)

    def _tell_edges(self, channel: Channel, cached_tokens: int | None = None) -> None:
        """How the memory has each message of a conversation, after that has changed. `cached_tokens` where the snapshot
        may not know them yet."""
        if cached_tokens is None:
            cached_tokens = self._worker.snapshot().cached_tokens.get(channel.conversation, 0)
        messages, live = self._store.messages(channel.conversation), self.live_in(channel.conversation)
        channel.publish({"type": "edges", "edges": edges_of(messages, live, cached_tokens)})

    def _with_tokens_read(self, reply: LiveReply, told: dict) -> dict:
        """A `reading` event of what goes into the conversation's own row, with the tokens that were read since the last."""
        if told["type"] != "reading" or not reply.request.use_cache or reply.request.conversation != reply.channel.conversation:
            return told
        if reply.cells_to_tell is None:
            reply.cells_to_tell, reply.cells_told = self.strips.read_for(reply), told["reused"]
        tokens = list(islice(reply.cells_to_tell, told["done"] - reply.cells_told))
        reply.cells_told = told["done"]
        return {**told, "tokens": tokens}

    def _tell_strip(self, channel: Channel, ended: LiveReply | None = None) -> None:
        live = [reply for reply in (ended, *self.live_in(channel.conversation)) if reply]
        channel.publish(self.strips.event(channel.conversation, live), kept={"type": "strip", "tokens": None})

    def _finish_or_say_why_not(self, reply: LiveReply) -> None:
        """What cannot be stored is kept, and tried again now and then: see `_look_after`."""
        try:
            self._finish(reply)
        except CannotStoreError as error:
            for told in reply.could_not_be_stored(error):
                logger.warning("reply %s cannot be stored yet: %s", reply.message.id, error.reason)
                reply.channel.publish(told)

    def _finish(self, reply: LiveReply) -> None:
        """Store the whole of it, then say so: whoever reloads at `done` finds it stored."""
        final = reply.final()
        with self._store.transaction():
            self._store.update_message(reply.message.id, fingerprint=reply.message.fingerprint, **final)
            self._store.keep_chances(reply.message.id, fit(reply.chances, len(final["ids"])))
            self._keep_timeline(reply, len(final["ids"]))
        channel = reply.channel
        self.remove(reply)
        channel.publish(reply.done_event(final))
        is_last = not self.live_in(channel.conversation)
        if reply.made_way and is_last:
            self._teller.made_way(channel)
        elif reply.abandoned and is_last:
            self._teller.abandoned(channel, vanished.ABANDONED_AFTER_S)
        if reply.message.answer == 0:
            self._teller.ended(channel, reply.request, reply.finished, reply.forced_marks)
            self._tell_edges(channel, reply.cached_tokens)
        channel.publish({"type": "cache", "cache": self.cache_of(channel.conversation, reply)})
        if reply.request.conversation == channel.conversation:
            self._tell_strip(channel, reply)
        if not is_last:
            return
        state = {"state": "idle"} if self._worker.alive or final["reason"] != Reason.ERROR else \
            {"state": "failed", "text": final["error"]}
        channel.publish({"type": "state", **state})

    def _keep_timeline(self, reply: LiveReply, num_kept: int) -> None:
        before = self._store.timelines([reply.message.id]).get(reply.message.id, []) if reply.recorder.first else []
        run = reply.recorder.run(reply.finished, num_kept, time.monotonic(), self._worker.snapshot())
        self._store.keep_timeline(reply.message.id, [*before, run])

    def _tell_evicted(self, event: Evicted) -> None:
        channel = self._teller.evicted(event)
        if channel is None:
            return
        if event.conversation != channel.conversation:
            self.tell_numbers_soon(channel)
        else:
            with channel.lock:
                self._tell_edges(channel, cached_tokens=0)
                channel.publish({"type": "strip", "tokens": []})

    # --- now and then

    def _look_after(self, going_on: bool) -> None:
        now = time.monotonic()
        if going_on and now - self._stored_at < STORE_EVERY_S:
            return
        self._stored_at = now
        with self._lock:
            replies = list(self._live.values())
            channels, self._numbers_wanted = self._numbers_wanted, set()
        for channel in channels:
            _try(self._tell_numbers, channel)
        for reply in replies:
            if reply.finished is not None:  # it could not be stored when it ended
                _try(self._tell_of, reply, [])
            elif not going_on:
                _try(self._end, reply, Reason.INTERRUPTED)
            elif not self._worker.alive and self._events.empty():
                _try(self._end, reply, Reason.ERROR, ENGINE_IS_GONE)
            else:
                _try(self._store_progress, reply)
        if going_on:
            vanished.stop_unheard(self._worker, replies, now)

    def _tell_numbers(self, channel: Channel) -> None:
        with channel.lock:
            last = self._store.last_message(channel.conversation)
            if last is None:  # deleted meanwhile
                return
            channel.publish({"type": "cache", "cache": self.cache_of(channel.conversation)})
            self._tell_edges(channel)
            self._tell_strip(channel)
            rows = [name for name in self._worker.snapshot().cached_tokens
                    if conversation_of_row(name) == channel.conversation != name]
            if rows and last.choice != Choice.OPEN:  # the engine has not come to it yet
                self.tell_numbers_soon(channel)

    def _end(self, reply: LiveReply, reason: Reason, sentence: str | None = None) -> None:
        self._tell_of(reply, [reply.cut_off(reason, sentence)])

    def _store_progress(self, reply: LiveReply) -> None:
        with reply.channel.lock:
            if reply.dirty and reply.request.reply in self._live:
                with suppress(CannotStoreError):  # if that lasts until the end, it is told then
                    self._store.update_message(reply.message.id, fingerprint=reply.message.fingerprint, **reply.progress())
                    reply.dirty = False


def _try(act: Callable, *arguments) -> None:
    """What goes wrong with one reply is written down, and the others are told of as ever."""
    try:
        act(*arguments)
    except Exception:
        logger.exception("%s failed", act.__name__)
