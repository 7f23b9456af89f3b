"""The small frozen messages between the engine thread and everybody else.

Commands go in through `EngineWorker.submit`, `cancel` and `forget`; events come out through the sink
that was given with the request. A sink is called on the engine thread: it must return at once (put the
event in a queue) and must not raise. All numbers are counts of tokens unless their name has a unit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum


class Reason(StrEnum):
    """Why a reply ended."""
    STOP = "stop"                  # the model wrote an end token
    LENGTH = "length"              # max_tokens were written
    CANCELLED = "cancelled"        # somebody pressed stop
    CONTEXT_FULL = "context_full"  # the row has no room for another token
    INTERRUPTED = "interrupted"    # the process ended in the middle of it
    ERROR = "error"                # the engine failed


class Part(StrEnum):
    """What a token of a reply belongs to."""
    TEXT = "text"              # prose that is shown
    MARK = "mark"              # one of the four tool marks
    EXPRESSION = "expression"  # what the calculator is asked
    OUTPUT = "output"          # what the calculator answered
    END = "end"                # the token that ends the reply


class ToolState(StrEnum):
    WRITING = "writing"
    DONE = "done"
    REFUSED = "refused"
    UNFINISHED = "unfinished"


# --- in

@dataclass(frozen=True)
class Request:
    """One reply to be made. `reply` names it in every event; `conversation` names the row that is kept
    for its next turn. `prompt_ids` is the whole conversation up to where the model begins to write;
    the longest prefix of it that the conversation's row already holds is not read again."""
    reply: str
    conversation: str
    prompt_ids: tuple[int, ...]
    temperature: float = 1.0
    top_k: int | None = None
    max_tokens: int | None = None  # None: as many as fit
    seed: int = 42
    use_cache: bool = True


# --- out

@dataclass(frozen=True)
class Queued:
    reply: str
    place: int  # 1 is next


@dataclass(frozen=True)
class Reading:
    """The prompt is being read: `done` of `total` tokens, `reused` of which were remembered. The others took `seconds`
    to read so far."""
    reply: str
    done: int
    total: int
    reused: int
    seconds: float = field(default=0.0, compare=False)
    at_s: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True)
class Token:
    """One token of the reply. `position` counts from the start of the conversation.

    Of a sampled one, `chance` is how likely the model found that token, from 0 to 1, and `runners_up` are the three likeliest
    others as (id, chance): at temperature 1 and before top-k, whatever it was drawn with (see `chances`)."""
    id: int
    position: int
    forced: bool
    part: Part
    chance: float | None = None
    runners_up: tuple[tuple[int, float], ...] = ()
    at_s: float = field(default_factory=time.monotonic, compare=False)  # when it was made, on the clock that only rises


@dataclass(frozen=True)
class ToolCall:
    """State of the `index`-th tool call of a reply, counted from 0; sent at each change of state."""
    reply: str
    index: int
    state: ToolState
    expression: str = ""
    result: str | None = None
    reason: str | None = None    # why it was refused, for a person
    refusal: dict | None = None  # the same as a sentence with slots and its figures, for other languages
    written_tokens: int = 0      # sampled: start mark, expression, end mark
    forced_tokens: int = 0       # put in: output marks and result
    written_marks: int = 0       # how many of the written ones are marks
    forced_marks: int = 0        # and of those put in


@dataclass(frozen=True)
class Tokens:
    """Tokens that a step added to the reply, in order, with the counts after them."""
    reply: str
    tokens: tuple[Token, ...]
    counts: Counts


@dataclass(frozen=True)
class Counts:
    """The numbers of one reply so far, and of its row."""
    cached: int = 0         # tokens in the conversation's row now
    reused: int = 0
    read: int = 0
    written: int = 0        # sampled
    forced: int = 0
    without_cache: int = 0  # positions that the reference way computes for the same tokens


@dataclass(frozen=True)
class Timing:
    """Seconds, from the submission of the request. A rate is None where nothing was read or written."""
    time_to_first_token_s: float | None = None
    read_tokens_per_s: float | None = None
    write_tokens_per_s: float | None = None


@dataclass(frozen=True)
class Finished:
    """The last event of a reply. `ids` and `masks` (1 sampled, 0 forced) are the reply as it was made, its
    end token included. `kept_ids` is what stands for it in later turns: the same, but never with an open
    tool block, and without the end token where none was written."""
    reply: str
    reason: Reason
    ids: tuple[int, ...]
    masks: tuple[int, ...]
    kept_ids: tuple[int, ...]
    counts: Counts
    timing: Timing
    seed: int
    error: str | None = None  # a sentence for a person, with reason `error`


@dataclass(frozen=True)
class Evicted:
    """A kept row was given to another conversation. Goes to the worker's own sink."""
    conversation: str
    tokens: int


@dataclass(frozen=True)
class PoolNumbers:
    rows: int = 0
    rows_used: int = 0
    tokens: int = 0
    bytes_used: int = 0
    bytes_reserved: int = 0
    evictions: int = 0


@dataclass(frozen=True)
class ModelNumbers:
    name: str = ""
    adapter: str = ""           # what was added to the published weights, by name
    n_layer: int = 0
    n_head: int = 0
    n_kv_head: int = 0
    head_dim: int = 0
    weights_dtype: str = ""
    cache_dtype: str = ""
    bytes_per_element: int = 0
    bytes_per_token: int = 0
    weight_bytes: int = 0
    windows: tuple[int | None, ...] = ()  # of each layer, how far it looks back; None: over everything


@dataclass(frozen=True)
class Snapshot:
    """What the engine thread last published: safe to read from any thread, never changed."""
    state: str = "loading"  # loading | ready | failed | stopped
    failure: str | None = None
    context: int = 0        # tokens a conversation may hold
    pool: PoolNumbers = PoolNumbers()
    model: ModelNumbers = ModelNumbers()
    cached_tokens: dict[str, int] = field(default_factory=dict)  # conversation -> tokens in its row
    kept_ids: dict[str, tuple[int, ...]] = field(default_factory=dict)  # conversation -> what its kept row holds
    queued: tuple[str, ...] = ()   # replies waiting, next first
    steps: int = 0                 # steps done since the start
