"""One sampler for both ways of generating."""

import pytest
import torch

from app.engine.chances import Likeliest
from app.engine.sampling import MAX_SEED, SamplingError, make_generator, sample_next_token

LOGITS = torch.tensor([[0.1, 3.0, -2.0, 2.9], [5.0, 1.0, 4.0, float("-inf")]])


@pytest.mark.parametrize("temperature, top_k", [(0, None), (0.0, 0), (1.0, 1), (1e-40, None), (1e-9, 3), (1e-5, 0)])
def test_no_temperature_and_one_candidate_are_greedy(temperature, top_k):
    for seed in range(20):
        assert sample_next_token(LOGITS, make_generator(seed), temperature, top_k).tolist() == [[1], [0]]


@pytest.mark.parametrize("top_k", [None, 0, 4, 5, 10**6])
def test_top_k_off_or_above_the_vocabulary_keeps_everything(top_k):
    drawn = {sample_next_token(LOGITS[:1], make_generator(seed), 3.0, top_k).item() for seed in range(400)}
    assert drawn == {0, 1, 2, 3}
    same = [sample_next_token(LOGITS[:1], make_generator(seed), 3.0, None).item() for seed in range(50)]
    assert same == [sample_next_token(LOGITS[:1], make_generator(seed), 3.0, 0).item() for seed in range(50)]


def test_top_k_draws_among_the_best_k_alone():
    drawn = {sample_next_token(LOGITS, make_generator(seed), 5.0, 2)[0].item() for seed in range(200)}
    assert drawn == {1, 3}


def test_draws_follow_the_softmax_of_the_tempered_logits():
    logits = torch.tensor([[0.0, 1.0, 2.0]])
    rng, counts = make_generator(0), torch.zeros(3)
    for _ in range(6000):
        counts[sample_next_token(logits, rng, 0.7)] += 1
    assert torch.allclose(counts / 6000, torch.softmax(logits[0] / 0.7, -1), atol=0.02)


def test_a_seed_repeats_and_another_differs():
    flat = torch.zeros(1, 1000)
    first = [sample_next_token(flat, make_generator(seed)).item() for seed in range(16)]
    assert first == [sample_next_token(flat, make_generator(seed)).item() for seed in range(16)]
    assert len(set(first)) > 8


def test_a_row_draws_the_same_alone_and_among_others():
    logits = torch.randn(5, 50, generator=make_generator(3))
    together = sample_next_token(logits, [make_generator(10 + i) for i in range(5)], 1.3, 20)
    alone = [sample_next_token(logits[i:i + 1], make_generator(10 + i), 1.3, 20).item() for i in range(5)]
    assert together[:, 0].tolist() == alone


@pytest.mark.parametrize("temperature", [-1, -1e-9, float("nan"), float("inf"), 101, "hot", None])
def test_temperatures_outside_the_range_are_refused(temperature):
    with pytest.raises(SamplingError, match="temperature must be a number from 0 to 100"):
        sample_next_token(LOGITS, make_generator(0), temperature)


@pytest.mark.parametrize("top_k", [-1, 2.5, "5", True])
def test_top_k_outside_the_range_is_refused(top_k):
    with pytest.raises(SamplingError, match="top_k must be a whole number"):
        sample_next_token(LOGITS, make_generator(0), 1.0, top_k)


@pytest.mark.parametrize("seed", [-1, 2**63, 2**64])
def test_seeds_outside_the_range_are_refused(seed):
    with pytest.raises(SamplingError, match="seed must be a whole number"):
        make_generator(seed)
    make_generator(MAX_SEED)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_are_refused_by_name(bad):
    logits = LOGITS.clone()
    logits[1, 2] = bad
    for temperature in (0.0, 1.0):
        with pytest.raises(SamplingError, match="not finite"):
            sample_next_token(logits, make_generator(0), temperature)


def test_rows_without_any_candidate_are_refused():
    with pytest.raises(SamplingError, match="not finite"):
        sample_next_token(torch.full((1, 4), float("-inf")), make_generator(0))


def test_the_logits_that_were_given_stay_as_they_were():
    logits = LOGITS.clone()
    sample_next_token(logits, make_generator(0), 0.5, 2)
    assert torch.equal(logits, LOGITS)


def test_drawing_leaves_pytorchs_other_threads_asleep(monkeypatch):
    """They would look for more to do for milliseconds, on the cores that the next forward wants."""
    found, before = [], torch.get_num_threads()
    softmax = torch.softmax
    monkeypatch.setattr(torch, "softmax", lambda *given, **named: found.append(torch.get_num_threads()) or softmax(*given, **named))
    torch.set_num_threads(3)
    try:
        for rows in (1, 4):
            sample_next_token(torch.randn(rows, 300), [make_generator(row) for row in range(rows)])
            Likeliest(torch.randn(rows, 300))
        with pytest.raises(SamplingError):
            sample_next_token(torch.full((1, 300), float("nan")), make_generator(0))
        assert found == [1] * 4 and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
