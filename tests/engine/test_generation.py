"""Engine.generate: one prompt, n samples, tool calls, ends."""

import random

import pytest
import torch

from app.engine import Engine
from app.engine.sampling import SamplingError
from app.engine.sequence import EmptyPromptError, PromptTooLongError
from tests.engine.tiny import (END, BOS, EXPRESSION_END, EXPRESSION_START, OUTPUT_END, OUTPUT_START, PlainTokenizer,
                               ScriptModel, TinyConfig, TinyModel, script_from)

PROMPT = [256, 72, 101, 108, 108, 111]
# A random model writes marks and ends like any other id; the reference knows none of them. Their logits
# are put out of reach so that both ways are asked the same question.
SPECIALS = list(range(256, 265))


class TextModel(TinyModel):
    def forward(self, ids, kv_cache=None):
        logits = super().forward(ids, kv_cache)
        logits[..., SPECIALS] = -100.0
        return logits


def plain_model(seed=0, **config):
    return TextModel(TinyConfig(**config), seed)


def sampled(engine, prompt, **settings):
    return [column[0] for column, _ in engine.generate(prompt, **settings)]


@pytest.mark.parametrize("temperature, top_k", [(0.0, None), (1.0, None), (0.8, 5), (1.5, 1)])
def test_the_cached_way_writes_what_the_reference_writes(temperature, top_k):
    for seed in range(5):
        model = plain_model(seed)
        engine = Engine(model, PlainTokenizer())
        expected = list(model.generate(PROMPT, 40, temperature, top_k, seed))
        assert sampled(engine, PROMPT, max_tokens=40, temperature=temperature, top_k=top_k, seed=seed) == expected


def test_marks_that_may_not_be_drawn_change_no_other_draw():
    """They are likely here, among the best candidates of almost every step; the reference knows nothing of them."""
    class Tempted(TinyModel):
        def forward(self, ids, kv_cache=None):
            logits = super().forward(ids, kv_cache)
            logits[..., [END, BOS, EXPRESSION_START]] = -100.0
            logits[..., [OUTPUT_START, OUTPUT_END]] = logits.topk(12).values[..., -1:]
            return logits

    compared = 0
    for seed in range(20):
        model = Tempted(TinyConfig(), seed)
        reference = list(model.generate(PROMPT, 20, 1.0, 16, seed))
        forged = next((i for i, token in enumerate(reference) if token in (OUTPUT_START, OUTPUT_END)), 20)
        written = sampled(Engine(model, PlainTokenizer()), PROMPT, max_tokens=20, temperature=1.0, top_k=16, seed=seed)
        assert written[:forged] == reference[:forged] and not {OUTPUT_START, OUTPUT_END} & set(written)
        compared += forged
    assert compared > 100


def test_the_prompt_is_read_once_for_all_samples_and_no_forward_follows_the_last_token():
    model = plain_model()
    list(Engine(model, PlainTokenizer()).generate(PROMPT, num_samples=4, max_tokens=10))
    assert model.tokens_computed == len(PROMPT) + 4 * 9


def test_sample_i_is_the_solo_reply_with_seed_plus_i():
    engine = Engine(plain_model(), PlainTokenizer())
    columns = [column for column, _ in engine.generate(PROMPT, num_samples=5, max_tokens=20, seed=7)]
    for i in range(5):
        assert [column[i] for column in columns] == sampled(engine, PROMPT, max_tokens=20, seed=7 + i)
    assert len({column[0] for column in zip(*columns)}) > 1


def test_samples_go_on_alone_when_others_have_ended():
    """Rows end at different steps: the rest must be what each would be by itself."""
    model = TinyModel(TinyConfig(sequence_len=60), seed=5)
    model.head[[END]] *= 2.0
    tokenizer, rng = PlainTokenizer(), random.Random(0)
    for _ in range(5):
        prompt = [BOS] + [rng.randrange(256) for _ in range(rng.randrange(1, 20))]
        together, _ = Engine(model, tokenizer).generate_batch(prompt, num_samples=6, seed=100, temperature=2.0)
        for i, ids in enumerate(together):
            alone, _ = Engine(model, tokenizer).generate_batch(prompt, seed=100 + i, temperature=2.0)
            assert ids == alone[0]
        assert len({len(ids) for ids in together}) > 1


def test_an_end_token_completes_a_row():
    for end in (END, BOS):
        script = script_from(len(PROMPT), [65, 66, end, 67, 68])
        steps = list(Engine(ScriptModel(script), PlainTokenizer()).generate(PROMPT, max_tokens=20))
        assert steps == [([65], [1]), ([66], [1]), ([end], [1])]
        results, masks = Engine(ScriptModel(script), PlainTokenizer()).generate_batch(PROMPT, max_tokens=20)
        assert results == [PROMPT + [65, 66]] and masks == [[0] * 6 + [1, 1]]


def test_a_completed_row_is_padded_and_calls_no_tool():
    class TwoScripts(ScriptModel):
        """Row 0 ends at once; whatever it might say afterwards would be a tool call."""
        def forward(self, ids, kv_cache=None):
            logits = super().forward(ids, kv_cache)
            if ids.shape == (1, len(PROMPT)):
                logits[0, -1] = torch.zeros(265).index_fill(0, torch.tensor([END, 70]), 50.0)
            return logits

    script = script_from(len(PROMPT), [70, EXPRESSION_START, 49, EXPRESSION_END, 70, 70, END])
    engine = Engine(TwoScripts(script), PlainTokenizer())
    seeds = [s for s in range(50) if sampled(engine, PROMPT, seed=s)[0] == END
             and sampled(engine, PROMPT, seed=s + 1)[0] == 70]
    steps = list(engine.generate(PROMPT, num_samples=2, seed=seeds[0]))
    assert [column[0] for column, _ in steps] == [END] * len(steps)
    assert [masks[0] for _, masks in steps] == [1] + [0] * (len(steps) - 1)
    assert OUTPUT_START in [column[1] for column, _ in steps]


def test_the_calculator_answers_as_forced_tokens():
    tokenizer = PlainTokenizer()
    call = [EXPRESSION_START, *tokenizer.encode("12*12"), EXPRESSION_END]
    answer = [OUTPUT_START, *tokenizer.encode("144"), OUTPUT_END]
    after = tokenizer.encode(" ok")
    script = script_from(len(PROMPT), call) | script_from(len(PROMPT) + len(call) + len(answer), [*after, END])
    steps = list(Engine(ScriptModel(script), tokenizer).generate(PROMPT))
    assert [column[0] for column, _ in steps] == [*call, *answer, *after, END]
    assert [masks[0] for _, masks in steps] == [1] * len(call) + [0] * len(answer) + [1] * (len(after) + 1)


def test_a_refused_expression_forces_nothing():
    tokenizer = PlainTokenizer()
    reply = [EXPRESSION_START, *tokenizer.encode("9**9"), EXPRESSION_END, 65, END]
    steps = list(Engine(ScriptModel(script_from(len(PROMPT), reply)), tokenizer).generate(PROMPT))
    assert [column[0] for column, _ in steps] == reply and all(masks == [1] for _, masks in steps)


def test_output_marks_are_never_sampled():
    class Forger(TinyModel):
        def forward(self, ids, kv_cache=None):
            logits = super().forward(ids, kv_cache)
            logits[..., [OUTPUT_START, OUTPUT_END]] = 90.0
            return logits

    for temperature in (0.0, 1.0):
        written = sampled(Engine(Forger(), PlainTokenizer()), PROMPT, max_tokens=30, temperature=temperature)
        assert written and not {OUTPUT_START, OUTPUT_END} & set(written)


def test_a_family_without_marks_has_no_tool():
    class NoTool(PlainTokenizer):
        def encode_special(self, name):
            if "python" in name or "output" in name:
                raise KeyError(name)
            return super().encode_special(name)

    reply = [EXPRESSION_START, 49, EXPRESSION_END, 65, END]
    steps = list(Engine(ScriptModel(script_from(len(PROMPT), reply)), NoTool()).generate(PROMPT))
    assert [column[0] for column, _ in steps] == reply


@pytest.mark.parametrize("prompt_length", [1, 24, 63, 64])
def test_a_reply_ends_at_the_context_exactly(prompt_length):
    model = plain_model(sequence_len=64)
    prompt = [256] + [65] * (prompt_length - 1)
    written = sampled(Engine(model, PlainTokenizer()), prompt, temperature=0)
    assert written == list(model.generate(prompt, 64 - prompt_length, temperature=0))
    assert len(prompt) + len(written) == 64


def test_prompts_of_one_token_and_of_many_chunks_are_the_same_both_ways():
    model = plain_model(sequence_len=700)
    for prompt in ([256], [256] + [i % 200 for i in range(600)]):
        assert sampled(Engine(model, PlainTokenizer()), prompt, max_tokens=8, temperature=0) \
            == list(model.generate(prompt, 8, temperature=0))


def test_what_can_never_be_served_is_refused_before_anything_is_computed():
    model = plain_model(sequence_len=64)
    engine = Engine(model, PlainTokenizer())
    with pytest.raises(EmptyPromptError, match="no tokens"):
        list(engine.generate([]))
    with pytest.raises(PromptTooLongError, match="65 tokens long, and the model can hold 64"):
        list(engine.generate([65] * 65))
    with pytest.raises(SamplingError, match="temperature"):
        list(engine.generate(PROMPT, temperature=-1))
    assert model.tokens_computed == 0


def test_no_token_may_be_asked_for():
    assert list(Engine(plain_model(), PlainTokenizer()).generate(PROMPT, max_tokens=0)) == []


def test_a_generator_left_half_way_leaves_gradients_as_they_were():
    steps = Engine(plain_model(), PlainTokenizer()).generate(PROMPT, max_tokens=5)
    next(steps)
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    steps.close()
    assert not torch.is_inference_mode_enabled()
