"""The engine thread: commands in, events and snapshots out.

One thread owns the model, the cache and all randomness; nothing else touches a tensor. Others hand it
commands through a queue and never wait for it: `submit`, `cancel` and `forget` return at once. What
happens comes back through sinks, and `snapshot` is the last picture that the thread published.

No lock is held while a reply streams. A sink is called on the engine thread and must return at once.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import attrgetter

import torch

from app.engine.kv_cache import KVCache
from app.engine.messages import Counts, Finished, ModelNumbers, Reason, Request, Snapshot, Timing
from app.engine.model_runner import ModelRunner
from app.engine.race_messages import Pace, RaceFinished, RaceRequest
from app.engine.retention import TooManyAnswersError
from app.engine.sampling import check_sampling
from app.engine.scheduler import Scheduler
from app.engine.sequence import EmptyPromptError, PromptTooLongError
from app.engine.warm_up import warm_up

logger = logging.getLogger(__name__)

# Torch lets go of the interpreter at every operation and must get it back hundreds of times a token.
# With Python's own 5 ms a busy web thread could keep it that long each time.
SWITCH_INTERVAL_S = 0.0005


class QueueFullError(RuntimeError):
    """Too many replies are waiting; the request was not taken."""


class CacheTooSmallError(ValueError):
    """Not even one conversation fits into the memory that the cache may take."""


class EngineWorker:
    """`load()` gives (model, tokenizer) and runs on the engine thread, after `start`.

    `rows` conversations of at most `context` tokens fit in the cache; with `cache_bytes`, as many as fit in so
    many bytes instead. `on_event` is the sink for what
    belongs to no request (Evicted). `warm_up` runs the model once before it is called ready.
    """

    def __init__(self, load: Callable[[], tuple[object, object]], *, rows: int = 8, context: int = 2048,
                 cache_bytes: int | None = None, max_queue: int = 64, warm_up: bool = True,
                 on_event: Callable[[object], None] | None = None):
        self.model = self.tokenizer = None
        self._load, self._rows, self._context, self._max_queue, self._warm_up = load, rows, context, max_queue, warm_up
        self._cache_bytes = cache_bytes
        self.on_event = on_event or (lambda event: None)
        self.race_pace: Pace | None = None  # how fast a race would go, as far as is known; for any thread to read
        self._commands: queue.SimpleQueue = queue.SimpleQueue()
        self._ready = threading.Event()
        self._snapshot = Snapshot()
        self._unfinished = 0
        self._lock = threading.Lock()  # guards _unfinished alone, for an instant
        self._scheduler: Scheduler | None = None
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    # --- any thread

    def start(self) -> None:
        """Start the engine thread. After a fork only: threads and locks do not survive one."""
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Ask the thread to end; replies in the making end as interrupted."""
        self._commands.put(None)
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def wait_ready(self, timeout_s: float | None = None) -> Snapshot:
        """Wait until the model is loaded and warm, or has failed to load."""
        self._ready.wait(timeout_s)
        return self._snapshot

    def submit(self, request: Request, sink: Callable[[object], None], copies: Sequence[Request] = ()) -> None:
        """Ask for a reply. Every taken request gets exactly one Finished, as its last event.

        `copies` are further answers to the same prompt, which is read once; each has its own reply id,
        seed, and conversation, under which its row is kept until `adopt` or `forget`.
        Raises EmptyPromptError, PromptTooLongError, SamplingError, TooManyAnswersError or QueueFullError,
        and then takes nothing.
        """
        with self.place_for(request, copies) as begin:
            begin(sink)

    @contextmanager
    def place_for(self, request: Request, copies: Sequence[Request] = ()) -> Iterator[Callable[[Callable[[object], None]], None]]:
        """As `submit`, in two steps: a place among the waiting is held while more is done for the request, then
        `begin(sink)` hands it over and cannot be refused. Without that the place is free again."""
        if not request.prompt_ids:
            raise EmptyPromptError("there is no text to answer: the prompt has no tokens")
        check_sampling(request.temperature, request.top_k)
        context = self._snapshot.context
        if context and len(request.prompt_ids) > context:
            raise PromptTooLongError(len(request.prompt_ids), context)
        if 1 + len(copies) > self._rows:
            raise TooManyAnswersError(1 + len(copies), self._rows)
        with self._lock:
            if self._unfinished >= self._rows + self._max_queue:
                raise QueueFullError(f"{self._max_queue} replies are waiting already; please try again in a moment")
            self._unfinished += 1 + len(copies)

        has_begun = False

        def begin(sink: Callable[[object], None]) -> None:
            def counted_sink(event: object) -> None:
                if isinstance(event, Finished):
                    with self._lock:
                        self._unfinished -= 1
                    self._publish()  # whoever hears of the end finds it in the snapshot
                sink(event)

            nonlocal has_begun
            has_begun = True
            self._commands.put(("submit", request, counted_sink, copies))

        try:
            yield begin
        finally:
            if not has_begun:
                with self._lock:
                    self._unfinished -= 1 + len(copies)

    def cancel(self, reply: str) -> None:
        """Stop a reply, wherever it is. Unknown or ended ones are ignored."""
        self._commands.put(("cancel", reply))

    def forget(self, conversation: str) -> None:
        """Free the row of a conversation at once, ending its reply."""
        self._commands.put(("forget", conversation))

    def adopt(self, conversation: str, copy: str) -> None:
        """Let a conversation go on in the kept row of one of its copies, instead of its own."""
        self._commands.put(("adopt", conversation, copy))

    def race(self, request: RaceRequest, sink: Callable[[object], None]) -> None:
        """Measure a race. `sink` gets RaceProgress and at the end one RaceFinished, which says why where it failed."""
        def learning_sink(event: object) -> None:
            if isinstance(event, RaceFinished) and event.pace is not None:
                self.race_pace = event.pace
            sink(event)

        self._commands.put(("races.start", request, learning_sink))

    def stop_race(self, race: str) -> None:
        """End a race. One that has ended, or is unknown, is left alone."""
        self._commands.put(("races.stop", race))

    # --- the engine thread

    @torch.inference_mode()
    def _run(self) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        try:
            self.model, self.tokenizer = self._load()
            if self._cache_bytes is not None:
                self._rows = rows_in(self._cache_bytes, self.model, self._context)
            self._scheduler = Scheduler(self.model, self.tokenizer, rows=self._rows, context=self._context)
            if self._warm_up:
                self.race_pace = warm_up(self._scheduler.runner, self.tokenizer, self._scheduler.context)
        except Exception as error:
            logger.exception("the model could not be loaded")
            self._snapshot = replace(self._snapshot, state="failed", failure=str(error))
            self._ready.set()
            self._refuse_commands(f"The model could not be loaded: {error}")
            return
        self._snapshot = Snapshot(state="ready", context=self._scheduler.context, model=self._model_numbers())
        self._publish()
        self._ready.set()
        while self._take_commands():
            if self._scheduler.busy:
                self._step()
        self._scheduler.interrupt_all()
        self._snapshot = replace(self._snapshot, state="stopped")

    def _step(self) -> None:
        try:
            self._scheduler.step()
        except Exception as error:  # not of one reply: those are caught in the scheduler
            logger.exception("an engine step failed")
            self._scheduler.fail_all(error)
        self._publish()
        for event in self._scheduler.take_evictions():
            self.on_event(event)

    def _take_commands(self) -> bool:
        """Do what was asked since the last step, waiting for something to do; False at the end."""
        wait = not self._scheduler.busy
        if wait:
            self._scheduler.retention.check()
        while True:
            try:
                command = self._commands.get(block=wait)
            except queue.Empty:
                return True
            if command is None:
                return False
            self._do(*command)
            wait = False

    def _do(self, name: str, *arguments) -> None:
        if name == "submit":
            request, sink, copies = arguments
            try:
                self._scheduler.submit(request, sink, copies)
            except Exception as error:  # whatever is wrong with one request, the thread serves the others
                for each in (request, *copies):
                    sink(_failed(each, str(error)))
        else:
            attrgetter(name)(self._scheduler)(*arguments)
        self._publish()

    def _refuse_commands(self, sentence: str) -> None:
        while (command := self._commands.get()) is not None:
            if command[0] == "submit":
                _, request, sink, copies = command
                for each in (request, *copies):
                    sink(_failed(each, sentence))
            elif command[0] == "races.start":
                command[2](RaceFinished(command[1].race, "failed", error=sentence))

    def _publish(self) -> None:
        scheduler = self._scheduler
        if scheduler is None:  # there is no model
            return
        self._snapshot = replace(self._snapshot, pool=scheduler.pool_numbers(), cached_tokens=scheduler.cached_tokens(),
                                 kept_ids=scheduler.kept_ids(), queued=scheduler.queued(), steps=scheduler.steps)

    def _model_numbers(self) -> ModelNumbers:
        model, cache = self.model, self._scheduler.cache
        config = model.config
        parameters = list(model.parameters()) if callable(getattr(model, "parameters", None)) else []
        weight_bytes = getattr(model, "weight_bytes", None) or sum(p.numel() * p.element_size() for p in parameters)
        weights_dtype = getattr(model, "weights_dtype", None) or (parameters[0].dtype if parameters else cache.dtype)
        return ModelNumbers(
            name=getattr(model, "name", type(model).__name__), adapter=getattr(model, "adapter", None) or "",
            n_layer=config.n_layer, n_head=config.n_head,
            n_kv_head=config.n_kv_head, head_dim=config.n_embd // config.n_head,
            weights_dtype=str(weights_dtype).removeprefix("torch."), cache_dtype=str(cache.dtype).removeprefix("torch."),
            bytes_per_element=cache.k_cache.element_size(), bytes_per_token=cache.bytes_per_token,
            weight_bytes=int(weight_bytes), windows=tuple(getattr(model, "windows", ())))


def rows_in(cache_bytes: int, model, context: int) -> int:
    """How many rows of `context` tokens fit into so many bytes. Raises CacheTooSmallError where not one does."""
    context = min(context, ModelRunner(model).max_context)
    bytes_per_row = context * KVCache.for_model(model, 1, 1).bytes_per_token
    if cache_bytes < bytes_per_row:
        raise CacheTooSmallError(f"the cache may take {cache_bytes:,} bytes, but one conversation of {context:,} tokens takes "
                                 f"{bytes_per_row:,}; allow more memory or a shorter context")
    return cache_bytes // bytes_per_row


def _failed(request: Request, sentence: str) -> Finished:
    """The only event of a request that could not begin."""
    return Finished(request.reply, Reason.ERROR, (), (), (), Counts(), Timing(), request.seed, error=sentence)
