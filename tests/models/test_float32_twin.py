"""The same model once more in float32: exactly the numbers that it runs with, widened."""

import pytest
import torch

from app.engine.kv_cache import KVCache
from app.models.llama import Llama
from app.models.nanochat import Nanochat
from tests.models import tiny_llama as llamas
from tests.models import tiny_nanochat as nanochats


def widen(model):
    """-> the twin, and how many steps it was made in."""
    steps, making = 0, model.float32_twin()
    while True:
        try:
            next(making)
            steps += 1
        except StopIteration as end:
            return end.value, steps


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_llama_twin_is_the_model_that_its_running_numbers_make_in_float32(dtype):
    config = llamas.tiny_config(tied_head=False)
    weights = llamas.random_weights(config)
    running = Llama(config, weights.__getitem__, dtype=dtype)
    layers_dtype = getattr(torch, running.weights_dtype)
    head_dtype = torch.float16 if running._head.in_float16 else dtype

    def running_number(name):
        if "norm" in name:
            return weights[name]
        own = {"output.weight": head_dtype, "token_embd.weight": running.embedding.dtype}.get(name, layers_dtype)
        return weights[name].to(own).float()

    twin, steps = widen(running)
    ids = llamas.random_ids(running, 20)
    expected = llamas.logits_of(Llama(config, running_number), ids)
    assert torch.equal(llamas.logits_of(twin, ids), expected)
    assert steps > config.n_layer, "others wait for no more than a layer"
    assert twin.weights_dtype == "float32" and KVCache.for_model(twin, 1, 8).dtype == torch.float32


def test_the_twin_of_a_llama_of_which_the_embedding_alone_is_float32_shares_that():
    running = llamas.tiny_llama(torch.float16)
    if running.embedding.dtype != torch.float32:
        pytest.skip("this processor does not convert numbers of 16 bits")
    twin, _ = widen(running)
    assert twin.embedding is running.embedding
    projections = sum(each.numel() for layer in twin._layers for each in layer)
    norm, head = running.config.n_embd, running.embedding.numel()
    assert running.float32_twin_bytes == 4 * (projections + norm + head)


@pytest.mark.parametrize("variant", nanochats.VARIANTS)
def test_a_nanochat_twin_is_the_model_that_its_running_numbers_make_in_float32(variant):
    architecture, changes = variant
    running = nanochats.tiny_nanochat(architecture, dtype=torch.bfloat16, **changes)
    state = nanochats.random_state(running.config, running.architecture, dtype=torch.bfloat16)
    exact = nanochats.random_state(running.config, running.architecture)
    numbers = {name: exact[name] if "lambda" in name else values.float() for name, values in state.items()}
    twin, steps = widen(running)
    ids = nanochats.random_ids(running, 20)
    expected = nanochats.logits_of(Nanochat(running.config, running.architecture, numbers), ids)
    assert torch.equal(nanochats.logits_of(twin, ids), expected)
    assert steps > running.config.n_layer


@pytest.mark.parametrize("make", [llamas.tiny_llama, nanochats.tiny_nanochat])
def test_making_a_twin_leaves_the_running_model_as_it_is(make):
    model = make(dtype=torch.bfloat16)
    ids = list(range(20, 40))
    before = model.forward(torch.tensor([ids]))
    twin, _ = widen(model)
    assert model.float32_twin_bytes > 0 and twin is not model
    assert model.cache_dtype == torch.bfloat16 and torch.equal(model.forward(torch.tensor([ids])), before)
    assert not torch.equal(twin.forward(torch.tensor([ids])), before), "a twin that rounds as the model does is none"


@pytest.mark.parametrize("make", [llamas.tiny_llama, nanochats.tiny_nanochat])
def test_a_model_that_runs_in_float32_is_its_own_twin(make):
    model = make()
    assert widen(model) == (model, 0) and model.float32_twin_bytes == 0
