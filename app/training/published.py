"""What the published model makes of its own answers: its last hidden states there, computed once and kept in a file.

A training holds the adapted model to them in every step, and would else compute each of them several times over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import torch
from tqdm import tqdm

from app.training.batches import Tokens, padded
from app.training.trainable import TrainableLlama

ROWS = 8


def published_states(sequences: list[Tokens], file: Path, make_model: Callable[[], TrainableLlama]) -> list[torch.Tensor]:
    """For each sequence (N, C), where N of its tokens have a weight: from `file` where they lie already, and then
    read as they are needed."""
    key = hashlib.sha256(json.dumps([sequence.ids for sequence in sequences]).encode()).hexdigest()
    if not file.exists() or torch.load(file, weights_only=True, mmap=True)["key"] != key:
        half = file.with_suffix(".half")
        torch.save({"key": key, "states": torch.cat(_computed(sequences, make_model()))}, half)
        half.replace(file)
    states = torch.load(file, weights_only=True, mmap=True)["states"]
    return list(states.split([sequence.num_weighted for sequence in sequences]))


@torch.no_grad()
def _computed(sequences: list[Tokens], model: TrainableLlama) -> list[torch.Tensor]:
    model.is_adapted = False
    by_length = sorted(range(len(sequences)), key=lambda place: len(sequences[place].ids))
    states: list[torch.Tensor | None] = [None] * len(sequences)
    bar = tqdm(total=len(sequences), desc="what the published model makes of them")
    for start in range(0, len(sequences), ROWS):
        places = by_length[start:start + ROWS]
        batch = padded([(sequences[place], None) for place in places])
        hidden = model.hidden(batch.ids, batch.wanted)
        for place, own in zip(places, hidden.split([sequences[place].num_weighted for place in places])):
            states[place] = own.clone()
        bar.update(len(places))
    bar.close()
    return states
