"""Thousands of random steps on tiny models of both families: every reply equals a fresh run, and no row is lost.

Requests come, grow, are stopped, edited, forgotten and resumed, rows are evicted and copied; and after every step
whatever is not in use is filled with NaN, so that anything that leaks from a freed row is seen in what follows.
"""

import random

import pytest
import torch

from app.engine import Engine
from app.engine.messages import Finished, Reason, Request
from app.engine.scheduler import Scheduler
from app.models.nanochat_architecture import JULY_2026, OCTOBER_2025
from tests.engine.tiny import BOS, PlainTokenizer
from tests.models.tiny_llama import tiny_llama
from tests.models.tiny_nanochat import tiny_nanochat

CONTEXT = 60
STEPS = 400
CHATS = "abcde"
SHAPE = {"vocab_size": 265, "sequence_len": CONTEXT}
MODELS = {"llama": lambda seed: tiny_llama(seed=seed, n_layer=2, **SHAPE),
          "nanochat": lambda seed: tiny_nanochat(JULY_2026, seed=seed, **SHAPE),
          "the first nanochat": lambda seed: tiny_nanochat(OCTOBER_2025, seed=seed, **SHAPE)}


class Crowd:
    """People who do anything at any time, and what must hold after every step."""

    def __init__(self, model, seed: int):
        self.random, self.engine = random.Random(seed), Engine(model, PlainTokenizer())
        self.scheduler = Scheduler(model, PlainTokenizer(), rows=self.random.randrange(2, 5), context=CONTEXT)
        self.histories: dict[str, list[int]] = {name: [] for name in CHATS}
        self.live: dict[str, Request] = {}
        self.ends: dict[str, Finished] = {}
        self.compared = 0
        self.did: set[str] = set()

    def act(self, number: int) -> None:
        rng, name = self.random, self.random.choice(CHATS)
        mine = [reply for reply, request in self.live.items() if request.conversation[0] == name]
        if not mine and rng.random() < 0.5:
            self.ask(name, number)
        elif mine and rng.random() < 0.06:
            self.did.add("cancel")
            self.scheduler.cancel(rng.choice(mine))
        elif rng.random() < 0.02:
            self.did.add("forget")
            for conversation in (name, name + "/1"):
                self.scheduler.forget(conversation)

    def ask(self, name: str, number: int) -> None:
        rng, history = self.random, self.histories[name]
        if history and rng.random() < 0.25:
            self.did.add("edit")
            history = history[:rng.randrange(len(history))]
        prompt = (history or [BOS]) + [rng.randrange(256) for _ in range(rng.randrange(1, 8))]
        if len(prompt) > CONTEXT:
            self.histories[name] = []
            return
        use_cache, answers = rng.random() < 0.9, 2 if rng.random() < 0.2 else 1
        requests = [Request(f"{number} {copy}", name + (f"/{copy}" if copy else ""), tuple(prompt),
                            temperature=rng.choice([0.0, 1.0]), top_k=rng.choice([None, 8]),
                            max_tokens=rng.choice([1, 5, 12, None]), seed=number + copy, use_cache=use_cache)
                    for copy in range(answers if use_cache else 1)]
        self.scheduler.forget(name + "/1")  # the copy of a choice that is over
        self.live |= {request.reply: request for request in requests}
        self.scheduler.submit(requests[0], self.hear, requests[1:])
        self.did.add("without the cache" if not use_cache else "two answers" if len(requests) > 1 else "ask")

    def hear(self, event: object) -> None:
        if isinstance(event, Finished):
            assert event.reply not in self.ends, "a reply ended twice"
            self.ends[event.reply] = event

    def check_books(self) -> None:
        scheduler, retention = self.scheduler, self.scheduler.retention
        retention.check()
        pool = scheduler.pool_numbers()
        assert len(retention._free) + len(retention._live) + len(retention._kept) == pool.rows
        assert {job.row for job in (*scheduler._reading, *scheduler._writing)} <= retention._live
        assert max(scheduler.cache.lengths()) <= CONTEXT and sum(scheduler.cache.lengths()) == pool.tokens

    def spoil_what_is_not_in_use(self) -> None:
        cache = self.scheduler.cache
        ends = cache.lengths()
        for job in self.scheduler._reading:
            if job.forward is not None:  # some of the layers have written what the row is going to hold
                self.did.add("read in parts")
                ends[job.row] += job.forward.num_tokens
        for row, length in enumerate(ends):
            cache.k_cache[:, row, length:] = cache.v_cache[:, row, length:] = float("nan")

    def compare_ended(self) -> None:
        for reply in [reply for reply in self.live if reply in self.ends]:
            request, done = self.live.pop(reply), self.ends[reply]
            assert done.error is None, done.error
            fresh = [(column[0], masks[0]) for column, masks in self.engine.generate(
                list(request.prompt_ids), max_tokens=request.max_tokens, temperature=request.temperature,
                top_k=request.top_k, seed=request.seed)]
            written = list(zip(done.ids, done.masks))
            assert written == fresh[:len(written)], f"{request} differs from a fresh run"
            assert done.reason is Reason.CANCELLED or len(written) == len(fresh)
            self.compared += 1
            is_copy = "/" in request.conversation
            chat = request.conversation[0]
            is_picked = is_copy and not any(other.conversation == chat for other in self.live.values())
            if is_picked:
                self.did.add("pick")
                self.scheduler.adopt(chat, request.conversation)
            if is_picked or not is_copy:
                self.histories[chat] = [*request.prompt_ids, *done.kept_ids]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("family", MODELS)
@torch.inference_mode()
def test_random_schedules_lose_no_row_leak_nothing_and_change_no_reply(family, seed, monkeypatch):
    if seed == 1:  # a chunk is read part by part, while others write and are stopped
        monkeypatch.setattr("app.engine.scheduler.READ_S", 0.0)
    crowd = Crowd(MODELS[family](seed), seed)
    for number in range(STEPS):
        crowd.act(number)
        crowd.scheduler.step()
        crowd.check_books()
        crowd.spoil_what_is_not_in_use()
        crowd.compare_ended()
    assert crowd.compared > 30 and crowd.scheduler.pool_numbers().evictions > 0
    assert crowd.did >= {"ask", "edit", "cancel", "forget", "two answers", "pick", "without the cache"}
    assert "read in parts" in crowd.did or seed != 1


def test_of_two_long_prompts_the_older_is_read_first_and_a_short_one_does_not_overtake():
    model = tiny_llama(vocab_size=265, sequence_len=900, n_layer=1)
    scheduler = Scheduler(model, PlainTokenizer(), rows=3, context=900)
    ended, lengths = [], {"first": 800, "second": 800, "short": 3}
    for name, length in lengths.items():
        scheduler.submit(Request(name, name, (BOS,) * length, temperature=0.0, max_tokens=1),
                         lambda event: ended.append(event.reply) if isinstance(event, Finished) else None)
    with torch.inference_mode():
        while scheduler.busy:
            scheduler.step()
    assert ended == list(lengths)
