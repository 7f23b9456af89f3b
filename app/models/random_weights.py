"""nanochat models with random weights: for measuring speed and for tests, where no checkpoint is at hand.

Every number is drawn, none left at zero: nanochat begins training with many zeros, behind which faults
would hide. What such a model writes is noise; how long it takes does not depend on that.
"""

from __future__ import annotations

import tiktoken
import torch

from app.models.nanochat import Nanochat
from app.models.nanochat_architecture import JULY_2026, VOCABULARY_ROWS, Architecture, NanochatConfig
from app.models.nanochat_tokenizer import NanochatTokenizer
from app.models.pickled_encoding import SPECIAL_NAMES

# The split pattern that nanochat trains its tokenizers with is GPT-4's, with numbers of at most two digits.
SPLIT_PATTERN = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*"
                 r"|\s*[\r\n]|\s+(?!\S)|\s+")
DEPTH_12 = NanochatConfig(sequence_len=2048, vocab_size=32_768, n_layer=12, n_head=6, n_kv_head=6, n_embd=768,
                          window_pattern="SSSL")


def random_state(config: NanochatConfig, architecture: Architecture, seed: int = 0,
                 dtype: torch.dtype = torch.float32, padded_to: int = 64) -> dict[str, torch.Tensor]:
    """Every tensor that a checkpoint of this date has, drawn so that activations keep an ordinary size."""
    rng = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in architecture.shapes(config).items():
        if shape[0] == VOCABULARY_ROWS:
            shape = (-(-config.vocab_size // padded_to) * padded_to, *shape[1:])
        values = torch.randn(shape, generator=rng)
        if name == "resid_lambdas":
            values = 1 + 0.1 * values
        elif len(shape) == 1:
            values = 0.3 + 0.1 * values
        elif name != "transformer.wte.weight":
            values = values * shape[-1] ** -0.5
        state[name] = values.to(dtype)
    return state


def random_depth_12(device: torch.device | str = "cpu", dtype: torch.dtype = torch.bfloat16,
                    architecture: Architecture = JULY_2026, seed: int = 0) -> tuple[Nanochat, NanochatTokenizer]:
    """nanochat's depth-12 model: 768 wide, 6 heads, 32,768 tokens, and a tokenizer of that many to go with it."""
    state = random_state(DEPTH_12, architecture, seed)
    model = Nanochat(DEPTH_12, architecture, state, device, dtype, name="nanochat d12, random weights")
    return model, NanochatTokenizer(made_up_encoding(DEPTH_12.vocab_size), name="made up")


def made_up_encoding(vocab_size: int) -> tiktoken.Encoding:
    """A vocabulary of any size: the single bytes, then pairs of bytes and so on, then the nine special tokens."""
    num_ordinary = vocab_size - len(SPECIAL_NAMES)
    assert num_ordinary >= 256, f"{vocab_size} tokens are too few for all single bytes and the special tokens"
    tokens = [bytes([byte]) for byte in range(256)]
    length = 2
    while len(tokens) < num_ordinary:
        wanted = min(num_ordinary - len(tokens), 256**length)
        tokens += [number.to_bytes(length, "big") for number in range(wanted)]
        length += 1
    return tiktoken.Encoding("made up", pat_str=SPLIT_PATTERN,
                             mergeable_ranks={token: rank for rank, token in enumerate(tokens)},
                             special_tokens={name: num_ordinary + n for n, name in enumerate(SPECIAL_NAMES)})
