"""The timelines of a file that is taken in: see timeline.py for what they hold.

Each reply's runs are told again in order, so what only rises there has to rise here: a short file could else become a
replay that is a thousand times as long. This module must never store anything.
"""

from __future__ import annotations

from app.chat.import_checks import Wrong, flag_of, list_of, number_of, numbers_of, text_of
from app.chat.timeline import MODEL_NUMBERS, MODEL_TEXTS
from app.engine.messages import ToolState

MAX_RUNS, MAX_CALLS, MAX_READS, MAX_TIMES, MAX_LAYERS = 1_000, 10_000, 10_000, 2_000_000, 10_000
MAX_EDGES = 5_000_000      # told in a replay, one a run for each message so far: 4,000 messages of one run each have 4 million
MAX_READS_IN_ALL = 100_000
MAX_MS = 10**9
STATES = tuple(state.value for state in ToolState)


class Timelines:
    """Reads those of one file, and knows how much there is to tell in all of them."""

    def __init__(self):
        self._num_edges = self._num_reads = 0

    def runs_of(self, raw: dict, place: str, num_tokens: int, num_messages: int) -> list[dict]:
        """Those of a reply of `num_tokens`, which is the `num_messages`-th message. Raises Wrong."""
        where = f"{place}.timeline"
        runs = [_run(run, where, num_tokens) for run in list_of(raw, "timeline", where, MAX_RUNS)]
        _check_calls([call for run in runs for call in run["calls"]], where)
        self._num_edges += len(runs) * num_messages
        self._num_reads += sum(len(run["reads"]) for run in runs)
        if self._num_edges > MAX_EDGES or self._num_reads > MAX_READS_IN_ALL:
            raise Wrong(where)
        return runs


def _run(raw: object, where: str, num_tokens: int) -> dict:
    if not isinstance(raw, dict):
        raise Wrong(where)
    run = {name: number_of(raw.get(name), where, MAX_TIMES) for name in ("first", "prompt", "reused", "cached", "limit")}
    run["ended"] = number_of(raw.get("ended"), where, MAX_MS)
    run["use_cache"] = flag_of(raw, "use_cache", where)
    for name in ("times", "shown"):
        run[name] = [number_of(value, where, MAX_MS) for value in list_of(raw, name, where, MAX_TIMES)]
    if len(run["times"]) != len(run["shown"]) or run["first"] + len(run["times"]) > num_tokens:
        raise Wrong(where)
    if run["reused"] > run["prompt"]:
        raise Wrong(where)
    run["reads"] = _reads(raw, where, run["prompt"])
    run["calls"] = [_call(call, where) for call in list_of(raw, "calls", where, MAX_CALLS)]
    run["model"] = _model(raw.get("model"), where)
    return run


def _reads(raw: dict, where: str, prompt: int) -> list[list[int]]:
    """Each time more of the prompt is there, up to the whole of it."""
    reads = [numbers_of(pair, where, (MAX_MS, prompt)) for pair in list_of(raw, "reads", where, MAX_READS)]
    for (before_ms, before), (now_ms, now) in zip(reads, reads[1:], strict=False):
        if now_ms < before_ms or now <= before:
            raise Wrong(where)
    return reads


def _call(raw: object, where: str) -> list:
    if not isinstance(raw, list) or len(raw) != 3 or raw[2] not in STATES:
        raise Wrong(where)
    return [*numbers_of(raw[:2], where, (MAX_TIMES, MAX_CALLS)), raw[2]]


def _check_calls(calls: list[list], where: str) -> None:
    """One call of the calculator after the other, each of which begins once and ends once."""
    number, state = -1, None
    for _, next_number, next_state in calls:
        is_end_of_same = next_number == number and state == ToolState.WRITING.value != next_state
        if next_number <= number and not is_end_of_same:
            raise Wrong(where)
        number, state = next_number, next_state


def _model(raw: object, where: str) -> dict:
    if not isinstance(raw, dict):
        raise Wrong(where)
    model = {**{name: text_of(raw, name, where, 200) for name in MODEL_TEXTS},
             **{name: number_of(raw.get(name), where, 2**53 - 1) for name in MODEL_NUMBERS}}
    if raw.get("windows") is not None:
        model["windows"] = [number_of(window, where, MAX_TIMES) for window in list_of(raw, "windows", where, MAX_LAYERS)]
    return model
