"""Opening nanochat checkpoints: what is in the files, checked before it is believed, and loaded.

`find` says what a folder holds from the names and shapes in it, without reading weights; `load` makes the
model and its tokenizer. Files come from strangers: nothing in them is executed, and every tensor is
compared by name and shape with what nanochat had at that date. All that can be wrong with them is a
ModelError. This module must never guess: what it does not know, it refuses by name.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch

from app.models.errors import ModelError
from app.models.nanochat import Nanochat
from app.models.nanochat_architecture import (CONTEXT_FACTOR, Architecture, ArchitectureError, NanochatConfig,
                                              tell_architecture)
from app.models.nanochat_folder import CheckpointFiles, find_files
from app.models.nanochat_tokenizer import NanochatTokenizer
from app.models.pickled_encoding import read_encoding

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Found:
    """A checkpoint whose names and shapes are right. `dtype` is the type that most of its bytes have."""
    files: CheckpointFiles
    config: NanochatConfig
    architecture: Architecture
    parameters: int
    dtype: torch.dtype

    @property
    def name(self) -> str:
        return f"nanochat {self.files.name}".replace("nanochat nanochat", "nanochat")

    @property
    def description(self) -> str:
        return self.describe(self.dtype)

    def describe(self, dtype: torch.dtype) -> str:
        """One line: stage, tag, step, date, size, and what a token costs in a cache of `dtype`."""
        config = self.config
        bytes_per_token = 2 * config.n_layer * config.n_kv_head * config.head_dim * dtype.itemsize
        return (f"{self.name}, step {self.files.step}: architecture of {self.architecture.date}, "
                f"{self.parameters:,} parameters, cache {bytes_per_token:,} bytes a token in {_name_of(dtype)}")


def find(path: str | Path) -> Found:
    """What `path` (a published folder, a nanochat tree, `TREE:sft/d20@650`) holds. Reads no weights."""
    files = find_files(path)
    config = _read_config(files.meta)
    state = _read_state(files.model, lazily=True)
    architecture = _check_state(files.model, state, config)
    bytes_by_dtype = Counter()
    for tensor in state.values():
        bytes_by_dtype[tensor.dtype] += tensor.numel() * tensor.element_size()
    return Found(files, config, architecture, parameters=sum(tensor.numel() for tensor in state.values()),
                 dtype=bytes_by_dtype.most_common(1)[0][0])


def load(path: str | Path | Found, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32,
         context: int | None = None) -> tuple[Nanochat, NanochatTokenizer]:
    """The model, cast to `dtype` once, and its tokenizer.

    `context` is how many tokens a conversation may hold: sequence_len unless more is asked for, and at most
    ten times that, which the model says in its `max_context`.
    """
    found = path if isinstance(path, Found) else find(path)
    config, files = found.config, found.files
    assert dtype in DTYPES, f"a model can be of {', '.join(map(_name_of, DTYPES))}, not {dtype}"
    tokenizer = NanochatTokenizer(read_encoding(files.tokenizer), name=found.name)
    if tokenizer.get_vocab_size() != config.vocab_size:
        raise ModelError(f"{files.tokenizer} has {tokenizer.get_vocab_size()} tokens, but {files.meta.name} "
                         f"gives vocab_size as {config.vocab_size}: they do not belong together.")
    state = _read_state(files.model, lazily=False)
    architecture = _check_state(files.model, state, config)
    max_context = min(context or config.sequence_len, CONTEXT_FACTOR * config.sequence_len)
    model = Nanochat(config, architecture, state, device, dtype, found.name, max_context)
    model.description = found.describe(dtype)
    return model, tokenizer


def _read_config(path: Path) -> NanochatConfig:
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} is not readable JSON: {error}.") from None
    try:
        return NanochatConfig.read(meta.get("model_config") if isinstance(meta, dict) else None)
    except ArchitectureError as error:
        raise ModelError(f"{path} {error}.") from None


def _read_state(path: Path, lazily: bool) -> dict[str, torch.Tensor]:
    """The tensors by name. `lazily` maps the file instead of reading it: enough for names, shapes and types.

    To load, every tensor is read into memory of its own: it can be freed as soon as it is cast, and a file
    that changes afterwards changes nothing.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=lazily)
    except pickle.UnpicklingError as error:
        wanted = str(error).split("Please file an issue")[0].strip().splitlines()
        raise ModelError(f"{path} holds more than tensors, and is not loaded: {_unsafe_part(wanted)}.") from None
    except PermissionError:
        raise ModelError(f"{path} may not be read by this user.") from None
    except Exception:  # a broken file may raise almost anything, in words about torch's insides
        raise ModelError(f"{path} is not a whole checkpoint: it was cut short or damaged, or nanochat did not "
                         "write it.") from None
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise ModelError(f"{path} does not hold tensors by name.")
    for name, tensor in state.items():
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or tensor.dtype not in DTYPES:
            raise ModelError(f"{path} holds something under {name} that is not a tensor of 16 or 32-bit "
                             "floating point.")
    return {name.removeprefix("_orig_mod."): tensor for name, tensor in state.items()}


def _check_state(path: Path, state: dict[str, torch.Tensor], config: NanochatConfig) -> Architecture:
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
    try:
        architecture = tell_architecture(shapes)
        architecture.check(shapes, config)
    except ArchitectureError as error:
        raise ModelError(f"{path} {error}.") from None
    return architecture


def _unsafe_part(lines: list[str]) -> str:
    """The line of torch's long refusal that says what was asked for."""
    return next((line.strip(" .") for line in lines if "GLOBAL" in line or "Unsupported" in line), lines[0].strip(" ."))


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
