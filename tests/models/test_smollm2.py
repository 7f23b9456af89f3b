"""The default model gives what transformers gave from the same file: text to ids, ids to logits, greedy replies."""

import json
from pathlib import Path

import pytest
import torch

from app.engine import Engine, KVCache
from app.engine.messages import Reason, Request
from app.engine.scheduler import Scheduler

FIXTURE = json.loads((Path(__file__).parent.parent / "fixtures" / "smollm2.json").read_text(encoding="utf-8"))
CHATS = [pytest.param(chat, id=chat["messages"][-1]["content"]) for chat in FIXTURE["chats"]]


def test_every_string_of_the_fixture_has_its_ids(smollm2_tokenizer):
    assert len(FIXTURE["strings"]) == 35
    for text, ids in FIXTURE["strings"]:
        assert smollm2_tokenizer.encode(text) == ids, text
        assert smollm2_tokenizer.decode(ids) == text


@pytest.mark.parametrize("chat", CHATS)
def test_every_chat_of_the_fixture_is_rendered_to_its_prompt(chat, smollm2_tokenizer):
    placeholder = {"role": "assistant", "content": ""}
    assert smollm2_tokenizer.render_for_completion({"messages": chat["messages"] + [placeholder]}) == chat["prompt_ids"]


@pytest.mark.parametrize("chat", CHATS)
def test_the_logits_after_every_prompt_are_those_of_the_fixture(chat, smollm2):
    logits = smollm2.forward(torch.tensor([chat["prompt_ids"]]), last_only=True)[0, -1]
    assert logits.topk(5).indices.tolist() == chat["top5_ids"]
    torch.testing.assert_close(logits[chat["top5_ids"]], torch.tensor(chat["top5_logits"]), rtol=0, atol=2e-3)
    torch.testing.assert_close(logits[:8], torch.tensor(chat["logits_8"]), rtol=0, atol=2e-3)


@pytest.mark.parametrize("chat", CHATS)
def test_greedy_replies_are_those_of_the_fixture_without_the_cache_and_with_it(chat, smollm2, smollm2_tokenizer):
    expected = chat["greedy_32"]
    assert list(smollm2.generate(chat["prompt_ids"], len(expected), temperature=0)) == expected
    engine = Engine(smollm2, smollm2_tokenizer)
    written = [column[0] for column, mask in engine.generate(chat["prompt_ids"], max_tokens=len(expected), temperature=0)
               if mask == [1]]
    assert written == expected
    assert smollm2_tokenizer.decode(written) == chat["text"]


def test_a_prompt_read_in_pieces_gives_the_logits_of_the_whole(smollm2):
    prompt = FIXTURE["chats"][2]["prompt_ids"]
    whole = smollm2.forward(torch.tensor([prompt]))[0]
    cache = KVCache.for_model(smollm2, 1, 64)
    pieces = [smollm2.forward(torch.tensor([prompt[a:b]]), cache)[0] for a, b in ((0, 24), (24, 25), (25, len(prompt)))]
    torch.testing.assert_close(torch.cat(pieces), whole, rtol=0, atol=2e-3)


def test_the_numbers_of_the_default_model(smollm2):
    config = smollm2.config
    assert (config.n_layer, config.n_embd, config.n_head, config.n_kv_head, config.head_dim) == (30, 576, 9, 3, 64)
    assert (config.n_mlp, config.vocab_size, config.sequence_len, config.rope_base) == (1536, 49152, 8192, 100_000)
    assert config.norm_eps == pytest.approx(1e-5) and config.tied_head
    assert KVCache.for_model(smollm2, 1, 1).bytes_per_token == 2 * 30 * 3 * 64 * 4 == 46_080
    assert smollm2.max_context == 512 and smollm2.recommended == {"temperature": 0.2, "top_k": 50}


def test_every_turn_reads_only_what_is_new_and_writes_what_is_written_from_scratch(smollm2, smollm2_tokenizer):
    scheduler = Scheduler(smollm2, smollm2_tokenizer, rows=1, context=400)
    messages, stored = [], []
    for question in ("What is the capital of Japan?", "And of Italy?", "Thank you. Say goodbye in one short sentence."):
        messages.append({"role": "user", "content": question})
        prompt = smollm2_tokenizer.render_for_completion({"messages": [*messages, {"role": "assistant", "content": ""}]})
        assert prompt[:len(stored)] == stored
        heard = []
        scheduler.submit(Request("reply", "chat", tuple(prompt), temperature=0.0, max_tokens=100), heard.append)
        while scheduler.busy:
            scheduler.step()
        done = heard[-1]
        assert done.reason is Reason.STOP
        assert (done.counts.reused, done.counts.read) == (max(0, len(stored) - 1), len(prompt) - max(0, len(stored) - 1))
        from_scratch, _ = Engine(smollm2, smollm2_tokenizer).generate_batch(prompt, temperature=0.0, max_tokens=100)
        assert list(done.kept_ids[:-1]) == from_scratch[0][len(prompt):]
        messages.append({"role": "assistant", "content": smollm2_tokenizer.decode(done.kept_ids[:-1])})
        stored = [*prompt, *done.kept_ids]
