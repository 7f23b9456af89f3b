"""Reading a GGUF file of the Llama architecture: config, weights and tokenizer.

The `gguf` package reads the container and undoes the quantization; here is what the names in it mean, and
a sentence for every file that is not what it should be. This module must never compute with a weight.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader, TokenType, dequantize

from app.models.chatml_tokenizer import ChatMLTokenizer
from app.models.errors import ModelError
from app.models.llama import LlamaConfig, weight_shapes

MAGIC = b"GGUF"
MAX_SEQUENCE_TOKENS = 2**20  # more than any model of this architecture was trained for
ROTATED = ("attn_q.weight", "attn_k.weight")


class GGUFError(ModelError):
    """A GGUF file that is broken, or of a kind that is not known here."""


def is_gguf(path: Path) -> bool:
    """Whether the file begins as a GGUF file does."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class _PlainReader(GGUFReader):
    """The reader cuts some 250,000 pieces out of the mapped file, and `numpy.memmap` is slow to cut: it is
    given a plain array over the same memory, which opens a file three times as fast."""

    def __setattr__(self, name, value):
        super().__setattr__(name, np.asarray(value) if isinstance(value, np.memmap) else value)


class GGUFModel:
    """An opened file, checked as far as can be without reading its weights: `config`, `weight(…)`, `tokenizer(…)`."""

    def __init__(self, path: Path):
        self.path = path
        try:
            if not is_gguf(path):
                raise GGUFError(f"{path} is not a GGUF file: it does not begin with the letters GGUF.")
            reader = _PlainReader(path)
        except OSError as error:
            raise GGUFError(f"{path} cannot be read: {error.strerror or error}.") from None
        except GGUFError:
            raise
        except Exception as error:  # the reader trips over a broken file in many ways
            raise GGUFError(f"{path} is damaged or cut short ({type(error).__name__} while its contents were listed). "
                            "Get the file again.") from None
        self._fields = reader.fields
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.config = self._read_config()
        self._check_tensors()

    # --- metadata

    def _value(self, key: str, default=None):
        """A value of the metadata. Without a default it must be there."""
        if key in self._fields:
            try:
                return self._fields[key].contents()
            except (ValueError, IndexError):  # text that is not UTF-8, among others
                raise GGUFError(f"{self.path} is damaged: its {key} cannot be read. Get the file again.") from None
        if default is None:
            raise GGUFError(f"{self.path} lacks {key} in its metadata: it is not a model that can be read here.")
        return default

    def _read_config(self) -> LlamaConfig:
        architecture = self._value("general.architecture")
        if architecture != "llama":
            raise GGUFError(f"{self.path} holds a model of the architecture {architecture!r}; only 'llama' is known.")
        if self._value("llama.rope.scaling.type", "none") != "none":
            raise GGUFError(f"{self.path} scales its positions, which is not known here.")
        if "token_embd.weight" not in self._tensors:
            raise GGUFError(f"{self.path} has no tensor token_embd.weight: it is not a whole language model.")
        num_heads = self._value("llama.attention.head_count")
        config = LlamaConfig(
            n_layer=self._value("llama.block_count"),
            n_head=num_heads,
            n_kv_head=self._value("llama.attention.head_count_kv", num_heads),
            n_embd=self._value("llama.embedding_length"),
            n_mlp=self._value("llama.feed_forward_length"),
            vocab_size=int(self._tensors["token_embd.weight"].shape[-1]),
            sequence_len=self._value("llama.context_length"),
            rope_base=self._value("llama.rope.freq_base", 10_000.0),
            norm_eps=self._value("llama.attention.layer_norm_rms_epsilon"),
            tied_head="output.weight" not in self._tensors,
        )
        numbers = (config.n_layer, config.n_head, config.n_kv_head, config.n_embd, config.n_mlp, config.sequence_len)
        if not all(isinstance(number, int) and number > 0 for number in numbers) or config.n_embd % config.n_head \
                or config.n_head % config.n_kv_head or config.head_dim % 2 or config.sequence_len > MAX_SEQUENCE_TOKENS:
            raise GGUFError(f"{self.path} describes a model that cannot be: {config.n_layer} layers of width "
                            f"{config.n_embd} with {config.n_head} query and {config.n_kv_head} KV heads for "
                            f"{config.sequence_len} tokens.")
        if self._value("llama.rope.dimension_count", config.head_dim) != config.head_dim:
            raise GGUFError(f"{self.path} rotates only a part of each head, which is not known here.")
        return config

    # --- weights

    def _check_tensors(self) -> None:
        expected = weight_shapes(self.config)
        missing, unknown = expected.keys() - self._tensors.keys(), self._tensors.keys() - expected.keys()
        for names, fault in ((missing, "lacks"), (unknown, "has unknown")):
            if names:
                raise GGUFError(f"{self.path} {fault} tensors, {min(names)} among {len(names)}: it cannot be read.")
        for name, shape in expected.items():
            found = tuple(int(size) for size in reversed(self._tensors[name].shape))  # GGUF's order is the other
            if found != shape:
                raise GGUFError(f"{self.path} has {name} of shape {found} where {shape} is expected.")

    def weight(self, name: str) -> torch.Tensor:
        """One weight in float32, with the rows of queries and keys in the order that half-split RoPE wants."""
        tensor = self._tensors[name]
        try:
            values = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy())
        except NotImplementedError:
            raise GGUFError(f"{self.path} holds {name} as {tensor.tensor_type.name}, which cannot be read.") from None
        if not torch.isfinite(values.sum()):
            raise GGUFError(f"{self.path} is damaged: {name} holds numbers that are not finite.")
        if name.endswith(ROTATED):
            values = _half_split(values, self.config.head_dim)
        return values.view(weight_shapes(self.config)[name])

    # --- tokenizer

    def tokenizer(self, name: str) -> ChatMLTokenizer:
        kind = f"{self._value('tokenizer.ggml.model')}/{self._value('tokenizer.ggml.pre', 'default')}"
        if kind != "gpt2/smollm":
            raise GGUFError(f"{self.path} has a tokenizer of the kind {kind}; only gpt2/smollm is known.")
        tokens, types = self._value("tokenizer.ggml.tokens"), self._value("tokenizer.ggml.token_type")
        if len(tokens) != self.config.vocab_size or len(types) != len(tokens):
            raise GGUFError(f"{self.path} has {len(tokens)} tokens for an embedding of {self.config.vocab_size}.")
        special_ids = [id for id, kind in enumerate(types) if kind == TokenType.CONTROL]
        try:
            return ChatMLTokenizer(tokens, special_ids, name)
        except ValueError as error:
            raise GGUFError(f"{self.path} has a vocabulary that is not SmolLM's: {error}.") from None


def _half_split(weight: torch.Tensor, head_dim: int) -> torch.Tensor:
    """llama.cpp rotates neighbouring rows against each other, so GGUF stores each head's two halves interleaved.

        stored  0 4 1 5 2 6 3 7   ->   0 1 2 3 4 5 6 7
    """
    rows, width = weight.shape
    return weight.view(rows // head_dim, head_dim // 2, 2, width).transpose(1, 2).reshape(rows, width)
