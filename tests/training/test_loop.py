"""A training teaches, and one that was stopped goes on where it was."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from gguf import TokenType

from app.models.adapter import load_adapter
from app.models.chatml_tokenizer import ChatMLTokenizer
from app.training.batches import Batches
from app.training.loop import Recipe, train
from app.training.trainable import TrainableLlama
from tests.models.tiny_llama import random_weights, tiny_config, tiny_vocabulary

CONFIG = tiny_config(vocab_size=len(tiny_vocabulary()[0]))
RECIPE = Recipe(steps=12, sums_a_step=4, ordinary_a_step=2, rank=2, warm_up_steps=2, learning_rate=1e-2, processes=2)
OWN = [{"messages": [{"role": "user", "content": "Hi"}], "text": "Hello.", "ids": [40, 41, 42], "ended": True}]


def tiny_tokenizer() -> ChatMLTokenizer:
    tokens, types = tiny_vocabulary()
    return ChatMLTokenizer(tokens, [id for id, kind in enumerate(types) if kind == TokenType.CONTROL], "tiny")


def make_model(recipe: Recipe) -> TrainableLlama:
    return TrainableLlama(CONFIG, random_weights(CONFIG).__getitem__, [12, 13, 14, 15], recipe.rank, recipe.scale, recipe.seed,
                          dtype=torch.float32)


def make_batches(recipe: Recipe) -> Batches:
    return Batches(tiny_tokenizer(), ["apple", "window"], OWN, recipe.seed, recipe.sums_a_step, recipe.ordinary_a_step,
                   recipe.processes)


class StumblingBatches(Batches):
    def group(self, number, part):
        if number == 1:
            raise KeyError("stumbled")
        return super().group(number, part)


def make_stumbling_batches(recipe: Recipe) -> Batches:
    return StumblingBatches(tiny_tokenizer(), ["apple", "window"], OWN, recipe.seed, recipe.sums_a_step,
                            recipe.ordinary_a_step, recipe.processes)


def loss_of(model: TrainableLlama) -> float:
    losses = []
    for calculated, _ in make_batches(replace(RECIPE, seed=99, processes=1)).group(0, 0):
        with torch.no_grad():
            losses.append(F.cross_entropy(model.logits(model.hidden(calculated.ids, calculated.wanted)), calculated.targets))
    return torch.stack(losses).mean().item()


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    return train(RECIPE, tmp_path_factory.mktemp("whole"), make_model, make_batches)


def test_what_is_learned_lowers_the_loss_on_what_was_not_seen(learned):
    model = make_model(RECIPE)
    before = loss_of(model)
    state = {f"pairs.{name.replace('.', '_')}": tensor for name, tensor in learned.items() if name != "token_rows"}
    model.load_state_dict(state | {"token_rows": learned["token_rows"]})
    assert loss_of(model) < before - 0.3


def test_a_training_that_was_stopped_goes_on_and_learns_the_same(learned, tmp_path):
    with pytest.raises(Exception, match="stumbled"):
        train(RECIPE, tmp_path, make_model, make_stumbling_batches, save_every_steps=4)
    assert torch.load(tmp_path / "state.pt", weights_only=True)["steps"] == 8
    again = train(RECIPE, tmp_path, make_model, make_batches)
    assert again.keys() == learned.keys()
    for name, tensor in learned.items():
        assert torch.equal(again[name], tensor), name


def test_a_finished_training_is_not_done_twice_and_another_recipe_begins_anew(learned, tmp_path):
    train(replace(RECIPE, steps=8), tmp_path, make_model, make_batches)
    same = train(replace(RECIPE, steps=8), tmp_path, make_model, make_stumbling_batches)  # does not come to stumble
    other = train(replace(RECIPE, steps=8, seed=2), tmp_path, make_model, make_batches)
    assert not torch.equal(same["token_rows"], other["token_rows"])


def test_two_processes_see_different_halves_of_the_same_batches():
    batches = make_batches(RECIPE)
    halves = [batches.group(3, part) for part in (0, 1)]
    assert len(halves[0]) == len(halves[1]) == 8
    for (mine, _), (theirs, _) in zip(*halves):
        assert len(mine.ids) == len(theirs.ids) == RECIPE.sums_a_step // 2
        width = min(mine.ids.shape[1], theirs.ids.shape[1])
        assert not torch.equal(mine.ids[:, :width], theirs.ids[:, :width])


def test_the_loss_is_for_what_the_assistant_writes_alone():
    tokenizer = tiny_tokenizer()
    forced = {tokenizer.encode_special(name) for name in ("<|output_start|>", "<|output_end|>", "<|user_start|>")}
    for calculated, own in make_batches(RECIPE).group(0, 0):
        assert not forced & set(calculated.targets.tolist()) - {tokenizer.encode_special("<|user_start|>")}
        assert tokenizer.encode_special("<|python_start|>") in calculated.targets
        assert set(own.targets.tolist()) <= {40, 41, 42, tokenizer.encode_special("<|assistant_end|>")}
