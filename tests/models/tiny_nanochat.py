"""Tiny nanochat models of every date, with random weights none of which is zero, and checkpoints of them.

Real windows are rounded up to 128 positions and would never bite in a tiny model, so they are made shorter here.
"""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from app.models.nanochat import Nanochat
from app.models.nanochat_architecture import (EARLY_JANUARY_2026, JANUARY_2026, JULY_2026, MARCH_2026, OCTOBER_2025,
                                              Architecture, NanochatConfig)
from app.models.random_weights import made_up_encoding, random_state

DATES = [OCTOBER_2025, JANUARY_2026, MARCH_2026, JULY_2026]
WINDOW = 7
CONTEXT = 96


def tiny_config(**changes) -> NanochatConfig:
    fields = {"sequence_len": CONTEXT, "vocab_size": 270, "n_layer": 5, "n_head": 4, "n_kv_head": 2, "n_embd": 32}
    return NanochatConfig(**fields | changes)


def tiny_nanochat(architecture: Architecture = JULY_2026, window: int | None = WINDOW, seed: int = 0,
                  dtype: torch.dtype = torch.float32, max_context: int | None = None, **changes) -> Nanochat:
    """A model of that date; `window` is what an `S` layer sees, `changes` are fields of its config."""
    if architecture.short_window and "window_pattern" not in changes:
        changes["window_pattern"] = "SSSL"
    if architecture.short_window and window is not None:
        architecture = replace(architecture, short_window=lambda _: window)
    config = tiny_config(**changes)
    return Nanochat(config, architecture, random_state(config, architecture, seed), dtype=dtype,
                    max_context=max_context)


def _variant(name, architecture, **changes):
    return pytest.param((architecture, changes), id=f"{architecture.date.replace(' ', '-')}, {name}")


# What a date leaves open: heads shared or not, windows, head sizes, padding, odd and even depths.
VARIANTS = [
    *(_variant("as nanochat makes it", architecture) for architecture in DATES),
    _variant("no value embeddings", EARLY_JANUARY_2026),
    _variant("a KV head a head", JULY_2026, n_kv_head=4),
    _variant("one KV head", JULY_2026, n_kv_head=1),
    _variant("one KV head", OCTOBER_2025, n_kv_head=1),
    _variant("no window", JULY_2026, window_pattern="L"),
    _variant("windows SL", MARCH_2026, window_pattern="SL"),
    _variant("windows SSL, 4 layers", JANUARY_2026, window_pattern="SSL", n_layer=4),
    _variant("a window of 1", JULY_2026, window=1),
    _variant("heads of 16", MARCH_2026, n_embd=64),
    _variant("heads of 2, one layer", JULY_2026, n_head=16, n_layer=1),
    _variant("a padded vocabulary", JANUARY_2026, vocab_size=321),
    _variant("a whole vocabulary", JULY_2026, vocab_size=320),
]


def random_ids(model: Nanochat, count: int, seed: int = 0) -> list[int]:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(model.config.vocab_size, (count,), generator=rng).tolist()


@torch.inference_mode()
def logits_of(model: Nanochat, ids: list[int]) -> torch.Tensor:
    """The truth: one pass over everything, (T, V)."""
    return model.forward(torch.tensor([ids]))[0]


@torch.inference_mode()
def add(model: Nanochat, cache, *rows: list[int]) -> torch.Tensor:
    """Add as many new tokens to each row of the cache: logits (B, T, V)."""
    return model.forward(torch.tensor(rows), cache)


def same(a: torch.Tensor, b: torch.Tensor, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=tolerance)


# --- files

def write_checkpoint(folder: Path, architecture: Architecture = JULY_2026, step: int = 10, seed: int = 0,
                     dtype: torch.dtype = torch.float32, prefix: str = "", with_tokenizer: bool = True,
                     **changes) -> Path:
    """A checkpoint as nanochat writes it: model, meta and, if wanted, the tokenizer beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    config = tiny_config(**changes)
    state = random_state(config, architecture, seed, dtype)
    torch.save({prefix + name: tensor for name, tensor in state.items()}, folder / f"model_{step:06d}.pt")
    model_config = {name: value for name, value in vars(config).items() if (name, value) != ("window_pattern", "L")}
    (folder / f"meta_{step:06d}.json").write_text(json.dumps({"step": step, "model_config": model_config}))
    if with_tokenizer:
        write_tokenizer(folder / "tokenizer.pkl", config.vocab_size)
    return folder


def write_tokenizer(path: Path, vocab_size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(made_up_encoding(vocab_size)))


class Evil:
    """Pickles as a call that leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))
