"""Reading GGUF files: what is in them arrives whole, and what is wrong with them is said."""

import random
from dataclasses import replace

import pytest
import torch
from gguf import GGMLQuantizationType

from app.models.errors import ModelError
from app.models.gguf import GGUFError, GGUFModel
from app.models.llama import Llama
from tests.models.tiny_llama import (WIDE, logits_of, random_ids, random_weights, same, tiny_config, tiny_llama,
                                     tiny_vocabulary, write_gguf)


def opened(path) -> Llama:
    file = GGUFModel(path)
    return Llama(file.config, file.weight)


@pytest.fixture
def tiny(tmp_path):
    config = tiny_config()
    return write_gguf(tmp_path / "tiny.gguf", config, random_weights(config))


@pytest.mark.parametrize("shape", [{}, {"tied_head": False}, {"n_kv_head": 6}, WIDE], ids=str)
def test_a_model_comes_out_of_a_file_as_it_went_in(shape, tmp_path):
    config = tiny_config(**shape)
    path = write_gguf(tmp_path / "tiny.gguf", config, random_weights(config))
    read = GGUFModel(path).config
    assert replace(read, norm_eps=config.norm_eps) == config and read.norm_eps == pytest.approx(config.norm_eps)
    model, direct = opened(path), tiny_llama(**shape)
    ids = random_ids(model, 15)
    same(logits_of(model, ids), logits_of(direct, ids))


@pytest.mark.parametrize("kind", [GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q4_1, GGMLQuantizationType.F16])
def test_quantized_weights_are_what_the_quantization_left_of_them(kind, tmp_path):
    config = tiny_config(**WIDE)
    weights = random_weights(config)
    file = GGUFModel(write_gguf(tmp_path / "tiny.gguf", config, weights, quantization=kind))
    worst = {"Q8_0": 0.02, "Q4_1": 0.25, "F16": 0.002}[kind.name]
    for name, values in weights.items():
        assert (file.weight(name) - values).abs().max() < worst * values.abs().max(), name
    assert torch.equal(file.weight("output_norm.weight"), weights["output_norm.weight"])


def test_the_tokenizer_comes_with_its_special_tokens(tiny):
    tokenizer = GGUFModel(tiny).tokenizer("tiny")
    assert tokenizer.get_vocab_size() == 273 and tokenizer.encode_special("<|user_start|>") == 1
    assert tokenizer.decode(tokenizer.encode("Grüße, 世界 🙂\x00")) == "Grüße, 世界 🙂\x00"


# --- files that are not what they should be

def fault(path) -> str:
    """What is said about a file, from opening it to having read it all."""
    with pytest.raises(GGUFError) as raised:
        file = GGUFModel(path)
        file.tokenizer("x")
        opened(path)
    said = str(raised.value)
    assert isinstance(raised.value, ModelError) and str(path) in said and "\n" not in said
    return said


@pytest.mark.parametrize("contents", [b"", b"G", b"GGML and more", b"PK\x03\x04" + bytes(100)])
def test_a_file_of_another_kind_is_not_a_gguf_file(contents, tmp_path):
    path = tmp_path / "other.gguf"
    path.write_bytes(contents)
    assert "is not a GGUF file" in fault(path)


def test_a_file_that_is_not_there_or_is_a_folder_cannot_be_read(tmp_path):
    assert "cannot be read: No such file" in fault(tmp_path / "nothing.gguf")
    assert "cannot be read: Is a directory" in fault(tmp_path)


def test_a_file_cut_short_anywhere_is_damaged(tiny, tmp_path):
    whole = tiny.read_bytes()
    dice = random.Random(0)
    cut = tmp_path / "cut.gguf"
    lengths = [4, 5, 8, 23, 24, 40, len(whole) // 2, len(whole) - 40]
    for length in lengths + [dice.randrange(24, len(whole) - 40) for _ in range(25)]:
        cut.write_bytes(whole[:length])
        assert "damaged or cut short" in fault(cut), length


def test_a_file_with_wrong_bytes_in_its_head_is_refused_or_read_but_never_a_surprise(tiny, tmp_path):
    whole, dice, broken = tiny.read_bytes(), random.Random(1), tmp_path / "broken.gguf"
    refused = 0
    for _ in range(80):
        changed = bytearray(whole)
        for _ in range(3):
            changed[dice.randrange(4, 6000)] = dice.randrange(256)
        broken.write_bytes(changed)
        try:
            file = GGUFModel(broken)
            file.tokenizer("x")
            logits_of(opened(broken), [1, 2, 3])
        except GGUFError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize(("changes", "said"), [
    ({"architecture": "qwen2"}, "of the architecture 'qwen2'; only 'llama'"),
    ({"metadata": {"llama.block_count": None}}, "lacks llama.block_count"),
    ({"metadata": {"llama.block_count": 4}}, "lacks tensors, blk.3.attn_k.weight among 9"),
    ({"metadata": {"llama.block_count": 2}}, "has unknown tensors, blk.2.attn_k.weight among 9"),
    ({"metadata": {"llama.feed_forward_length": 96}}, "of shape"),
    ({"metadata": {"llama.attention.head_count": 5}}, "cannot be"),
    ({"metadata": {"llama.context_length": 2**31}}, "cannot be"),
    ({"metadata": {"llama.attention.head_count": 0}}, "cannot be"),
    ({"metadata": {"llama.attention.head_count": "six"}}, "cannot be"),
    ({"metadata": {"llama.rope.scaling.type": "yarn"}}, "scales its positions"),
    ({"metadata": {"llama.rope.dimension_count": 4}}, "a part of each head"),
    ({"pre": "llama-bpe"}, "tokenizer of the kind gpt2/llama-bpe"),
    ({"vocabulary": tuple(each[:-1] for each in tiny_vocabulary())}, "272 tokens for an embedding of 273"),
    ({"vocabulary": (["x"] * 273, [1] * 273)}, "lacks the special token"),
    ({"vocabulary": (tiny_vocabulary()[0][:-1] + ["a"], tiny_vocabulary()[1])}, "stand in it twice"),
    ({"vocabulary": (tiny_vocabulary()[0][:-1] + ["a b"], tiny_vocabulary()[1])}, "' ' stands for no byte"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_file_of_a_foreign_model_is_refused_by_name(changes, said, tmp_path):
    config = tiny_config()
    assert said in fault(write_gguf(tmp_path / "foreign.gguf", config, random_weights(config), **changes))


def test_a_file_that_lacks_its_embedding_or_holds_what_is_no_number_is_refused(tmp_path):
    config = tiny_config()
    weights = random_weights(config)
    weights["blk.1.ffn_up.weight"][3, 4] = float("nan")
    said = fault(write_gguf(tmp_path / "a.gguf", config, weights))
    assert "blk.1.ffn_up.weight holds numbers that are not finite" in said
    del weights["token_embd.weight"]
    assert "no tensor token_embd.weight" in fault(write_gguf(tmp_path / "b.gguf", config, weights))
