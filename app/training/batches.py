"""What is learned from in each step: generated conversations and the model's own answers, as padded tensors.

Batches come in groups of steps, within which those of like length stand together, so that little is padded. A
group depends on its number and the seed alone: a training that is taken up again sees what it would have seen.
This module must never compute with a model.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch

from app.training.conversations import Conversations

STEPS_IN_GROUP = 8
LONGEST_TOKENS = 300
LONGEST_OWN_ANSWER = 64  # tokens of the model's own answers that are held in place


@dataclass(frozen=True)
class Batch:
    """ids (B, T), padded at the right with 0; wanted (B, T): where the next token is one that the assistant writes."""

    ids: torch.Tensor
    wanted: torch.Tensor

    @property
    def targets(self) -> torch.Tensor:
        return self.ids.roll(-1, dims=1)[self.wanted]  # (N,)


class Batches:
    """`sums` conversations with the calculator and `ordinary` own answers a step, shared by `parts` processes."""

    def __init__(self, tokenizer, words: list[str], own: list[dict], seed: int, sums: int, ordinary: int, parts: int):
        assert sums % parts == 0 and ordinary % parts == 0, f"{sums} and {ordinary} do not go by {parts}"
        self._tokenizer, self._own, self._seed, self._parts = tokenizer, own, seed, parts
        self._sums, self._ordinary = sums, ordinary
        self._conversations = Conversations(words, own)

    def group(self, number: int, part: int) -> list[tuple[Batch, Batch]]:
        """For each step of the group: (conversations with the calculator, own answers) of that part."""
        rng = random.Random(f"{self._seed}/{number}")
        sums = [self._calculated(rng) for _ in range(STEPS_IN_GROUP * self._sums)]
        own = [self._own_answer(rng) for _ in range(STEPS_IN_GROUP * self._ordinary)]
        return list(zip(self._batches(sums, self._sums, part, rng), self._batches(own, self._ordinary, part, rng)))

    def _batches(self, sequences: list[tuple[list[int], list[int]]], size: int, part: int, rng: random.Random) -> list[Batch]:
        sequences = sorted(sequences, key=lambda sequence: len(sequence[0]))
        batches = [_padded(sequences[start:start + size][part::self._parts]) for start in range(0, len(sequences), size)]
        rng.shuffle(batches)
        return batches

    def _calculated(self, rng: random.Random) -> tuple[list[int], list[int]]:
        while True:
            ids, mask = self._tokenizer.render_conversation(self._conversations.any(rng))
            if len(ids) <= LONGEST_TOKENS:
                return ids, mask

    def _own_answer(self, rng: random.Random) -> tuple[list[int], list[int]]:
        own = rng.choice(self._own)
        earlier = []
        if rng.random() < 0.35 and own["messages"][0]["role"] == "user":  # as the second turn of a chat
            first = self._conversations.own_answer(rng)
            earlier = [*first["messages"], {"role": "assistant", "content": first["text"]}]
        waiting = {"messages": [*earlier, *own["messages"], {"role": "assistant", "content": ""}]}
        prompt = self._tokenizer.render_for_completion(waiting)
        end = [self._tokenizer.encode_special("<|assistant_end|>")] if own["ended"] else []
        answer = [*own["ids"], *end][:LONGEST_OWN_ANSWER]
        return prompt + answer, [0] * len(prompt) + [1] * len(answer)


def _padded(sequences: list[tuple[list[int], list[int]]]) -> Batch:
    longest = max(len(ids) for ids, _ in sequences)
    ids = torch.zeros(len(sequences), longest, dtype=torch.long)
    wanted = torch.zeros(len(sequences), longest, dtype=torch.bool)
    for row, (tokens, mask) in enumerate(sequences):
        ids[row, :len(tokens)] = torch.tensor(tokens)
        wanted[row, :len(tokens) - 1] = torch.tensor(mask[1:], dtype=torch.bool)
    return Batch(ids, wanted)
