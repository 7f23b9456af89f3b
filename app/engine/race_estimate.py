"""How long a race takes: before it, from how fast the model runs here, and while it runs, from itself.

    seconds = tokens × what a forward costs whatever its length + positions × what each costs

It must never be shown as a measurement.
"""

from __future__ import annotations

from statistics import median

from app.engine.race_messages import Lane, Pace, Stage

TRUSTED_AFTER_S = 1.0  # of a lane: from then on it is asked how fast it goes
WIDER = 2.0            # times slower in float32 than in a 16-bit type, about


def positions_of(prompt_tokens: int, tokens: int, remembers: bool) -> int:
    """Positions that a lane computes for so many tokens after a prompt."""
    if tokens == 0:
        return 0
    return prompt_tokens + tokens - 1 if remembers else tokens * prompt_tokens + tokens * (tokens - 1) // 2


class Estimate:
    """Of one race. `pace` is None until something was measured."""

    def __init__(self, prompt_tokens: int, max_tokens: int):
        self.prompt_tokens, self.max_tokens = prompt_tokens, max_tokens
        self.pace: Pace | None = None
        self.cached_tokens = self.uncached_tokens = 0
        self._spent_s = {Stage.CACHED: 0.0, Stage.UNCACHED: 0.0}

    def count(self, stage: Stage, seconds: float) -> None:
        """A token of a lane was measured."""
        self._spent_s[stage] += seconds
        if stage is Stage.CACHED:
            self.cached_tokens += 1
        else:
            self.uncached_tokens += 1

    def seconds_left(self) -> float | None:
        if self.pace is None:
            return None
        return sum(self._lane_left(stage, done) for stage, done in
                   ((Stage.CACHED, self.cached_tokens), (Stage.UNCACHED, self.uncached_tokens)))

    def _lane_left(self, stage: Stage, done: int) -> float:
        expected, spent = self._expected(stage, done), self._spent_s[stage]
        factor = spent / expected if spent > TRUSTED_AFTER_S and expected > 0 else 1.0
        return factor * (self._expected(stage, self.max_tokens) - expected)

    def _expected(self, stage: Stage, tokens: int) -> float:
        return self.pace.seconds_for(tokens, positions_of(self.prompt_tokens, tokens, stage is Stage.CACHED))


def pace_of(cached: Lane, uncached: Lane) -> Pace | None:
    """How fast a race went."""
    if not uncached.tokens:
        return None
    token_s = median(cached.seconds[1:] or cached.seconds)
    rest_s = uncached.total_s - len(uncached.tokens) * token_s
    return Pace(token_s, max(0.0, rest_s) / uncached.positions[-1])


def pace_of_running(reading_s: float, read_tokens: int, writing_s: float, bytes_per_number: int) -> Pace:
    """A guess, before any race, from what the running model took to read so many tokens and to write one."""
    slower = WIDER if bytes_per_number < 4 else 1.0
    return Pace(slower * writing_s, slower * max(0.0, reading_s - writing_s) / read_tokens)
