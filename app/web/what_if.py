"""The arithmetic of the what-if page: what a key-value cache takes, for any shape of model.

static/js/memory_arithmetic.js does the same in the browser, and a test holds the two together. Whole numbers
only, so that both give the same to the last byte. This module must never know how a number is shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

LIMITS = {"layers": (1, 200), "heads": (1, 256), "kv": (1, 256), "head": (1, 512),
          "context": (1, 1_048_576), "people": (1, 10_000)}
BITS = (32, 16, 8, 4)
MACHINES = {"phone": 8 * 10**9, "laptop": 16 * 10**9, "gpu24": 24 * 10**9, "gpu80": 80 * 10**9, "gpu141": 141 * 10**9}
LARGE_ENOUGH = 10  # what is less than this part of a machine is shown enlarged, too
_WHOLE = re.compile(r"-?[0-9]{1,15}")


@dataclass(frozen=True)
class Shape:
    """What the cache's size follows from: `kv` KV heads serve `heads` query heads, `head` is the size of one."""
    layers: int
    heads: int
    kv: int
    head: int
    bits: int
    context: int
    people: int = 1


@dataclass(frozen=True)
class Preset:
    """A model whose shape is known. Its weights follow from `parameters` and the chosen precision; of the model
    that runs here they are `weight_bytes`, as measured, in whatever precision they lie."""
    key: str
    name: str
    shape: Shape
    parameters: int | None = None
    weight_bytes: int | None = None


def nanochat(depth: int) -> Preset:
    """nanochat of October 2025: 64 wide a layer, heads of 128, as many KV heads as query heads, 65,536 tokens.
    Input and output table, then per layer 4 × width² for the attention and 8 × width² for the rest."""
    width = 64 * depth
    heads = width // 128
    return Preset(f"d{depth}", f"nanochat d{depth}", Shape(depth, heads, heads, 128, 16, 2048),
                  parameters=2 * 65_536 * width + 12 * depth * width**2)


KNOWN = (nanochat(12), nanochat(20), nanochat(32),
         Preset("llama8b", "Llama-3-8B", Shape(32, 32, 8, 128, 16, 8192), parameters=8_030_261_248),
         Preset("llama70b", "Llama-3-70B", Shape(80, 64, 8, 128, 16, 8192), parameters=70_553_706_496))


def presets(snapshot) -> tuple[Preset, ...]:
    """The model that runs here, once it is loaded, and the known ones."""
    model = snapshot.model
    if not model.n_layer:
        return KNOWN
    shape = Shape(model.n_layer, model.n_head, model.n_kv_head, model.head_dim, 8 * model.bytes_per_element, snapshot.context)
    return (Preset("this", model.name, shape, weight_bytes=model.weight_bytes), *KNOWN)


def read_shape(raw: Mapping[str, str], default: Shape) -> tuple[Shape, list[tuple[str, dict]]]:
    """The shape that a link asks for, and what had to be changed, as notes: a code and its figures.

    A number out of range is moved to the nearer end; what is no number is the default's; KV heads that do not
    divide the query heads become the next smaller number that does.
    """
    values, notes = {}, []
    for name, (least, most) in LIMITS.items():
        text, own = raw.get(name), min(max(getattr(default, name), least), most)
        if text is None:
            values[name] = own
            continue
        is_whole = _WHOLE.fullmatch(text) is not None
        values[name] = min(max(int(text), least), most) if is_whole else own
        if not is_whole or int(text) != values[name]:
            notes.append(("range" if is_whole else "number",
                          {"field": name, "least": least, "most": most, "used": values[name]}))
    bits = raw.get("bits")
    values["bits"] = int(bits) if bits in map(str, BITS) else default.bits if default.bits in BITS else 16
    if bits not in (None, *map(str, BITS)):
        notes.append(("bits", {"field": "bits", "used": values["bits"]}))
    kv = next(n for n in range(min(values["kv"], values["heads"]), 0, -1) if values["heads"] % n == 0)
    if kv != values["kv"]:
        notes.append(("divide", {"field": "kv", "heads": values["heads"], "used": kv}))
    return Shape(**{**values, "kv": kv}), notes


def cache_bytes(shape: Shape) -> int:
    """2 (a key and a value) × layers × KV heads × head size × bytes a number × tokens × people."""
    return 2 * shape.layers * shape.kv * shape.head * shape.context * shape.people * shape.bits // 8


def cost(shape: Shape, known: tuple[Preset, ...], with_weights: bool) -> dict:
    """All numbers of the page for a shape."""
    used = cache_bytes(shape)
    each = cache_bytes(replace(shape, people=1))
    owner = next((preset for preset in known if _has_weights_of(shape, preset) and weight_bytes(preset, 8)), None)
    weights = weight_bytes(owner, shape.bits) if owner else None
    held = weights if with_weights and weights else 0
    machines = [_on_machine(key, size, used, held, each) for key, size in MACHINES.items()]
    return {
        "shape": asdict(shape),
        "preset": next((preset.key for preset in known if _is(shape, preset)), None),
        "bytes_per_token": cache_bytes(replace(shape, context=1, people=1)),
        "bytes_each": each,
        "bytes": used,
        "unshared_bytes": cache_bytes(replace(shape, kv=shape.heads)),
        "times": shape.heads // shape.kv,
        "weights_of": owner.key if owner else None,
        "weight_bytes": weights,
        "needed_bytes": used + held,
        "held_bytes": held,
        "machines": machines,
        "closer": _closer(machines, used, held, each, cache_bytes(replace(shape, context=1, people=1))),
    }


def _on_machine(key: str, size: int, used: int, held: int, each: int) -> dict:
    people = max(size - held, 0) // each
    room = "none" if held > size else "nobody" if people == 0 else "one" if people == 1 else "people"
    return {"key": key, "bytes": size, "permille": (used + held) * 1000 // size, "fits": used + held <= size,
            "people": people, "room": room}


def _closer(machines: list[dict], used: int, held: int, each: int, token: int) -> dict | None:
    """The smallest machine that it fits into, where it is so little of it that it has to be enlarged to be seen: by a
    round `factor`, `across` bytes of it from `start` on. `tokens` and `conversations` would fill what the weights leave."""
    machine = next((machine for machine in machines if machine["fits"]), None)
    if machine is None or used * LARGE_ENOUGH > machine["bytes"]:
        return None
    size, factor = machine["bytes"], 1
    while used * (larger := _next_round(factor)) <= size:
        factor = larger
    across = size // factor
    return {"key": machine["key"], "bytes": size, "factor": factor, "across": across, "start": min(held, size - across),
            "tokens": (size - held) // token, "conversations": (size - held) // each}


def _next_round(factor: int) -> int:
    """1, 2, 5, 10, 20, 50, …"""
    return factor * 5 // 2 if str(factor).startswith("2") else factor * 2


def closer_drawing(numbers: dict) -> dict | None:
    """Per cent of the width: on the whole machine `held` and `used`, and what is enlarged, `start` to `end`; enlarged,
    `weights` and `cache`."""
    closer = numbers["closer"]
    if closer is None:
        return None
    size, start = closer["bytes"], closer["start"]
    across = size / closer["factor"]
    return {"held": 100 * numbers["held_bytes"] / size, "used": 100 * numbers["bytes"] / size,
            "start": 100 * start / size, "end": min(100 * (start + across) / size, 100),
            "weights": 100 * (numbers["held_bytes"] - start) / across, "cache": 100 * numbers["bytes"] / across}


def sides(areas: list[int]) -> list[float]:
    """The sides of squares with these areas, to one scale: the first is what is needed, the others are machines, the
    largest of which has the side 10; all of them are drawn smaller where the first would be wider than 14."""
    needed, *machines = [math.sqrt(area) * 10 / math.sqrt(max(areas[1:])) for area in areas]
    shrunk = 14 / needed if needed > 14 else 1
    return [side * shrunk for side in (needed, *machines)]


def drawing(numbers: dict) -> list[dict]:
    """The squares: what is needed, then the machines. `weights` and `cache` fill so many per cent of one from below."""
    areas = [numbers["needed_bytes"], *(machine["bytes"] for machine in numbers["machines"])]
    squares = []
    for area, side in zip(areas, sides(areas), strict=True):
        weights = min(100 * numbers["held_bytes"] / area, 100)
        cache = max(100 * numbers["bytes"] / area, 0.8)  # never too thin to be seen
        squares.append({"side": max(side, 0.3), "weights": weights, "cache": min(cache, 100 - weights)})
    return squares


def weight_bytes(preset: Preset, bits: int) -> int:
    return preset.weight_bytes if preset.parameters is None else preset.parameters * bits // 8


def _is(shape: Shape, preset: Preset) -> bool:
    own = preset.shape
    return _has_weights_of(shape, preset) and (shape.kv, shape.context) == (own.kv, own.context)


def _has_weights_of(shape: Shape, preset: Preset) -> bool:
    """Whether it is this model, perhaps with other KV heads: those change its weights by little."""
    own = preset.shape
    return (shape.layers, shape.heads, shape.head) == (own.layers, own.heads, own.head)
