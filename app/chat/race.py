"""One race as its watchers hear of it: where it is, then the whole of what was measured.

The engine's events wait in a queue and are taken by a thread that ends with the race, so that the engine is never
kept waiting. Of the progress only the newest is told. A race that nobody watches any more is stopped.
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import asdict

from app.chat.detokenizer import Detokenizer
from app.chat.hub import Outbox, to_json
from app.chat.publisher import ENGINE_IS_GONE
from app.chat.sentences import sentence
from app.engine.messages import Part, Token
from app.engine.race_messages import Lane, LaneSoFar, RaceFinished, RaceProgress, RaceRequest

logger = logging.getLogger(__name__)

ROUND_S = 0.05            # between two events: progress that comes faster is told together
LOOK_S = 1.0              # how often it is seen whether anybody watches
ABANDONED_AFTER_S = 30.0  # long enough to come back
MISTAKE = sentence("The server made a mistake, which is written in its log.")


class LiveRace:
    """A race of one browser session. `asked` is what it was asked for with; it is told again with the result."""

    def __init__(self, owner: str, asked: dict, worker, ended: Callable[[LiveRace], None]):
        self.id, self.owner, self.asked = secrets.token_urlsafe(9), owner, asked
        self.told: dict = {"type": "race", "race": self.id, "state": "begun", "request": asked["request"]}
        self._worker, self._ended = worker, ended
        self._texts = {"cached": LaneText(worker.tokenizer), "uncached": LaneText(worker.tokenizer)}
        self._events: queue.SimpleQueue = queue.SimpleQueue()
        self._watchers: set[Outbox] = set()
        self._lock = threading.Lock()  # guards `told` and the watchers: who joins hears what is, then all that follows
        self._watched_at = time.monotonic()

    def begin(self, request: RaceRequest) -> None:
        self._worker.race(request, self._events.put)
        threading.Thread(target=self._follow, name="race", daemon=True).start()

    @property
    def seconds_left(self) -> float | None:
        return self.told.get("seconds_left")

    # --- watchers

    def join(self, outbox: Outbox | None) -> None:
        """Listen from now on, after hearing where it is."""
        if outbox is None:
            return
        with self._lock:
            outbox.put(to_json(self.told))
            self._watchers.add(outbox)

    def leave(self, outbox: Outbox) -> None:
        with self._lock:
            if outbox in self._watchers:
                self._watchers.discard(outbox)
                self._watched_at = time.monotonic()

    def _tell(self, event: dict) -> None:
        with self._lock:
            self.told = {"type": "race", "race": self.id, "request": self.asked["request"], **event}
            frame = to_json(self.told)
            self._watchers = {outbox for outbox in self._watchers if outbox.put(frame)}

    # --- its thread

    def _follow(self) -> None:
        try:
            while not isinstance(event := self._next(), RaceFinished):
                if event is not None:
                    self._tell({**progress_event(event, self._texts), "max_tokens": self.asked["max_tokens"]})
                elif not self._watchers and time.monotonic() - self._watched_at > ABANDONED_AFTER_S:
                    self._worker.stop_race(self.id)
                elif not self._worker.alive:
                    event = RaceFinished(self.id, "failed", error=ENGINE_IS_GONE)
                    break
                time.sleep(ROUND_S)
            finished = finished_event(event, self.asked, self._worker.tokenizer)
        except Exception:
            logger.exception("a race could not be followed")
            self._worker.stop_race(self.id)
            finished = {"state": "failed", "text": MISTAKE}
        self._ended(self)  # first: whoever hears of the end may begin another
        self._tell(finished)

    def _next(self) -> object | None:
        """The newest event; None when there was none for a while."""
        event = None
        try:
            event = self._events.get(timeout=LOOK_S)
            while not isinstance(event, RaceFinished):
                event = self._events.get_nowait()
        except queue.Empty:
            pass
        return event


class LaneText:
    """The text of a lane as its tokens come. That of a token is what becomes certain with it; marks have none."""

    def __init__(self, tokenizer):
        self._detokenizer = Detokenizer(tokenizer)
        self._taken = 0
        self.text = ""

    def add(self, token: Token) -> str:
        """-> what this token added."""
        added = "" if token.part in (Part.MARK, Part.END) else self._detokenizer.feed([token.id])
        self.text += added
        self._taken += 1
        return added

    def upto(self, tokens: tuple[Token, ...]) -> str:
        """The text of these, of which each call has those of the call before and perhaps more."""
        for token in tokens[self._taken:]:
            self.add(token)
        return self.text

    def flush(self) -> str:
        return self._detokenizer.flush()


def progress_event(event: RaceProgress, texts: dict[str, LaneText]) -> dict:
    return {"state": str(event.stage), "waiting": event.waiting, "seconds_left": event.seconds_left,
            "cached": so_far_view(event.cached, texts["cached"]),
            "uncached": so_far_view(event.uncached, texts["uncached"])}


def so_far_view(lane: LaneSoFar, text: LaneText) -> dict:
    """A lane that is being measured, for the page; `done`: how many tokens that is."""
    return {"done": len(lane.tokens), "text": text.upto(lane.tokens), "seconds": lane.seconds,
            "positions": lane.positions}


def finished_event(event: RaceFinished, asked: dict, tokenizer) -> dict:
    if event.outcome != "done":
        return {"state": event.outcome, "text": event.error}
    lanes = {"cached": lane_view(event.cached, tokenizer), "uncached": lane_view(event.uncached, tokenizer)}
    computed_in = {"dtype": event.dtype, "running_dtype": event.running_dtype, "needed_bytes": event.needed_bytes,
                   "free_bytes": event.free_bytes}
    compared = comparison(event.cached, event.uncached)
    pace = event.pace and asdict(event.pace)
    return {"state": "done", "result": {**asked, **compared, **computed_in, "pace": pace, **lanes}}


def comparison(cached: Lane, uncached: Lane) -> dict:
    """`speedup` over the tokens that both have; `parts_at`: the first token, counted from 0, that is not the same."""
    ids, others = ([token.id for token in lane.tokens] for lane in (cached, uncached))
    both = min(len(ids), len(others))
    same = ids == others
    parts_at = None if same else next((at for at in range(both) if ids[at] != others[at]), both)
    return {"same": same, "parts_at": parts_at, "speedup": sum(uncached.seconds[:both]) / sum(cached.seconds[:both])}


def lane_view(lane: Lane, tokenizer) -> dict:
    """A lane for the page."""
    text = LaneText(tokenizer)
    texts = [text.add(token) for token in lane.tokens]
    texts[-1] += text.flush()
    tokens = [{"id": token.id, "text": text} for token, text in zip(lane.tokens, texts, strict=True)]
    return {"tokens": tokens, "seconds": [round(seconds, 7) for seconds in lane.seconds], "positions": lane.positions,
            "total_s": lane.total_s, "disturbed": lane.disturbed, "reason": str(lane.reason)}
