"""Who races, and what may be raced: one race at a time, of a size that can be measured in a few minutes.

What was measured stays to be looked at again by the browser session that asked for it, until it asks for another.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from app.chat.chats import Caller
from app.chat.conversation import Message
from app.chat.errors import ChatError
from app.chat.hub import Outbox, to_json
from app.chat.prompt import PromptBuilder
from app.chat.race import LiveRace
from app.chat.texts import check_text
from app.engine.race_estimate import positions_of
from app.engine.race_messages import RaceRequest

TOKENS, SEED = 100, 42         # where nothing else is asked for
LONGEST_ANSWER_TOKENS = 400
MOST_POSITIONS = 100_000       # of the lane without the cache: minutes, on a small machine
LONGEST_TEXT_BYTES = 64_000    # longer texts are refused uncounted: they could not be raced
RESULTS_KEPT = 64


class Races:
    def __init__(self, worker, replies):
        self._worker, self._replies = worker, replies
        self._lock = threading.Lock()
        self._running: LiveRace | None = None
        self._last: OrderedDict[str, LiveRace] = OrderedDict()  # by browser session

    def start(self, caller: Caller, text: str, max_tokens: int | None = None, seed: int | None = None,
              temperature: float | None = None, request: str | None = None) -> None:
        """Measure a race; `caller` hears of it. `request` makes a repeat harmless. Raises ChatError."""
        text = check_text(text)
        max_tokens, seed = TOKENS if max_tokens is None else max_tokens, SEED if seed is None else seed
        self._replies.wait_until_ready()
        settings = self._replies.defaults.changed_by({"temperature": temperature or 0.0, "seed": seed})
        prompt_ids = self._check_size(text, max_tokens, settings.system)
        asked = {"text": text, "max_tokens": max_tokens, "prompt_tokens": len(prompt_ids), "seed": seed,
                 "temperature": settings.temperature, "model": self._worker.snapshot().model.name, "request": request}
        with self._lock:
            known = self._last.get(caller.owner)
            if known is not None and request is not None and known.asked["request"] == request:
                known.join(caller.outbox)
                return
            self._check_free()
            race = self._running = LiveRace(caller.owner, asked, self._worker, self._ended)
            self._last[caller.owner] = race
            self._last.move_to_end(caller.owner)
            if len(self._last) > RESULTS_KEPT:
                self._last.popitem(last=False)
        race.join(caller.outbox)
        race.begin(RaceRequest(race.id, tuple(prompt_ids), max_tokens, seed, settings.temperature, settings.top_k))

    def _check_size(self, text: str, max_tokens: int, system: str | None) -> list[int]:
        """The ids of the prompt, if it can be raced."""
        if not 1 <= max_tokens <= LONGEST_ANSWER_TOKENS:
            raise ChatError("race_length", "An answer in a race has from 1 to {limit} tokens.",
                            limit=LONGEST_ANSWER_TOKENS)
        if len(text.encode()) > LONGEST_TEXT_BYTES:
            raise ChatError("race_too_long", "This question is too long for a race: {bytes:size}, and {limit:size} is "
                            "the most.", bytes=len(text.encode()), limit=LONGEST_TEXT_BYTES)
        prompt_ids = PromptBuilder(self._worker.tokenizer).build([Message("", 0, "user", text=text)], system).ids
        context = self._worker.snapshot().context
        if len(prompt_ids) + max_tokens > context:
            raise ChatError("race_too_long", "This question is {tokens:tokens} with the chat's own marks; with an answer "
                            "of {max_tokens} it is more than the {limit} that the model can hold.",
                            tokens=len(prompt_ids), max_tokens=max_tokens, limit=context)
        positions = positions_of(len(prompt_ids), max_tokens, remembers=False)
        if positions > MOST_POSITIONS:
            raise ChatError("race_too_long", "Without the cache this race would compute {positions} tokens, and {limit} "
                            "is the most. Take a shorter question, or a shorter answer.",
                            positions=positions, limit=MOST_POSITIONS)
        return prompt_ids

    def _check_free(self) -> None:
        if self._running is None:
            return
        left = self._running.seconds_left
        if left is None:
            raise ChatError("race_busy", "Another race is being measured, and there is one at a time. "
                            "Try again in a moment.")
        raise ChatError("race_busy", "Another race is being measured, and there is one at a time. "
                        "It takes about {seconds} s more.", seconds=max(1, round(left)))

    def open(self, caller: Caller, race: str) -> None:
        """Hear again of a race of one's own: where it is, or what was measured."""
        known = self._last.get(caller.owner)
        if known is not None and known.id == race:
            known.join(caller.outbox)
        elif caller.outbox is not None:
            caller.outbox.put(to_json({"type": "race", "race": race, "state": "gone"}))

    def stop(self, caller: Caller, race: str) -> None:
        """End a race of one's own. One that has ended, or is another's, is left alone."""
        running = self._running
        if running is not None and running.id == race and running.owner == caller.owner:
            self._worker.stop_race(race)

    def leave(self, outbox: Outbox) -> None:
        """A listener is gone."""
        for race in list(self._last.values()):
            race.leave(outbox)

    def forget(self, owner: str) -> None:
        """What a browser session has raced is gone, and a race that it runs is stopped."""
        with self._lock:
            race = self._last.pop(owner, None)
        if race is not None:
            self._worker.stop_race(race.id)

    def _ended(self, race: LiveRace) -> None:
        with self._lock:
            if self._running is race:
                self._running = None
