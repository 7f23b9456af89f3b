"""What a race is asked for with, and what it tells. Events go to the sink that was given with the request.

A race makes the same answer twice, in two lanes: one with the cache, one that computes every position anew for
each token. See `race`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.engine.messages import Reason, Token


class Stage(StrEnum):
    """What a race is doing."""
    WIDENING = "widening"    # the weights are made once more in float32
    WARMING = "warming"      # the first forwards of each kind, which are slow
    CACHED = "cached"        # the lane with the cache is measured
    UNCACHED = "uncached"    # the lane without it is measured


@dataclass(frozen=True)
class RaceRequest:
    """`temperature` 0 always takes the likeliest token; otherwise both lanes draw with the same seed."""
    race: str
    prompt_ids: tuple[int, ...]
    max_tokens: int
    seed: int = 42
    temperature: float = 0.0
    top_k: int | None = None


@dataclass(frozen=True)
class LaneSoFar:
    """What is measured of a lane by now: its tokens, the seconds they took together, and the positions computed."""
    tokens: tuple[Token, ...] = ()
    seconds: float = 0.0
    positions: int = 0


@dataclass(frozen=True)
class RaceProgress:
    """Where a race is. `waiting`: for a moment in which nobody reads or writes. `seconds_left` is None until known."""
    race: str
    stage: Stage
    waiting: bool
    cached: LaneSoFar
    uncached: LaneSoFar
    seconds_left: float | None


@dataclass(frozen=True)
class Lane:
    """One measured lane: for each token the seconds that it took, and the positions computed up to and with it."""
    tokens: tuple[Token, ...]
    seconds: tuple[float, ...]
    positions: tuple[int, ...]
    disturbed: int         # tokens between whose slices others were served
    reason: Reason

    @property
    def total_s(self) -> float:
        return sum(self.seconds)


@dataclass(frozen=True)
class Pace:
    """How fast lanes run here: what a token costs besides its positions, and what each position costs."""
    token_s: float
    position_s: float

    def seconds_for(self, tokens: int, positions: int) -> float:
        return tokens * self.token_s + positions * self.position_s


@dataclass(frozen=True)
class RaceFinished:
    """The last event of a race. `outcome` is done, stopped or failed; only one that is done has lanes.

    `dtype` is what was computed in: float32, or the running type where the widened weights had no room (`needed_bytes`
    of `free_bytes`), or where the model cannot be widened (both None).
    """
    race: str
    outcome: str
    cached: Lane | None = None
    uncached: Lane | None = None
    dtype: str = ""
    running_dtype: str = ""
    needed_bytes: int | None = None
    free_bytes: int | None = None
    pace: Pace | None = None  # how fast it went: what the next one is estimated by
    error: str | None = None
