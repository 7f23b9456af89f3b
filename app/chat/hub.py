"""Who hears what: a log of events for each conversation, and those who listen to it.

Every event of a conversation has the next `seq`, which never goes back, not even over a restart. The last
events are kept, so that a listener who was away can go on where they were; whoever was away longer gets a
snapshot instead. A listener who does not keep up is dropped, and may come back the same way. An event is
made into JSON once, whoever many listen. This module must never wait for a listener.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from app.chat.errors import CannotStoreError, NotFoundError
from app.chat.store import Store
from app.chat.texts import clean

EVENTS_REPLAYED = 500      # more than these missed: a snapshot is shorter
EVENTS_KEPT = EVENTS_REPLAYED  # of one conversation
CHANNELS_WITH_EVENTS = 64  # conversations whose last events are kept
SEQ_RESERVED = 1000        # numbers written ahead, so that not each event is a write to disk
OUTBOX_EVENTS = 4000
OUTBOX_BYTES = 16 * 2**20


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def to_json(event: dict) -> str:
    """An event as a frame. Half a surrogate pair cannot be sent, so none is in it."""
    frame = _encode(event)
    return frame if frame.isascii() else clean(frame)


class Outbox:
    """What waits to be sent to one listener. `wake` is called, on any thread, when something was put in."""

    def __init__(self, owner: str, wake: Callable[[], None] = lambda: None, lists_chats: bool = False):
        self.owner, self.lists_chats = owner, lists_chats
        self.channels: set[Channel] = set()
        self.overflowed = False
        self.closed = False  # whoever sends should say goodbye
        self._wake = wake
        self._waiting: deque[str] = deque()
        self._bytes = 0

    def put(self, frame: str) -> bool:
        """False when the listener has not kept up, and gets nothing more."""
        if self.overflowed or len(self._waiting) >= OUTBOX_EVENTS or self._bytes + len(frame) > OUTBOX_BYTES:
            self.overflowed = True
            self._wake()
            return False
        self._bytes += len(frame)
        self._waiting.append(frame)
        self._wake()
        return True

    def take(self) -> str | None:
        try:
            frame = self._waiting.popleft()
        except IndexError:
            return None
        self._bytes -= len(frame)
        return frame

    def close(self) -> None:
        self.closed = True
        self._wake()


class Channel:
    """The log of one conversation. `lock` guards its log and whatever is told in it: a snapshot taken under
    it is exactly what its `seq` says."""

    def __init__(self, hub: Hub, conversation: str, seq: int):
        self.conversation, self.seq = conversation, seq
        self.lock = threading.RLock()
        self.listeners: set[Outbox] = set()
        self.left_alone_since_s = time.monotonic()  # when the last listener went
        self._hub = hub
        self._reserved = seq
        self._events: deque[str] = deque(maxlen=EVENTS_KEPT)

    def publish(self, event: dict, kept: dict | None = None) -> None:
        """Give an event to all who listen. `event` has a type and its own fields. `kept` is what is given in its place
        to those who were away: what is large is asked for by whoever still wants it."""
        with self.lock:
            self.seq += 1
            if self.seq > self._reserved:
                self._reserve(self.seq + SEQ_RESERVED)
            frame = to_json({"type": event["type"], "conversation": self.conversation, "seq": self.seq, **event})
            self._events.append(frame if kept is None else to_json({"conversation": self.conversation, "seq": self.seq, **kept}))
            for outbox in list(self.listeners):
                if not outbox.put(frame):
                    self.leave(outbox)
        self._hub.was_used(self)

    def join(self, outbox: Outbox, after: int | None, snapshot: Callable[[], dict]) -> None:
        """Listen from now on, first being given what came after `after`; with None nothing that was.

        Where that is no longer kept, `snapshot()`, called under the lock, stands for all of it.
        """
        with self.lock:
            if after is not None and outbox not in self.listeners:
                missed = self._after(after)
                frames = [to_json({"seq": self.seq, **snapshot()})] if missed is None else missed
                for frame in frames:
                    outbox.put(frame)
            self.listeners.add(outbox)
            outbox.channels.add(self)

    def leave(self, outbox: Outbox) -> None:
        with self.lock:
            self.listeners.discard(outbox)
            outbox.channels.discard(self)
            if not self.listeners:
                self.left_alone_since_s = time.monotonic()

    def settle(self) -> None:
        """Write down the number that was really reached."""
        with self.lock:
            if self.seq != self._reserved:
                self._reserve(self.seq)

    def _reserve(self, seq: int) -> None:
        """Where it cannot be written down, events are told all the same, and it is tried again with the next."""
        try:
            self._hub.store.update_conversation(self.conversation, seq=seq)
            self._reserved = seq
        except CannotStoreError:
            pass

    def forget_events(self) -> None:
        """Without the lock: this is called by whoever holds another channel's."""
        self._events = deque(maxlen=EVENTS_KEPT)

    def _after(self, seq: int) -> list[str] | None:
        """The events after `seq`; None where they are not all kept, or too many."""
        events = list(self._events)
        missed = self.seq - seq
        if missed == 0:
            return []
        if missed < 0 or missed > min(len(events), EVENTS_REPLAYED):
            return None
        return events[-missed:]


class Hub:
    """The channels of all conversations."""

    def __init__(self, store: Store):
        self.store = store
        self._lock = threading.Lock()
        self._channels: dict[str, Channel] = {}
        self._recent: OrderedDict[Channel, None] = OrderedDict()
        self._outboxes: set[Outbox] = set()

    def channel(self, conversation: str) -> Channel:
        """The one channel of a conversation. NotFoundError where there is no such conversation."""
        with self._lock:
            channel = self._channels.get(conversation)
            if channel is None:
                stored = self.store.conversation(conversation)
                if stored is None:
                    raise NotFoundError()
                channel = self._channels[conversation] = Channel(self, conversation, stored.seq)
            return channel

    def begin(self, conversation: str) -> Channel:
        """The channel of a conversation that is about to be stored."""
        with self._lock:
            channel = self._channels[conversation] = Channel(self, conversation, 0)
            return channel

    def was_used(self, channel: Channel) -> None:
        """Only so many conversations keep their events in memory: those used last."""
        with self._lock:
            self._recent[channel] = None
            self._recent.move_to_end(channel)
            forgotten = self._recent.popitem(last=False)[0] if len(self._recent) > CHANNELS_WITH_EVENTS else None
        if forgotten is not None:
            forgotten.forget_events()

    def drop(self, conversation: str) -> None:
        """The conversation is gone."""
        with self._lock:
            channel = self._channels.pop(conversation, None)
            self._recent.pop(channel, None)
        if channel is not None:
            for outbox in list(channel.listeners):
                channel.leave(outbox)

    # --- listeners

    @property
    def num_connected(self) -> int:
        return len(self._outboxes)

    def connect(self, outbox: Outbox) -> None:
        with self._lock:
            self._outboxes.add(outbox)

    def disconnect(self, outbox: Outbox) -> None:
        with self._lock:
            self._outboxes.discard(outbox)
        for channel in list(outbox.channels):
            channel.leave(outbox)

    def tell_session(self, owner: str, conversation: str, event: dict, but: Outbox | None = None) -> None:
        """To those of a browser session who list its chats, `but` one, and those that listen to the conversation and
        hear it there. It has no `seq`."""
        with self._lock:
            channel = self._channels.get(conversation)
            heard_by = channel.listeners if channel else ()
            outboxes = [box for box in self._outboxes if box.owner == owner and box.lists_chats and box is not but
                        and box not in heard_by]
        frame = to_json({**event, "type": "listed", "conversation": conversation}) if outboxes else ""
        for outbox in outboxes:
            outbox.put(frame)

    def close(self, owner: str | None = None) -> None:
        """Say goodbye to the listeners of one browser session, or to all."""
        with self._lock:
            outboxes = [outbox for outbox in self._outboxes if owner in (None, outbox.owner)]
        for outbox in outboxes:
            outbox.close()

    def settle(self) -> None:
        """Before the end: no number is lost."""
        for channel in list(self._channels.values()):
            channel.settle()
