"""Drawing the next token: logits -> temperature -> top-k -> softmax -> draw.

Both ways of generating, with the cache and without, draw with `sample_next_token`, so that the same
logits, seed and settings give the same token. One generator belongs to one row: a reply never depends
on who else is being served.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from app.one_thread import one_thread

GREEDY_BELOW = 1e-6  # a temperature so small picks the best token anyway, and dividing by it overflows
MAX_TEMPERATURE = 100.0
MAX_SEED = 2**63 - 1


class SamplingError(ValueError):
    """A sampling setting outside its range, or logits that no token can be drawn from."""


def check_sampling(temperature: float, top_k: int | None) -> None:
    """Refuse a temperature or top-k outside its range, with a sentence that names the range."""
    if not (isinstance(temperature, (int, float)) and 0 <= temperature <= MAX_TEMPERATURE):
        raise SamplingError(f"temperature must be a number from 0 to {MAX_TEMPERATURE:g}, not {temperature!r}")
    if top_k is not None and not (isinstance(top_k, int) and not isinstance(top_k, bool) and top_k >= 0):
        raise SamplingError(f"top_k must be a whole number from 0 (off) up, not {top_k!r}")


def make_generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator for one row. `seed` may be any whole number from 0 to 2^63 - 1."""
    if not 0 <= seed <= MAX_SEED:
        raise SamplingError(f"seed must be a whole number from 0 to {MAX_SEED}, not {seed}")
    return torch.Generator(device=device).manual_seed(seed)


@torch.inference_mode()
@one_thread()
def sample_next_token(logits: torch.Tensor, rng: torch.Generator | Sequence[torch.Generator],
                      temperature: float = 1.0, top_k: int | None = None) -> torch.Tensor:
    """Draw one token a row: logits (B, V) -> (B, 1) long.

    `rng` is one generator for all rows or a sequence of one a row. Temperature 0 and top-k 1 take the
    best token and draw nothing; top-k 0, None or above V keeps every token.
    Raises SamplingError for a setting outside its range or when a row has NaN or no finite best.
    """
    check_sampling(temperature, top_k)
    assert logits.ndim == 2, f"logits must have shape (B, V), not {tuple(logits.shape)}"
    num_rows, vocab_size = logits.shape
    logits, candidates = logits.float(), None
    if temperature < GREEDY_BELOW or top_k == 1:
        best, choice = logits.max(dim=-1, keepdim=True)  # (B, 1)
        _check_finite(best)
        return choice
    if top_k and top_k < vocab_size:
        logits, candidates = torch.topk(logits, top_k, dim=-1)  # (B, k), the best first
        best = logits[:, :1]
    else:
        best = logits.amax(dim=-1, keepdim=True)
    _check_finite(best)
    logits = (logits - best) / temperature  # the best is 0, so nothing overflows
    probabilities = torch.softmax(logits, dim=-1)
    if isinstance(rng, torch.Generator):
        drawn = torch.multinomial(probabilities, 1, generator=rng)  # (B, 1)
    else:
        assert len(rng) == num_rows, f"{num_rows} rows need as many generators, not {len(rng)}"
        drawn = torch.cat([torch.multinomial(probabilities[i:i + 1], 1, generator=rng[i]) for i in range(num_rows)])
    return drawn if candidates is None else candidates.gather(-1, drawn)


def _check_finite(best: torch.Tensor) -> None:
    """Of the best logit of each row: NaN and infinity come first, and a row without a candidate has -inf."""
    if not bool(torch.isfinite(best).all()):
        raise SamplingError("the model gave logits that are not finite; no token can be drawn from them")
