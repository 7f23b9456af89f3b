"""The what-if page's arithmetic, and the page without JavaScript."""

from dataclasses import replace

import pytest

from app.engine.messages import ModelNumbers, Snapshot
from app.models.random_weights import DEPTH_12
from app.web.what_if import KNOWN, LIMITS, Shape, cache_bytes, closer_drawing, cost, nanochat, presets, read_shape

SMOLLM2 = Shape(layers=30, heads=9, kv=3, head=64, bits=16, context=2048)
BY_KEY = {preset.key: preset for preset in KNOWN}


@pytest.mark.parametrize(("shape", "expected"), [
    (replace(SMOLLM2, context=1), 23_040),
    (replace(nanochat(20).shape, context=1), 102_400),
    (BY_KEY["llama8b"].shape, 2 * 32 * 8 * 128 * 2 * 8192),
    (replace(SMOLLM2, bits=32, people=8), 2 * 30 * 3 * 64 * 4 * 2048 * 8),
    (replace(SMOLLM2, bits=4, context=1), 23_040 // 4),
    (Shape(1, 1, 1, 1, 4, 1), 1)])
def test_the_bytes_are_the_product_of_the_factors(shape, expected):
    assert cache_bytes(shape) == expected


def test_the_presets_have_the_published_shapes_and_parameters():
    d12 = nanochat(12).shape
    assert (d12.layers, d12.heads, d12.kv, d12.heads * d12.head, d12.context) == (
        DEPTH_12.n_layer, DEPTH_12.n_head, DEPTH_12.n_kv_head, DEPTH_12.n_embd, DEPTH_12.sequence_len)
    assert nanochat(20).parameters == 560_988_160
    assert nanochat(32).parameters == 1_879_048_192
    for key, width, mlp in (("llama8b", 4096, 14_336), ("llama70b", 8192, 28_672)):
        shape = BY_KEY[key].shape
        attention = width * shape.head * (2 * shape.heads + 2 * shape.kv)
        layer = attention + 3 * width * mlp + 2 * width
        assert BY_KEY[key].parameters == 2 * 128_256 * width + shape.layers * layer + width


def test_the_model_that_runs_here_is_the_first_preset_with_its_measured_weights():
    model = ModelNumbers("Tiny", n_layer=2, n_head=4, n_kv_head=2, head_dim=4, bytes_per_element=4, weight_bytes=1000)
    first = presets(Snapshot(state="ready", context=64, model=model))[0]
    assert (first.key, first.name, first.shape) == ("this", "Tiny", Shape(2, 4, 2, 4, 32, 64))
    for bits in (32, 4):
        assert cost(replace(first.shape, bits=bits), (first,), True)["weight_bytes"] == 1000
    assert presets(Snapshot()) == KNOWN


def test_sharing_saves_as_many_times_as_query_heads_share_a_kv_head():
    numbers = cost(BY_KEY["llama70b"].shape, KNOWN, False)
    assert numbers["times"] == 8 and numbers["unshared_bytes"] == 8 * numbers["bytes"]
    assert cost(nanochat(32).shape, KNOWN, False)["times"] == 1


def test_weights_take_their_part_of_a_machine_only_where_they_are_known_and_wanted():
    shape = BY_KEY["llama8b"].shape
    bare, whole = cost(shape, KNOWN, False), cost(shape, KNOWN, True)
    assert bare["needed_bytes"] == bare["bytes"] == 2**30
    assert whole["needed_bytes"] == 2**30 + 2 * 8_030_261_248
    fits = {machine["key"]: (machine["fits"], machine["people"]) for machine in whole["machines"]}
    assert fits["laptop"] == (False, 0) and fits["gpu24"] == (True, (24 * 10**9 - 2 * 8_030_261_248) // 2**30)
    assert {machine["key"]: machine["permille"] for machine in bare["machines"]}["phone"] == 134
    other = cost(replace(shape, layers=31), KNOWN, True)
    assert other["weights_of"] is None and other["needed_bytes"] == other["bytes"]
    assert cost(replace(shape, kv=32), KNOWN, True)["weights_of"] == "llama8b"


@pytest.mark.parametrize(("shape", "weights", "key", "factor"), [
    (SMOLLM2, False, "phone", 100),
    (replace(SMOLLM2, people=16), False, "phone", 10),
    (replace(SMOLLM2, people=17), False, None, None),  # a tenth of a phone can be seen as it is
    (Shape(1, 1, 1, 1, 4, 1), False, "phone", 5_000_000_000),
    (replace(BY_KEY["llama8b"].shape, context=64), True, "gpu24", 2000),
    (replace(BY_KEY["llama70b"].shape, context=64), True, None, None)])  # its weights fit nowhere
def test_what_is_too_little_to_be_seen_is_enlarged_by_a_round_factor(shape, weights, key, factor):
    numbers = cost(shape, KNOWN, weights)
    closer, drawn = numbers["closer"], closer_drawing(numbers)
    if key is None:
        assert closer is None and drawn is None
        return
    assert (closer["key"], closer["factor"]) == (key, factor)
    assert 40 <= drawn["cache"] <= 100 and drawn["weights"] >= 0 and drawn["weights"] + drawn["cache"] <= 100.001
    # both bars show the same bytes
    assert drawn["cache"] == pytest.approx(drawn["used"] * factor) and drawn["start"] <= drawn["held"]
    assert closer["tokens"] * numbers["bytes_per_token"] + numbers["held_bytes"] <= closer["bytes"]


@pytest.mark.parametrize(("raw", "changed", "note"), [
    ({}, {}, None),
    ({"layers": "12"}, {"layers": 12}, None),
    ({"layers": "0"}, {"layers": 1}, ("range", "layers")),
    ({"people": "999999999"}, {"people": 10_000}, ("range", "people")),
    ({"context": "-5"}, {"context": 1}, ("range", "context")),
    ({"context": "9" * 400}, {}, ("number", "context")),
    ({"head": "64.5"}, {}, ("number", "head")),
    ({"head": ""}, {}, ("number", "head")),
    ({"head": " 64"}, {}, ("number", "head")),
    ({"layers": "1_0"}, {}, ("number", "layers")),
    ({"layers": "١٢"}, {}, ("number", "layers")),
    ({"layers": "<script>"}, {}, ("number", "layers")),
    ({"bits": "16 "}, {}, ("bits", "bits")),
    ({"bits": "8"}, {"bits": 8}, None),
    ({"kv": "9"}, {"kv": 9}, None),
    ({"kv": "4"}, {"kv": 3}, ("divide", "kv")),
    ({"heads": "8"}, {"heads": 8, "kv": 2}, ("divide", "kv")),
    ({"heads": "2", "kv": "200"}, {"heads": 2, "kv": 2}, ("divide", "kv"))])
def test_what_a_link_asks_for_is_taken_or_changed_with_a_note(raw, changed, note):
    shape, notes = read_shape(raw, SMOLLM2)
    assert shape == replace(SMOLLM2, **changed)
    assert [(code, figures["field"]) for code, figures in notes] == ([note] if note else [])


def test_a_running_model_out_of_the_pages_range_still_opens_the_page():
    shape, notes = read_shape({}, replace(SMOLLM2, layers=999, bits=64))
    assert (shape.layers, shape.bits, notes) == (LIMITS["layers"][1], 16, [])
