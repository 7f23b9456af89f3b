"""What nanochat computed at which date.

nanochat changed its architecture three times, and its checkpoints do not say which one they hold: the
constants stood in its source only. The names and shapes of a checkpoint's tensors tell the date. This
module owns that table and the list of tensors that a checkpoint must have; it must never touch a weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

VOCABULARY_ROWS = -1  # in a shape: at least vocab_size rows, since nanochat pads them to a multiple of 64
SMEAR_CHANNELS = 24
SOFTCAP = 15.0
CONTEXT_FACTOR = 10  # a conversation may hold this many times sequence_len: as long as nanochat's rotary table


class ArchitectureError(ValueError):
    """Not a checkpoint of any known date. The message is half a sentence, to follow the file's name."""


@dataclass(frozen=True)
class NanochatConfig:
    """`model_config` of a checkpoint's meta file, checked."""
    sequence_len: int
    vocab_size: int
    n_layer: int
    n_head: int
    n_kv_head: int
    n_embd: int
    window_pattern: str = "L"

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head

    @classmethod
    def read(cls, model_config: object) -> NanochatConfig:
        """Raises ArchitectureError for a field that is missing, unknown or makes no model."""
        if not isinstance(model_config, Mapping):
            raise ArchitectureError("has no model_config")
        known = {field.name for field in fields(cls)}
        missing, unknown = sorted(known - {"window_pattern"} - set(model_config)), sorted(set(model_config) - known)
        if missing:
            raise ArchitectureError(f"lacks {missing[0]} in its model_config")
        if unknown:
            raise ArchitectureError(f"has {unknown[0]} in its model_config, which no known nanochat had")
        for name in sorted(known - {"window_pattern"}):
            value = model_config[name]
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ArchitectureError(f"gives {name} as {value!r}, which is not a whole number from 1 up")
        config = cls(**{name: model_config[name] for name in model_config})
        pattern = config.window_pattern
        if not isinstance(pattern, str) or not pattern or set(pattern.upper()) - set("SL"):
            raise ArchitectureError(f"gives window_pattern as {pattern!r}, which is not made of S and L")
        if config.n_embd % config.n_head or config.head_dim % 2:
            raise ArchitectureError(f"cannot divide n_embd {config.n_embd} into n_head {config.n_head} "
                                    "heads of even size")
        if config.n_head % config.n_kv_head:
            raise ArchitectureError(f"cannot share n_kv_head {config.n_kv_head} among n_head {config.n_head} equally")
        return replace(config, window_pattern=pattern.upper())


@dataclass(frozen=True)
class Architecture:
    """The constants of one date. `short_window` gives the window of an `S` layer for a sequence_len."""
    date: str
    rope_base: int = 10_000
    qk_scale: float = 1.0                              # q and k each, after their norm
    short_window: Callable[[int], int] | None = None
    residual_lambdas: bool = True                      # a factor a layer for x and for the first x
    gate_channels: int = 0                             # of the layer's input, for the value gate; 0: no such thing
    gate_scale: float = 0.0
    smear: bool = False                                # smear and backout, which came together

    def windows(self, config: NanochatConfig) -> tuple[int | None, ...]:
        """One window a layer, None for all: the pattern over and over, and the last layer always full."""
        short = self.short_window(config.sequence_len) if self.short_window else None
        pattern = [config.window_pattern[layer % len(config.window_pattern)] for layer in range(config.n_layer)]
        return (*(short if letter == "S" else None for letter in pattern[:-1]), None)

    def has_value_embedding(self, config: NanochatConfig, layer: int) -> bool:
        """On every second layer, the last one among them."""
        return self.gate_channels > 0 and (config.n_layer - 1 - layer) % 2 == 0

    def shapes(self, config: NanochatConfig) -> dict[str, tuple[int, ...]]:
        """Every tensor that a checkpoint must have, and nothing else, with its shape."""
        width, kv_width = config.n_embd, config.n_kv_head * config.head_dim
        shapes = {"transformer.wte.weight": (VOCABULARY_ROWS, width), "lm_head.weight": (VOCABULARY_ROWS, width)}
        for layer in range(config.n_layer):
            block = f"transformer.h.{layer}"
            shapes |= {f"{block}.attn.c_q.weight": (width, width),
                       f"{block}.attn.c_k.weight": (kv_width, width),
                       f"{block}.attn.c_v.weight": (kv_width, width),
                       f"{block}.attn.c_proj.weight": (width, width),
                       f"{block}.mlp.c_fc.weight": (4 * width, width),
                       f"{block}.mlp.c_proj.weight": (width, 4 * width)}
            if self.has_value_embedding(config, layer):
                shapes |= {f"value_embeds.{layer}.weight": (VOCABULARY_ROWS, kv_width),
                           f"{block}.attn.ve_gate.weight": (config.n_kv_head, self.gate_channels)}
        if self.residual_lambdas:
            shapes |= {"resid_lambdas": (config.n_layer,), "x0_lambdas": (config.n_layer,)}
        if self.smear:
            shapes |= {"smear_gate.weight": (1, SMEAR_CHANNELS), "smear_lambda": (1,), "backout_lambda": (1,)}
        return shapes

    def check(self, shapes: Mapping[str, tuple[int, ...]], config: NanochatConfig) -> None:
        """Compare a checkpoint's tensors with what this date has; ArchitectureError names the first difference."""
        if "S" in config.window_pattern and self.short_window is None:
            raise ArchitectureError(f"has window_pattern {config.window_pattern}, but the tensors of {self.date}, "
                                    "when nanochat had no windows")
        expected = self.shapes(config)
        for name in shapes:
            if name not in expected:
                raise ArchitectureError(f"has a key {name}, which the architecture of {self.date} does not have")
        for name, shape in expected.items():
            if name not in shapes:
                raise ArchitectureError(f"lacks the key {name} of the architecture of {self.date}")
            found = tuple(shapes[name])
            if shape[0] == VOCABULARY_ROWS:
                if found[1:] != shape[1:] or found[0] < config.vocab_size:
                    raise ArchitectureError(f"gives {name} as {_written(found)}, "
                                            f"not at least {_written((config.vocab_size, *shape[1:]))}")
            elif found != shape:
                raise ArchitectureError(f"gives {name} as {_written(found)}, not {_written(shape)}")


OCTOBER_2025 = Architecture("2025-10", residual_lambdas=False)
JANUARY_2026 = Architecture("2026-01", short_window=lambda length: length // 2, gate_channels=32, gate_scale=2.0)
EARLY_JANUARY_2026 = replace(JANUARY_2026, date="early 2026-01", gate_channels=0)  # a few days: no value embeddings
MARCH_2026 = Architecture("2026-03", rope_base=100_000, qk_scale=1.15, gate_channels=12, gate_scale=3.0,
                          short_window=lambda length: _divided(length, 3))
JULY_2026 = Architecture("2026-07", rope_base=100_000, qk_scale=1.2, gate_channels=12, gate_scale=3.0,
                         short_window=lambda length: _divided(length, 4), smear=True)
ARCHITECTURES = (OCTOBER_2025, EARLY_JANUARY_2026, JANUARY_2026, MARCH_2026, JULY_2026)


def tell_architecture(shapes: Mapping[str, tuple[int, ...]]) -> Architecture:
    """The date that a checkpoint's tensors speak of; whether all of it is there, `check` says."""
    gate = next((name for name in shapes if name.endswith(".ve_gate.weight")), None)
    channels = tuple(shapes[gate])[-1] if gate else None
    if gate and channels not in (JANUARY_2026.gate_channels, JULY_2026.gate_channels):
        raise ArchitectureError(f"has a {gate} of {channels} channels; known are 32 (2026-01) "
                                "and 12 (2026-03 and 2026-07)")
    if any(name.startswith("smear_gate") for name in shapes):
        return JULY_2026
    if gate:
        return JANUARY_2026 if channels == JANUARY_2026.gate_channels else MARCH_2026
    if any(name.startswith("value_embeds.") for name in shapes):
        return JANUARY_2026  # whose gates are missing, as `check` will say
    return EARLY_JANUARY_2026 if "resid_lambdas" in shapes else OCTOBER_2025


def _divided(length: int, parts: int, multiple: int = 128) -> int:
    """length / parts, rounded up to a multiple."""
    return -(-length // (parts * multiple)) * multiple


def _written(shape: tuple[int, ...]) -> str:
    return " x ".join(str(size) for size in shape) or "a single number"
