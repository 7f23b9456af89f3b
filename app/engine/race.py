"""The race: the same answer twice, with the cache and without, each lane measured alone.

It runs on the engine thread in slices, one between two steps of the scheduler, and a slice is at most one
forward of a chunk, or a part of one: whoever chats meanwhile waits no longer than for somebody's long paste. A
token is begun only in a quiet moment, when nobody reads or writes. Where that does not come for long, the race
goes on between the steps of the others, and says which tokens were disturbed. Only its own slices are on the clock.

        widening ──► warming ──► lane with the cache ──► lane without it ──► finished, memory given back

Both lanes run in float32, so that both ways give the same tokens: the running weights are widened for the race
and let go of after it. Where that does not fit, or the model cannot be widened, they run in the running type.

A race belongs to the scheduler. It must never touch the cache of the conversations, and never keeps a tensor
after its end.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Generator

import torch

from app.engine.kv_cache import KVCache
from app.engine.model_runner import READ_CHUNK_TOKENS, READ_S, ModelRunner
from app.engine.race_estimate import Estimate, pace_of
from app.engine.race_messages import Lane, LaneSoFar, Pace, RaceFinished, RaceProgress, RaceRequest, Stage
from app.engine.sequence import ReplyRules, Sequence
from app.engine.spare_memory import free_bytes, give_back

logger = logging.getLogger(__name__)

PATIENCE_S = 15.0        # how long a race waits for quiet moments, all of them together
ROOM_TO_SPARE = 1.25     # times what the widened weights take: rows and the system want some, too
WARM_UP_FORWARDS = 3     # of each kind, before the clock


class Race:
    """Call `advance` between the steps of others until `ended`. `sink` gets RaceProgress, and RaceFinished last."""

    def __init__(self, request: RaceRequest, model, rules: ReplyRules, context: int, sink: Callable[[object], None]):
        self.request, self.ended = request, False
        self._model, self._rules, self._context, self._sink = model, rules, context, sink
        self._device = model.get_device()
        self._quiet, self._patience_s = True, PATIENCE_S
        self._disturbances = 0   # steps so far in which others had something to do
        self._estimate = Estimate(len(request.prompt_ids), request.max_tokens)
        self._so_far = {Stage.CACHED: LaneSoFar(), Stage.UNCACHED: LaneSoFar()}
        self._needed_bytes: int | None = None  # told where the widened weights do not fit
        self._free_bytes: int | None = None
        self._slices = self._run()

    # --- for the scheduler

    def advance(self, quiet: bool) -> None:
        """One slice. `quiet`: nobody else reads, writes or waits."""
        self._quiet = quiet
        self._disturbances += not quiet
        finished = None
        try:
            next(self._slices)
        except StopIteration as end:
            finished = end.value
        except Exception as error:
            logger.error("a race failed", exc_info=error)
            finished = RaceFinished(self.request.race, "failed", error=f"The engine failed at this race: {error}")
        if finished is not None:
            self._finish(finished)

    def stop(self) -> None:
        """End it now, between two slices."""
        if not self.ended:
            self._finish(RaceFinished(self.request.race, "stopped"))

    def _finish(self, event: RaceFinished) -> None:
        self.ended = True
        self._slices.close()  # and what it holds is let go of
        self._model = None
        give_back(self._device)
        self._tell(event)

    def _tell(self, event: object) -> None:
        try:
            self._sink(event)
        except Exception:
            logger.exception("the sink of race %s failed", self.request.race)

    def _tell_progress(self, stage: Stage, waiting: bool = False) -> None:
        self._tell(RaceProgress(self.request.race, stage, waiting, self._so_far[Stage.CACHED],
                                self._so_far[Stage.UNCACHED], self._estimate.seconds_left()))

    # --- its course

    def _run(self) -> Generator[None, None, RaceFinished]:
        self._tell_progress(Stage.WIDENING)
        model = yield from self._widen()
        runner = ModelRunner(model)
        row = KVCache.for_model(model, 1, min(self._context, len(self.request.prompt_ids) + self.request.max_tokens))
        yield from self._warm_up(runner, row)
        cached = yield from self._measure(Stage.CACHED, runner, row)
        row.reset()
        self._estimate.max_tokens = len(cached.tokens)
        uncached = yield from self._measure(Stage.UNCACHED, runner, row)
        running_dtype = KVCache.for_model(self._model, 1, 1).dtype
        return RaceFinished(self.request.race, "done", cached, uncached, _name(row.dtype), _name(running_dtype),
                            self._needed_bytes, self._free_bytes, pace_of(cached, uncached))

    def _widen(self) -> Generator[None, None, object]:
        """The model in float32, where it can be had; else the model that runs."""
        if not hasattr(self._model, "float32_twin"):
            return self._model
        needed, free = self._model.float32_twin_bytes, free_bytes(self._device)
        if needed and free is not None and free < ROOM_TO_SPARE * needed:
            self._needed_bytes, self._free_bytes = needed, free
            return self._model
        try:
            return (yield from self._model.float32_twin())
        except (MemoryError, RuntimeError) as error:  # a device that is full says it with either
            logger.warning("the weights could not be widened for a race: %s", error)
            self._needed_bytes, self._free_bytes = needed, free
        give_back(self._device)
        return self._model

    def _warm_up(self, runner: ModelRunner, row: KVCache) -> Generator[None, None, None]:
        """The first forwards of each kind are slow. What the last ones took is what the estimate begins with."""
        self._tell_progress(Stage.WARMING)
        *first, last = self.request.prompt_ids[:READ_CHUNK_TOKENS]
        for _ in range(WARM_UP_FORWARDS):
            if first:
                yield from self._compute(runner, first, row)
                yield
            _, token_s = yield from self._compute(runner, [last], row)
            row.reset()
            yield
            _, chunk_s = yield from self._compute(runner, [*first, last], None)
            yield
        self._estimate.pace = Pace(token_s, max(0.0, chunk_s - token_s) / (1 + len(first)))

    def _measure(self, stage: Stage, runner: ModelRunner, row: KVCache) -> Generator[None, None, Lane]:
        """One lane: the prompt, then token by token. A token's time is that of its own slices."""
        request, remembers = self.request, stage is Stage.CACHED
        sequence = Sequence(request.prompt_ids, self._rules, limit=self._context, temperature=request.temperature,
                            top_k=request.top_k, max_tokens=request.max_tokens, seed=request.seed, device=self._device)
        tokens, seconds, positions, disturbed, computed = [], [], [], 0, 0
        self._tell_progress(stage)
        while not sequence.finished:
            yield from self._await_quiet(stage)
            disturbances, token_s = self._disturbances - (not self._quiet), 0.0
            ids = [sequence.last_id] if remembers and tokens else sequence.all_ids
            if not remembers:
                row.reset()
            start = 0
            while start < len(ids):
                if start:
                    yield
                # a short text is computed without any cache; a longer one in pieces, in a row that is emptied each time
                cache = row if remembers or len(ids) > READ_CHUNK_TOKENS else None
                chunk = runner.chunk(ids, start)
                logits, chunk_s = yield from self._compute(runner, chunk, cache)
                start += len(chunk)
                token_s += chunk_s
            began = time.perf_counter()
            tokens.append(sequence.choose(logits))  # waits for a device that computes by itself
            seconds.append(token_s + time.perf_counter() - began)
            computed += len(ids)
            positions.append(computed)
            disturbed += self._disturbances > disturbances
            self._estimate.count(stage, seconds[-1])
            self._so_far[stage] = LaneSoFar(tuple(tokens), sum(seconds), computed)
            self._tell_progress(stage)
            yield
        return Lane(tuple(tokens), tuple(seconds), tuple(positions), disturbed, sequence.reason)

    def _compute(self, runner: ModelRunner, ids: list[int],
                 cache: KVCache | None) -> Generator[None, None, tuple[torch.Tensor, float]]:
        """One forward, in parts while others are served -> logits (1, V), and the seconds that it took by itself."""
        forward = runner.begin([ids], cache)
        while (logits := forward.advance(math.inf if self._quiet else time.perf_counter() + READ_S)) is None:
            yield
        began = time.perf_counter()
        logits[0, 0].item()  # a device that computes by itself is waited for
        return logits, forward.seconds + time.perf_counter() - began

    def _await_quiet(self, stage: Stage) -> Generator[None, None, None]:
        told = False
        while not self._quiet and self._patience_s > 0:
            if not told:
                self._tell_progress(stage, waiting=True)
                told = True
            began = time.perf_counter()
            yield
            self._patience_s -= time.perf_counter() - began


def _name(dtype) -> str:
    return str(dtype).removeprefix("torch.")
