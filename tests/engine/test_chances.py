"""How likely a token was, and the runners-up: exact, and without a trace in what is drawn."""

import pytest
import torch

from app.engine.chances import chances_of
from app.engine.messages import Request, Tokens
from app.engine.sampling import make_generator, sample_next_token
from app.engine.scheduler import Scheduler
from tests.engine.tiny import BOS, EXPRESSION_END, EXPRESSION_START, PlainTokenizer, ScriptModel, TinyModel, script_from


def plain_way(logits: torch.Tensor, token: int):
    row = torch.softmax(logits[0].double(), -1).tolist()
    best = sorted(range(len(row)), key=lambda id: -row[id])
    return row[token], [(id, row[id]) for id in best if id != token][:3]


@pytest.mark.parametrize("vocab_size", [2, 3, 5, 63, 265, 1024, 1055, 49152])
def test_chance_and_runners_up_are_those_of_the_whole_softmax(vocab_size):
    logits = 3 * torch.randn(1, vocab_size, generator=make_generator(vocab_size))
    likeliest = int(logits.argmax())
    for token in {likeliest, int(logits.argsort(descending=True)[0, 1]), 0, vocab_size - 1}:
        told, (chance, others) = chances_of(logits, token), plain_way(logits, token)
        assert told.chance == pytest.approx(chance, rel=1e-5)
        assert [id for id, _ in told.runners_up] == [id for id, _ in others]
        assert [share for _, share in told.runners_up] == pytest.approx([share for _, share in others], rel=1e-5)


def test_the_best_are_found_wherever_they_stand():
    for places in ([0, 1, 2, 3], [64, 63, 128, 127], [1500, 1535, 1536, 1540], [1540, 0, 700, 1539]):
        logits = torch.zeros(1, 1541)  # 24 pieces, and 5 that are left over
        for rank, place in enumerate(places):
            logits[0, place] = 10.0 - rank
        assert [id for id, _ in chances_of(logits, places[0]).runners_up] == places[1:]


def test_logits_without_a_chance_are_no_hindrance():
    logits = torch.full((1, 300), float("-inf"))
    logits[0, 7] = 2.0
    told = chances_of(logits, 7)
    assert told.chance == 1.0 and [chance for _, chance in told.runners_up] == [0.0] * 3


def tokens_of(model, prompt, **settings):
    scheduler, events = Scheduler(model, PlainTokenizer(), rows=2, context=96), []
    scheduler.submit(Request("r", "c", tuple(prompt), **settings), events.append)
    while scheduler.busy:
        scheduler.step()
    return [token for event in events if isinstance(event, Tokens) for token in event.tokens]


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"temperature": 0.7, "top_k": 5}, {"use_cache": False}])
def test_each_sampled_token_tells_what_the_model_held_of_it_at_temperature_1(settings):
    model, prompt = TinyModel(), [BOS, *b"What?"]
    tokens = tokens_of(model, prompt, max_tokens=8, seed=3, **settings)
    ids = list(prompt)
    for token in tokens:
        chance, others = plain_way(model.forward(torch.tensor([ids]))[:, -1], token.id)
        assert token.chance == pytest.approx(chance, rel=1e-3)
        assert [id for id, _ in token.runners_up] == [id for id, _ in others]
        ids.append(token.id)


def test_what_is_drawn_is_what_the_sampler_alone_draws():
    model, prompt = TinyModel(), [BOS, *b"Draw"]
    drawn = [token.id for token in tokens_of(model, prompt, max_tokens=12, temperature=1.3, top_k=40, seed=11)]
    rng, ids = make_generator(11), list(prompt)
    for _ in drawn:
        ids.append(int(sample_next_token(model.forward(torch.tensor([ids]))[:, -1], rng, 1.3, 40)))
    assert drawn == ids[len(prompt):]


def test_what_the_calculator_puts_in_has_no_chance():
    said = [EXPRESSION_START, *b"6*7", EXPRESSION_END]
    tokens = tokens_of(ScriptModel(script_from(3, said)), [BOS, 65, 66], temperature=0.0)
    forced = [token for token in tokens if token.forced]
    assert bytes(token.id for token in forced[1:-1]) == b"42"
    assert all(token.chance is None and token.runners_up == () for token in forced)
    assert all(token.chance > 0.9 and len(token.runners_up) == 3 for token in tokens if not token.forced)
