"""Tiny Llama models with random weights none of which is zero, and GGUF files of them."""

from pathlib import Path

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter, TokenType, quantize

from app.models.llama import Llama, LlamaConfig, weight_shapes

CONTEXT = 64
WIDE = {"n_embd": 64, "n_mlp": 96, "n_head": 4, "n_kv_head": 2}  # rows of whole blocks of 32, as quantized types want


def tiny_config(**changes) -> LlamaConfig:
    fields = {"n_layer": 3, "n_head": 6, "n_kv_head": 2, "n_embd": 48, "n_mlp": 80, "vocab_size": 273,
              "sequence_len": CONTEXT, "rope_base": 500.0}
    return LlamaConfig(**fields | changes)


def random_weights(config: LlamaConfig, seed: int = 0) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    weights = {name: torch.randn(shape, generator=rng) for name, shape in weight_shapes(config).items()}
    return {name: 1 + 0.3 * values if values.ndim == 1 else values if name == "token_embd.weight"
            else 1.5 * values * values.shape[-1] ** -0.5 for name, values in weights.items()}


def tiny_llama(dtype: torch.dtype = torch.float32, context: int | None = None, seed: int = 0, **changes) -> Llama:
    config = tiny_config(**changes)
    return Llama(config, random_weights(config, seed).__getitem__, dtype=dtype, context=context, name="tiny llama")


def random_ids(model, count: int, seed: int = 0) -> list[int]:
    return torch.randint(model.config.vocab_size, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def logits_of(model, ids: list[int]) -> torch.Tensor:
    """The truth: one pass over everything, (T, V)."""
    return model.forward(torch.tensor([ids]))[0]


def add(model, cache, *rows: list[int]) -> torch.Tensor:
    """Add as many new tokens to each row of the cache: logits (B, T, V)."""
    return model.forward(torch.tensor(rows), cache)


def same(a: torch.Tensor, b: torch.Tensor, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=tolerance)


# --- files

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>", "<filename>",
            "<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>",
            "<jupyter_code>", "<jupyter_output>", "<jupyter_script>", "<empty_output>"]


def tiny_vocabulary() -> tuple[list[str], list[int]]:
    """The special tokens and every single byte, spelled as GPT-2 does -> tokens, types."""
    printable = [byte for byte in range(256) if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174]
    spelling = {byte: chr(byte) for byte in printable}
    for byte in range(256):
        spelling.setdefault(byte, chr(256 + len(spelling) - len(printable)))
    tokens = SPECIALS + [spelling[byte] for byte in range(256)]
    return tokens, [TokenType.CONTROL] * len(SPECIALS) + [TokenType.NORMAL] * 256


def write_gguf(path: Path, config: LlamaConfig, weights: dict[str, torch.Tensor], architecture: str = "llama",
               quantization: GGMLQuantizationType | None = None, metadata: dict | None = None,
               vocabulary: tuple[list[str], list[int]] | None = None, pre: str = "smollm") -> Path:
    """A file as llama.cpp's converter writes it: rows of queries and keys interleaved. `metadata` None drops a key."""
    values = {
        "llama.block_count": config.n_layer, "llama.context_length": config.sequence_len,
        "llama.embedding_length": config.n_embd, "llama.feed_forward_length": config.n_mlp,
        "llama.attention.head_count": config.n_head, "llama.attention.head_count_kv": config.n_kv_head,
        "llama.rope.freq_base": config.rope_base, "llama.attention.layer_norm_rms_epsilon": config.norm_eps,
    } | (metadata or {})
    writer = GGUFWriter(path, architecture)
    for key, value in values.items():
        if isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        elif value is not None:
            writer.add_uint32(key, value)
    tokens, types = vocabulary or tiny_vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    for name, tensor in weights.items():
        if name.endswith(("attn_q.weight", "attn_k.weight")):
            tensor = interleaved(tensor, config.head_dim)
        array = np.ascontiguousarray(tensor.numpy())
        if quantization is not None and array.ndim == 2:
            writer.add_tensor(name, quantize(array, quantization), raw_dtype=quantization)
        else:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def interleaved(weight: torch.Tensor, head_dim: int) -> torch.Tensor:
    """Row j of a head's first half, then row j of its second, for every j."""
    order = [first for j in range(head_dim // 2) for first in (j, j + head_dim // 2)]
    return torch.cat([head[order] for head in weight.split(head_dim)])
