"""A tiny transformer that keeps to the contract and to nothing else.

It writes into the cache the plain way, through `get_layer_cache` and `cache_seqlens`, so the engine is
tested with a model that knows no more than a stranger's would. Weights are random and far from zero.
"""

from dataclasses import dataclass

import torch

from app.engine.sampling import make_generator, sample_next_token


@dataclass(frozen=True)
class TinyConfig:
    n_layer: int = 2
    n_head: int = 4
    n_kv_head: int = 2
    n_embd: int = 32
    sequence_len: int = 96
    vocab_size: int = 265


class TinyModel:
    def __init__(self, config: TinyConfig = TinyConfig(), seed: int = 0):
        self.config = config
        rng = torch.Generator().manual_seed(seed)
        width, head_dim = config.n_embd, config.n_embd // config.n_head

        def weight(*shape):
            return torch.randn(*shape, generator=rng) / shape[-1] ** 0.5

        self.embedding = weight(config.vocab_size, width) * 3
        self.positions = weight(4 * config.sequence_len, width) * 3
        self.layers = [(weight(width, width), weight(config.n_kv_head * head_dim, width),
                        weight(config.n_kv_head * head_dim, width), weight(width, width), weight(width, width))
                       for _ in range(config.n_layer)]
        self.head = weight(config.vocab_size, width) * 2
        self.tokens_computed = 0

    def get_device(self):
        return torch.device("cpu")

    def forward(self, ids, kv_cache=None):
        num_rows, num_new = ids.shape
        self.tokens_computed += ids.numel()
        config, head_dim = self.config, self.config.n_embd // self.config.n_head
        starts = kv_cache.cache_seqlens.long() if kv_cache is not None else torch.zeros(num_rows, dtype=torch.long)
        at = starts[:, None] + torch.arange(num_new)[None]  # (B, T)
        x = self.embedding[ids] + self.positions[at]
        for layer, (wq, wk, wv, wo, wm) in enumerate(self.layers):
            q = (x @ wq.T).view(num_rows, num_new, config.n_head, head_dim)
            k = (x @ wk.T).view(num_rows, num_new, config.n_kv_head, head_dim)
            v = (x @ wv.T).view(num_rows, num_new, config.n_kv_head, head_dim)
            if kv_cache is not None:
                keys, values = kv_cache.get_layer_cache(layer)
                for b in range(num_rows):
                    keys[b, starts[b]:starts[b] + num_new] = k[b]
                    values[b, starts[b]:starts[b] + num_new] = v[b]
            rows = []
            for b in range(num_rows):
                end = int(starts[b]) + num_new
                row_k, row_v = (keys[b, :end], values[b, :end]) if kv_cache is not None else (k[b], v[b])
                group = config.n_head // config.n_kv_head
                row_k, row_v = row_k.repeat_interleave(group, 1), row_v.repeat_interleave(group, 1)  # (S, H, D)
                scores = torch.einsum("thd,shd->hts", q[b], row_k) / head_dim ** 0.5
                seen = torch.arange(end)[None] <= at[b][:, None]
                weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
                rows.append(torch.einsum("hts,shd->thd", weights, row_v).reshape(num_new, -1))
            x = x + torch.stack(rows) @ wo.T
            x = x + torch.tanh(x @ wm.T)
        if kv_cache is not None:
            kv_cache.advance(num_new)
        return x / x.norm(dim=-1, keepdim=True) * 4 @ self.head.T

    def generate(self, tokens, max_tokens, temperature=1.0, top_k=None, seed=42):
        rng, ids = make_generator(seed), list(tokens)
        for _ in range(max_tokens):
            logits = self.forward(torch.tensor([ids]))[:, -1]
            ids.append(int(sample_next_token(logits, rng, temperature, top_k)))
            yield ids[-1]


class PlainTokenizer:
    """Bytes as ids and nanochat's nine special tokens after them: the least that the engine needs."""

    NAMES = ("<|bos|>", "<|user_start|>", "<|user_end|>", "<|assistant_start|>", "<|assistant_end|>",
             "<|python_start|>", "<|python_end|>", "<|output_start|>", "<|output_end|>")

    def encode(self, text):
        return list(text.encode())

    def decode(self, ids):
        return bytes(i for i in ids if i < 256).decode(errors="replace")

    def encode_special(self, name):
        return 256 + self.NAMES.index(name)

    def get_bos_token_id(self):
        return 256

    def get_vocab_size(self):
        return 265


BOS, END = 256, 260
EXPRESSION_START, EXPRESSION_END, OUTPUT_START, OUTPUT_END = 261, 262, 263, 264


class ScriptModel(TinyModel):
    """Says what it is told: after `n` tokens in all, the `n`-th entry of its script comes next.

    It reads the number of tokens from the cache, or from the ids where there is none, so that it can be
    driven both ways. `script` maps a position in the conversation to the id that stands there.
    """

    def __init__(self, script: dict[int, int], sequence_len: int = 96):
        super().__init__(TinyConfig(n_layer=1, sequence_len=sequence_len))
        self.script = script

    def forward(self, ids, kv_cache=None):
        num_rows, num_new = ids.shape
        self.tokens_computed += ids.numel()
        starts = kv_cache.cache_seqlens.tolist() if kv_cache is not None else [0] * num_rows
        if kv_cache is not None:
            kv_cache.advance(num_new)
        logits = torch.zeros(num_rows, num_new, self.config.vocab_size)
        for b, start in enumerate(starts):
            for t in range(num_new):
                logits[b, t, self.script.get(start + t + 1, END)] = 50.0
        return logits


def script_from(prompt_length: int, ids: list[int]) -> dict[int, int]:
    """The script of a model that answers a prompt of that length with `ids`."""
    return {prompt_length + i: token for i, token in enumerate(ids)}
