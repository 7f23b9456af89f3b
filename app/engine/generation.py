"""Engine.generate: one prompt, n samples.

Two phases. The prompt is read once into a row of its own; that row is copied into n rows; then every
row that is not complete writes one token a step, all in one forward. Each row has its own generator and
its own tool calls, and goes on by itself.

For many people at once, with rows kept between turns, see `scheduler`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence as SequenceOf

import torch

from app.engine.kv_cache import KVCache
from app.engine.messages import Reason
from app.engine.model_runner import ModelRunner
from app.engine.sequence import ReplyRules, Sequence, draw_together


class Engine:
    """Writes replies of `model`, whose ids `tokenizer` explains."""

    def __init__(self, model, tokenizer):
        self.model, self.tokenizer = model, tokenizer
        self._runner = ModelRunner(model)
        self._rules = ReplyRules.of(tokenizer)

    def generate(self, tokens: SequenceOf[int], num_samples: int = 1, max_tokens: int | None = None,
                 temperature: float = 1.0, top_k: int | None = None,
                 seed: int = 42) -> Iterator[tuple[list[int], list[int]]]:
        """Yield `(token_column, token_masks)` a step: one entry a sample; mask 1 sampled, 0 forced.

        Sample i draws with seed + i. A sample ends with its end token, which is in the column; from then
        on its entry is the family's end token with mask 0. Ends when all samples have ended: by an end
        token, by `max_tokens`, or because the context is full. Raises EmptyPromptError,
        PromptTooLongError or SamplingError before anything is computed.
        """
        for column in self._steps(self._start(tokens, num_samples, max_tokens, temperature, top_k, seed)):
            yield [token for token, _ in column], [mask for _, mask in column]

    def generate_batch(self, tokens: SequenceOf[int], num_samples: int = 1,
                       **settings) -> tuple[list[list[int]], list[list[int]]]:
        """`(results, masks)`: for each sample the prompt and the reply, end tokens left off; mask 0 for the prompt."""
        sequences = self._start(tokens, num_samples, settings.pop("max_tokens", None), settings.pop("temperature", 1.0),
                                settings.pop("top_k", None), settings.pop("seed", 42))
        assert not settings, f"unknown settings: {sorted(settings)}"
        for _ in self._steps(sequences):
            pass
        results, masks = [], []
        for sequence in sequences:
            count = len(sequence.ids) - (sequence.reason is Reason.STOP)
            results.append(sequence.prompt_ids + sequence.ids[:count])
            masks.append([0] * len(sequence.prompt_ids) + sequence.masks[:count])
        return results, masks

    def _start(self, tokens, num_samples, max_tokens, temperature, top_k, seed) -> list[Sequence]:
        assert num_samples >= 1, f"at least one sample is needed, not {num_samples}"
        return [Sequence(tokens, self._rules, limit=self._runner.max_context, temperature=temperature, top_k=top_k,
                         max_tokens=max_tokens, seed=seed + i, device=self._runner.device) for i in range(num_samples)]

    def _steps(self, sequences: list[Sequence]) -> Iterator[list[tuple[int, int]]]:
        # Inference mode is entered for each step and left before the yield: a generator that is left
        # half way must not leave the caller's thread in it.
        live = [i for i, sequence in enumerate(sequences) if not sequence.finished]
        cache = logits = None
        while live:
            with torch.inference_mode():
                if cache is None:
                    cache, logits = self._read(sequences)
                else:
                    logits = self._runner.forward([[sequences[i].last_id] for i in live], cache.select(live))
                rows = logits.split(1)
                drawn = draw_together([sequences[i] for i in live], rows)
                chosen = {i: sequences[i].choose(rows[at], drawn=drawn[at]) for at, i in enumerate(live)}
            yield [(chosen[i].id, 0 if chosen[i].forced else 1) if i in chosen else (self._rules.padding_id, 0)
                   for i in range(len(sequences))]
            live = [i for i in live if not sequences[i].finished]

    def _read(self, sequences: list[Sequence]) -> tuple[KVCache, torch.Tensor]:
        """Read the shared prompt once and copy its row -> the cache, and logits (n, V)."""
        prompt, longest = sequences[0].prompt_ids, max(sequence.max_num_tokens for sequence in sequences)
        row = KVCache.for_model(self.model, 1, longest)
        logits = self._runner.read(prompt, row)
        if len(sequences) == 1:
            return row, logits
        cache = KVCache.for_model(self.model, len(sequences), longest)
        cache.prefill(row)
        return cache, logits.expand(len(sequences), -1)
