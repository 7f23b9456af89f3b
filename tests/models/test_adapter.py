"""An adapter is added to the weights it was made for, and to no others."""

import json

import pytest
import torch
from safetensors.torch import save_file

from app.models.adapter import Adapter, AdapterError, load_adapter
from app.models.llama import Llama
from app.models.registry import load_model
from app.training.trainable import TrainableLlama
from tests.models.tiny_llama import random_weights, tiny_config

CONFIG = tiny_config()
MARKS = [3, 5, 6, 9]


def tiny_weights():
    return random_weights(CONFIG)


def trained(rank: int = 4) -> TrainableLlama:
    """A trainable model whose adapter is not zero any more."""
    weights = tiny_weights()
    model = TrainableLlama(CONFIG, weights.__getitem__, MARKS, rank, 2.0, seed=1, dtype=torch.float32)
    rng = torch.Generator().manual_seed(2)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=rng) * 0.05
    return model


def saved(model: TrainableLlama, path, **changes):
    facts = {"scale": model.scale, "token_ids": MARKS} | changes
    save_file({name: tensor.clone() for name, tensor in model.tensors().items()}, path, metadata={"adapter": json.dumps(facts)})
    return path


def logits_of(model, ids):
    return model.forward(torch.tensor([ids]))[0]


def test_the_merged_model_computes_what_the_trained_one_does(tmp_path):
    model = trained()
    adapter = load_adapter(saved(model, tmp_path / "own.safetensors"))
    merged = Llama(CONFIG, adapter.weights(tiny_weights().__getitem__))
    ids = [1, 3, 5, 7, 9, 2, 6, 4, 3]
    wanted = torch.ones(1, len(ids), dtype=torch.bool)
    expected = model.logits(model.hidden(torch.tensor([ids]), wanted))
    assert torch.allclose(logits_of(merged, ids), expected, atol=1e-4)


def test_the_adapter_changes_what_the_model_computes(tmp_path):
    adapter = load_adapter(saved(trained(), tmp_path / "own.safetensors"))
    weight = tiny_weights().__getitem__
    ids = [1, 2, 4, 7]  # no mark among them
    assert not torch.allclose(logits_of(Llama(CONFIG, weight), ids), logits_of(Llama(CONFIG, adapter.weights(weight)), ids), atol=1e-2)


def test_a_trainable_model_without_its_adapter_is_the_published_one():
    model, ids = trained(), [1, 3, 5, 7, 9, 2]
    model.is_adapted = False
    logits = model.logits(model.hidden(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.bool)))
    assert torch.allclose(logits, logits_of(Llama(CONFIG, tiny_weights().__getitem__), ids), atol=1e-4)


def test_padding_at_the_right_end_changes_nothing():
    model, ids = trained(), [1, 3, 5, 7]
    wanted = torch.tensor([[True] * 4 + [False] * 3])
    padded = model.logits(model.hidden(torch.tensor([ids + [0, 0, 0]]), wanted))
    assert torch.allclose(padded, model.logits(model.hidden(torch.tensor([ids]), wanted[:, :4])), atol=1e-5)


def test_gradients_are_those_of_the_formula():
    """The projection's own derivative, against PyTorch's of the merged weights."""
    model, ids = trained(), torch.tensor([[1, 3, 5, 7, 9, 2]])
    wanted = torch.ones_like(ids, dtype=torch.bool)

    def loss_with(name, change):
        parameter = model.pairs[name]
        parameter.data += change
        loss = model.logits(model.hidden(ids, wanted)).log_softmax(-1)[:, 4].sum()
        parameter.data -= change
        return loss

    for name in ("blk_0_qkv_a", "blk_0_qkv_b", "blk_1_mlp_down_b", "blk_0_up_gate_a"):
        model.zero_grad()
        loss_with(name, 0.0).backward()
        direction = torch.randn(model.pairs[name].shape, generator=torch.Generator().manual_seed(4))
        slope = (loss_with(name, 1e-2 * direction) - loss_with(name, -1e-2 * direction)).item() / 2e-2
        assert (model.pairs[name].grad * direction).sum().item() == pytest.approx(slope, rel=2e-2, abs=2e-3), name


@pytest.mark.parametrize("damage", [b"", b"no adapter", b"\x08\x00\x00\x00\x00\x00\x00\x00{}      "])
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path, damage):
    (tmp_path / "own.safetensors").write_bytes(damage)
    with pytest.raises(AdapterError, match="is not an adapter, or it is damaged"):
        load_adapter(tmp_path / "own.safetensors")


@pytest.mark.parametrize("changes", [{"scale": "much"}, {"token_ids": [1]}, {"token_ids": None}])
def test_facts_that_cannot_be_are_refused(tmp_path, changes):
    with pytest.raises(AdapterError, match="damaged"):
        load_adapter(saved(trained(), tmp_path / "own.safetensors", **changes))


def test_numbers_that_are_not_finite_are_refused(tmp_path):
    model = trained()
    model.token_rows.data[0, 0] = float("nan")
    with pytest.raises(AdapterError, match="damaged"):
        load_adapter(saved(model, tmp_path / "own.safetensors"))


def test_a_name_that_there_is_not_is_told_with_what_there_is():
    with pytest.raises(AdapterError, match="There is no adapter nothing: choose none,"):
        load_adapter("nothing")


def test_an_adapter_of_another_model_is_refused():
    other = Adapter("other", 1.0, {"blk.0.qkv": (torch.zeros(2, 5), torch.zeros(7, 2))}, (), torch.zeros(0, CONFIG.n_embd))
    with pytest.raises(AdapterError, match="does not fit this model"):
        Llama(CONFIG, other.weights(tiny_weights().__getitem__))


def test_a_folder_of_nanochats_takes_no_adapter(tmp_path):
    (tmp_path / "model").mkdir()
    with pytest.raises(AdapterError, match="is for a GGUF model"):
        load_model(tmp_path / "model", adapter=saved(trained(), tmp_path / "own.safetensors"))
