"""Generating the reference way: no cache, no batch, the whole conversation again for every token.

What it gives is the truth that the engine is tested against. Both families share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from app.engine.sampling import make_generator, sample_next_token


class ReferenceGeneration:
    """`generate`, for a model that has `forward`, `get_device` and `max_context`."""

    def generate(self, tokens: Sequence[int], max_tokens: int, temperature: float = 1.0, top_k: int | None = None,
                 seed: int = 42) -> Iterator[int]:
        """Yield up to `max_tokens` ids after the prompt `tokens`; end tokens do not end it, a full context does.

        Raises ValueError for a prompt that is empty or longer than the context.
        """
        ids = list(tokens)
        if not ids:
            raise ValueError("There is nothing to go on from: the prompt is empty.")
        if len(ids) > self.max_context:
            raise ValueError(f"The prompt is {len(ids)} tokens long, and the model can hold {self.max_context}.")
        rng = make_generator(seed, self.get_device())
        for _ in range(min(max_tokens, self.max_context - len(ids))):
            with torch.inference_mode():
                logits = self.forward(torch.tensor([ids], device=self.get_device()), last_only=True)[:, -1]  # (1, V)
                ids.append(int(sample_next_token(logits, rng, temperature, top_k)))
            yield ids[-1]
