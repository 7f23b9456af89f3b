"""What is learned from in each step: generated conversations and the published model's own answers, as padded tensors.

Batches come in groups of steps, within which those of like length stand together, so that little is padded. A
group depends on its number and the seed alone: a training that is taken up again sees what it would have seen.
This module must never compute with a model.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from app.training.conversations import Conversations
from app.training.own_answers import whole_answers

STEPS_IN_GROUP = 8
LONGEST_TOKENS = 300
LONGEST_OWN_ANSWER = 64  # tokens of the model's own answers that are held in place
WORDING = 0.3  # weight of a token of the answer's wording, which is drawn freely, beside one of the expression


@dataclass(frozen=True)
class Tokens:
    """One sequence. Weights are 0 for what the assistant does not write."""

    ids: list[int]
    weights: list[float]

    @property
    def num_weighted(self) -> int:
        """How many tokens count: the first has nothing before it that it could follow from."""
        return sum(weight > 0 for weight in self.weights[1:])


@dataclass(frozen=True)
class Batch:
    """ids (B, T), padded at the right with 0; weights (B, T): how much the token after a position counts."""

    ids: torch.Tensor
    weights: torch.Tensor
    published: torch.Tensor | None = None  # the published model's last hidden states where a token counts, (N, C)

    @property
    def wanted(self) -> torch.Tensor:
        return self.weights > 0  # (B, T), true N times

    @property
    def targets(self) -> torch.Tensor:
        return self.ids.roll(-1, dims=1)[self.wanted]  # (N,)


def own_sequences(tokenizer, own: list[dict], seed: int) -> list[Tokens]:
    """The published model's own answers, a third of them as the second turn of a chat."""
    rng = random.Random(f"{seed}/own")
    whole = whole_answers(own)
    end = tokenizer.encode_special("<|assistant_end|>")
    sequences = []
    for answer in own:
        earlier = []
        if rng.random() < 0.35 and answer["messages"][0]["role"] == "user":
            first = rng.choice(whole)
            earlier = [*first["messages"], {"role": "assistant", "content": first["text"]}]
        waiting = {"messages": [*earlier, *answer["messages"], {"role": "assistant", "content": ""}]}
        prompt = tokenizer.render_for_completion(waiting)
        ids = [*answer["ids"], *([end] if answer["ended"] else [])][:LONGEST_OWN_ANSWER]
        sequences.append(Tokens(prompt + ids, [0.0] * len(prompt) + [1.0] * len(ids)))
    return sequences


class Batches:
    """`sums` conversations with the calculator and `ordinary` own answers a step, shared by `parts` processes.
    `held` are the own answers as sequences, each with what the published model makes of it."""

    def __init__(self, tokenizer, words: list[str], own: list[dict], held: Sequence[tuple[Tokens, torch.Tensor]], seed: int,
                 sums: int, ordinary: int, parts: int):
        assert sums % parts == 0 and ordinary % parts == 0, f"{sums} and {ordinary} do not go by {parts}"
        self._tokenizer, self._held, self._seed, self._parts = tokenizer, held, seed, parts
        self._sums, self._ordinary = sums, ordinary
        self._conversations = Conversations(words, own)
        self._expression_start, self._expression_end = (
            tokenizer.encode_special(mark) for mark in ("<|python_start|>", "<|python_end|>"))

    def group(self, number: int, part: int) -> list[tuple[Batch, Batch]]:
        """For each step of the group: (conversations with the calculator, own answers) of that part."""
        rng = random.Random(f"{self._seed}/{number}")
        sums = [(self._calculated(rng), None) for _ in range(STEPS_IN_GROUP * self._sums)]
        own = [rng.choice(self._held) for _ in range(STEPS_IN_GROUP * self._ordinary)]
        return list(zip(self._batches(sums, self._sums, part, rng), self._batches(own, self._ordinary, part, rng)))

    def _batches(self, sequences: list[tuple[Tokens, torch.Tensor | None]], size: int, part: int,
                 rng: random.Random) -> list[Batch]:
        sequences = sorted(sequences, key=lambda sequence: len(sequence[0].ids))
        batches = [padded(sequences[start:start + size][part::self._parts]) for start in range(0, len(sequences), size)]
        rng.shuffle(batches)
        return batches

    def _calculated(self, rng: random.Random) -> Tokens:
        while True:
            ids, mask = self._tokenizer.render_conversation(self._conversations.any(rng))
            if len(ids) <= LONGEST_TOKENS:
                return Tokens(ids, self._weighted(ids, mask))

    def _weighted(self, ids: list[int], mask: list[int]) -> list[float]:
        weights, is_inside = [], False
        for token, is_written in zip(ids, mask):
            is_inside = is_inside or token == self._expression_start
            weights.append(is_written * (1.0 if is_inside else WORDING))
            is_inside = is_inside and token != self._expression_end
        return weights


def padded(sequences: list[tuple[Tokens, torch.Tensor | None]]) -> Batch:
    longest = max(len(tokens.ids) for tokens, _ in sequences)
    ids = torch.zeros(len(sequences), longest, dtype=torch.long)
    weights = torch.zeros(len(sequences), longest)
    for row, (tokens, _) in enumerate(sequences):
        ids[row, :len(tokens.ids)] = torch.tensor(tokens.ids)
        weights[row, :len(tokens.ids) - 1] = torch.tensor(tokens.weights[1:])
    states = [states for _, states in sequences if states is not None]
    return Batch(ids, weights, torch.cat(states) if states else None)
