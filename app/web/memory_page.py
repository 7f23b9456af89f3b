"""What the what-if page shows: the numbers for its link, and what its script needs to work out others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from urllib.parse import urlencode

from app.web.what_if import BITS, LIMITS, MACHINES, closer_drawing, cost, drawing, presets, read_shape


def memory_page(snapshot, query: Mapping[str, str], path: str) -> dict:
    """The template's context. `snapshot` is the engine's; `query` is the link's; `path` is the page's own."""
    known = presets(snapshot)
    shape, notes = read_shape(query, known[0].shape)
    with_weights = query.get("weights") != "0"  # nobody has a cache without a model to fill it
    numbers = cost(shape, known, with_weights)
    shown = [{**asdict(preset), "url": f"{path}?{urlencode(asdict(preset.shape))}"} for preset in known]
    return {
        "cost": numbers,
        "drawing": drawing(numbers),
        "closer": closer_drawing(numbers),
        "notes": [{"code": code, **figures} for code, figures in notes],
        "owner": next((preset for preset in known if preset.key == numbers["weights_of"]), None),
        "with_weights": with_weights,
        "presets": shown,
        "limits": LIMITS,
        "known_bits": BITS,
        "page": {"presets": shown, "limits": LIMITS, "bits": BITS, "machines": MACHINES, "initial": numbers["shape"],
                 "default": shown[0]["shape"]},
    }
