"""An adapter: what a model learned afterwards, small enough to lie in the repository, added to the weights at loading.

For every layer and projection it holds two thin matrices whose product is added to the weight (LoRA, Hu et al.
2021, https://arxiv.org/abs/2106.09685), and for a few tokens rows of their own in the embedding:

    W' = W + scale · B A        W (out, in), A (rank, in), B (out, rank)

Q, K and V lie side by side as one projection, and up and gate as another, as in app/models/llama.py. The sums
are made in float32 before the weights are rounded to the model's type. This module must never compute with a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from app.models.errors import ModelError

ADAPTERS = Path(__file__).parent / "adapters"
FUSED = {"qkv": ("attn_q", "attn_k", "attn_v"), "attention_out": ("attn_output",),
         "up_gate": ("ffn_up", "ffn_gate"), "mlp_down": ("ffn_down",)}


class AdapterError(ModelError):
    """An adapter that cannot be used; the text is a sentence for a person."""


@dataclass(frozen=True)
class Adapter:
    """`pairs` names a fused projection, such as `blk.0.qkv`, and has its (A, B), float32; `token_ids` and `token_rows`
    (n, width) are the rows that stand in the embedding (and in a head that is tied to it) in place of the model's."""

    name: str
    scale: float
    pairs: dict[str, tuple[torch.Tensor, torch.Tensor]]
    token_ids: tuple[int, ...]
    token_rows: torch.Tensor

    def weights(self, weight: Callable[[str], torch.Tensor]) -> Callable[[str], torch.Tensor]:
        """The model's `weight(name)` with the adapter added. AdapterError where shapes do not fit together."""
        return lambda name: self._added(name, weight(name))

    def _added(self, name: str, weight: torch.Tensor) -> torch.Tensor:
        if name == "token_embd.weight":
            if self.token_rows.shape[1:] != weight.shape[1:] or max(self.token_ids, default=0) >= len(weight):
                raise self._misfit(name)
            weight = weight.clone()
            weight[list(self.token_ids)] = self.token_rows
            return weight
        layer, _, part = name.removesuffix(".weight").rpartition(".")
        fused = next((fused for fused, parts in FUSED.items() if part in parts), None)
        pair = self.pairs.get(f"{layer}.{fused}")
        if pair is None:
            return weight
        a, b = pair
        # where this part's rows begin and end in the fused projection
        if len(FUSED[fused]) == 2:
            start = len(b) // 2 * FUSED[fused].index(part)
        elif part == "attn_q" or len(FUSED[fused]) == 1:
            start = 0
        else:
            start = len(b) - len(weight) * (2 if part == "attn_k" else 1)
        if a.shape[1] != weight.shape[1] or not 0 <= start <= len(b) - len(weight):
            raise self._misfit(name)
        return weight + self.scale * (b[start:start + len(weight)] @ a)

    def _misfit(self, name: str) -> AdapterError:
        return AdapterError(f"The adapter {self.name} does not fit this model: its {name} has another shape.")


def load_adapter(name: str | Path) -> Adapter:
    """The adapter of that name in the repository, such as "calculator", or the one in a safetensors file."""
    file = ADAPTERS / f"{name}.safetensors" if str(name) in shipped() else Path(name).expanduser()
    if not file.is_file():
        names = ", ".join(["none", *shipped()])
        raise AdapterError(f"There is no adapter {name}: choose {names}, or the path of a file.")
    try:
        with safe_open(file, "pt") as opened:
            facts = json.loads(opened.metadata()["adapter"])
            tensors = {key: opened.get_tensor(key).float() for key in opened.keys()}
        pairs = {key.removesuffix(".a"): (tensors[key], tensors[f"{key.removesuffix('.a')}.b"])
                 for key in tensors if key.endswith(".a")}
        adapter = Adapter(file.stem, float(facts["scale"]), pairs, tuple(map(int, facts["token_ids"])),
                          tensors["token_rows"])
    except (SafetensorError, OSError, KeyError, TypeError, ValueError):
        raise AdapterError(f"{file} is not an adapter, or it is damaged.") from None
    whole = all(a.dim() == b.dim() == 2 and len(a) == b.shape[1] for a, b in adapter.pairs.values())
    if not whole or len(adapter.token_ids) != len(adapter.token_rows) or adapter.token_rows.dim() != 2 \
            or not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
        raise AdapterError(f"{file} is not an adapter, or it is damaged.")
    return adapter


def shipped() -> list[str]:
    """The names of the adapters that lie in the repository."""
    return sorted(file.stem for file in ADAPTERS.glob("*.safetensors"))
