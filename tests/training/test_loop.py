"""A training teaches, and one that was stopped goes on where it was."""

from dataclasses import replace

import pytest
import torch
from gguf import TokenType

from app.models.adapter import load_adapter
from app.models.chatml_tokenizer import ChatMLTokenizer
from app.training.batches import WORDING, Batches, own_sequences
from app.training.loop import Recipe, train, weighted_loss
from app.training.published import published_states
from app.training.trainable import TrainableLlama
from tests.models.tiny_llama import random_weights, tiny_config, tiny_vocabulary

CONFIG = tiny_config(vocab_size=len(tiny_vocabulary()[0]))
RECIPE = Recipe(steps=12, sums_a_step=4, ordinary_a_step=2, rank=2, warm_up_steps=2, learning_rate=1e-2, processes=2)
OWN = [{"messages": [{"role": "user", "content": "Hi"}], "text": "Hello.", "ids": [40, 41, 42], "ended": True},
       {"messages": [{"role": "user", "content": "Who are you?"}], "text": "A model", "ids": [40, 42], "ended": False}]


def tiny_tokenizer() -> ChatMLTokenizer:
    tokens, types = tiny_vocabulary()
    return ChatMLTokenizer(tokens, [id for id, kind in enumerate(types) if kind == TokenType.CONTROL], "tiny")


def make_model(recipe: Recipe) -> TrainableLlama:
    return TrainableLlama(CONFIG, random_weights(CONFIG).__getitem__, [12, 13, 14, 15], recipe.rank, recipe.scale, recipe.seed,
                          dtype=torch.float32)


def held() -> list:
    sequences = own_sequences(tiny_tokenizer(), OWN, 1)
    rng = torch.Generator().manual_seed(1)
    return [(tokens, torch.randn(tokens.num_weighted, CONFIG.n_embd, generator=rng)) for tokens in sequences]


def make_batches(recipe: Recipe, kind=Batches) -> Batches:
    return kind(tiny_tokenizer(), ["apple", "window"], OWN, held(), recipe.seed, recipe.sums_a_step, recipe.ordinary_a_step,
                recipe.processes)


class StumblingBatches(Batches):
    def group(self, number, part):
        if number == 1:
            raise KeyError("stumbled")
        return super().group(number, part)


def make_stumbling_batches(recipe: Recipe) -> Batches:
    return make_batches(recipe, StumblingBatches)


def loss_of(model: TrainableLlama) -> float:
    losses = []
    for calculated, _ in make_batches(replace(RECIPE, seed=99, processes=1)).group(0, 0):
        with torch.no_grad():
            losses.append(weighted_loss(model, calculated))
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
    short = replace(RECIPE, steps=8, processes=1)
    train(short, tmp_path, make_model, make_batches)
    same = train(short, tmp_path, make_model, make_stumbling_batches)  # does not come to stumble
    other = train(replace(short, seed=2), tmp_path, make_model, make_batches)
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


def test_an_expression_counts_more_than_the_wording_around_it():
    tokenizer = tiny_tokenizer()
    start, end = (tokenizer.encode_special(name) for name in ("<|python_start|>", "<|python_end|>"))
    for calculated, _ in make_batches(RECIPE).group(0, 0):
        for ids, weights in zip(calculated.ids.tolist(), calculated.weights.tolist()):
            is_inside = False
            for token, weight in zip(ids[1:], weights):
                is_inside = is_inside or token == start
                assert weight == 1 if is_inside else weight in (0, pytest.approx(WORDING))
                is_inside = is_inside and token != end


def test_what_the_published_model_makes_of_its_answers_is_computed_once(tmp_path):
    sequences = own_sequences(tiny_tokenizer(), OWN * 5, 1)
    made = []

    def make():
        made.append(make_model(RECIPE))
        return made[-1]

    first, again = (published_states(sequences, tmp_path / "states.pt", make) for _ in range(2))
    assert len(made) == 1
    for tokens, states, same in zip(sequences, first, again, strict=True):
        assert torch.equal(states, same)
        weights = torch.tensor([tokens.weights[1:] + [0.0]])
        alone = made[0].hidden(torch.tensor([tokens.ids]), weights > 0)
        torch.testing.assert_close(states, alone, rtol=1e-4, atol=1e-5)
    published_states(sequences[:3], tmp_path / "states.pt", make)
    assert len(made) == 2, "of other answers it is computed anew"


def test_a_mark_that_becomes_likely_in_plain_text_is_held_down(tmp_path):
    sure = replace(RECIPE, early_hold=0.0, mark_hold=3.0, mark_limit=-9.0, processes=1)
    likely = []
    for recipe in (replace(sure, mark_hold=0.0), sure):
        learned = train(recipe, tmp_path, make_model, make_batches)
        model = make_model(recipe)
        state = {f"pairs.{name.replace('.', '_')}": tensor for name, tensor in learned.items() if name != "token_rows"}
        model.load_state_dict(state | {"token_rows": learned["token_rows"]})
        _, own = make_batches(recipe).group(0, 0)[0]
        with torch.no_grad():
            chances = model.logits(model.hidden(own.ids, own.wanted)).softmax(-1)
        likely.append(chances[:, model.token_ids].sum(-1).mean().item())
    assert likely[1] < likely[0] / 2, likely
