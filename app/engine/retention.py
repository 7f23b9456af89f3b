"""Which conversation holds which row of the cache, and what is kept between turns.

Every row is in one of three states, and `free + live + kept = rows` always holds:

        free --acquire--> live --release--> kept --acquire by the same conversation--> live
          ^                                   |
          +---- evicted, or forgotten --------+

A kept row remembers the ids that it holds. The next turn of the same conversation reuses the longest
prefix that is equal, and never the whole prompt: at least its last token is read again, since the logits
after it are what the reply begins with (llama.cpp#1884). A row is never given to another conversation
with anything in it. The cache lives in memory only.

This module moves lengths and owners about; it never computes a key or a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.engine.kv_cache import KVCache
from app.engine.messages import Evicted


@dataclass(frozen=True)
class Lease:
    """A live row: its number, and how many tokens of the prompt it already holds."""
    row: int
    reused: int


@dataclass
class _KeptRow:
    row: int
    ids: tuple[int, ...]


def shared_prefix_length(a: Sequence[int], b: Sequence[int]) -> int:
    """How many ids from the start on are equal in both."""
    shortest = min(len(a), len(b))
    if list(a[:shortest]) == list(b[:shortest]):  # the common case, at the speed of a list comparison
        return shortest
    return next(i for i in range(shortest) if a[i] != b[i])


class TooManyAnswersError(ValueError):
    """More answers to one question than there are rows."""

    def __init__(self, answers: int, rows: int):
        super().__init__(f"{answers} answers at once need as many rows of the cache, and it has {rows}")


class Retention:
    """The rows of one cache. Belongs to the engine thread."""

    def __init__(self, cache: KVCache):
        self.cache = cache
        self.evictions = 0
        self.events: list[Evicted] = []  # since last emptied by whoever tells about them
        self._free = list(range(cache.batch_size))
        self._live: set[int] = set()
        self._kept: dict[str, _KeptRow] = {}  # least recently used first

    @property
    def rows_used(self) -> int:
        return len(self._live) + len(self._kept)

    def kept_tokens(self) -> dict[str, int]:
        """Tokens in each kept row, by conversation."""
        return {conversation: len(kept.ids) for conversation, kept in self._kept.items()}

    def kept_ids(self) -> dict[str, tuple[int, ...]]:
        """What each kept row holds, by conversation."""
        return {conversation: kept.ids for conversation, kept in self._kept.items()}

    def can_acquire(self, num_rows: int) -> bool:
        """Whether so many rows are not live."""
        return len(self._free) + len(self._kept) >= num_rows

    def acquire(self, conversation: str, prompt_ids: Sequence[int]) -> Lease | None:
        """A row for a reply to this prompt, cut to what can be reused; None while all rows are live."""
        kept = self._kept.pop(conversation, None)
        if kept is not None:
            reused = min(shared_prefix_length(kept.ids, prompt_ids), len(prompt_ids) - 1)
            self.cache.cut(kept.row, reused)
            self._live.add(kept.row)
            return Lease(kept.row, reused)
        if not self._free and not self._evict():
            return None
        row = self._free.pop()
        self._live.add(row)
        return Lease(row, 0)

    def release(self, row: int, conversation: str, ids: Sequence[int]) -> None:
        """The reply ended: keep its row, which holds the keys and values of `ids`, for the next turn."""
        length = self.cache.lengths()[row]
        assert length <= len(ids), f"row {row} holds {length} tokens but only {len(ids)} ids are known"
        self._live.remove(row)
        self.forget(conversation)
        if length == 0:
            self._free.append(row)
        else:
            self._kept[conversation] = _KeptRow(row, tuple(ids[:length]))

    def discard(self, row: int) -> None:
        """Give a live row back without keeping what it holds."""
        self._live.remove(row)
        self._clear(row)

    def forget(self, conversation: str) -> None:
        """Free the kept row of a conversation, if it has one."""
        kept = self._kept.pop(conversation, None)
        if kept is not None:
            self._clear(kept.row)

    def rename(self, old: str, new: str) -> None:
        """Let `new` have the kept row of `old`, instead of its own. Nothing happens if `old` has none."""
        if old in self._kept and old != new:
            self.forget(new)
            self._kept[new] = self._kept.pop(old)

    def check(self) -> None:
        """Assert that every row is in exactly one state and that lengths agree with ids."""
        kept_rows = [kept.row for kept in self._kept.values()]
        owners = sorted([*self._free, *self._live, *kept_rows])
        assert owners == list(range(self.cache.batch_size)), \
            f"free {self._free}, live {sorted(self._live)}, kept {kept_rows} do not make {self.cache.batch_size} rows"
        lengths = self.cache.lengths()
        for conversation, kept in self._kept.items():
            assert lengths[kept.row] == len(kept.ids), \
                f"row {kept.row} of {conversation} holds {lengths[kept.row]} tokens, not {len(kept.ids)}"
        assert all(lengths[row] == 0 for row in self._free), f"a free row is not empty: {lengths}"

    def _evict(self) -> bool:
        if not self._kept:
            return False
        conversation = next(iter(self._kept))
        tokens = len(self._kept[conversation].ids)
        self.forget(conversation)
        self.evictions += 1
        self.events.append(Evicted(conversation, tokens))
        return True

    def _clear(self, row: int) -> None:
        self.cache.cut(row, 0)
        self._free.append(row)
