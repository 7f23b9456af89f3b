"""Which checkpoint a path names, and which it does not."""

import re

import pytest
import torch

from app.models import checkpoint, load_model
from app.models.errors import ModelError
from tests.models.tiny_nanochat import write_checkpoint, write_tokenizer


@pytest.fixture
def tree(tmp_path):
    """A tree as training leaves it: three stages, several depths, several steps."""
    for folder, steps in {"base_checkpoints/d20": [5400], "mid_checkpoints/d20": [800], "mid_checkpoints/d32": [90],
                          "chatsft_checkpoints/d4": [700], "chatsft_checkpoints/d20": [9, 650, 1000],
                          "chatsft_checkpoints/d8": [100000]}.items():
        for step in steps:
            write_checkpoint(tmp_path / folder, step=step, with_tokenizer=False)
    (tmp_path / "chatrl_checkpoints").mkdir()
    (tmp_path / "chatsft_checkpoints" / "d99").mkdir()  # begun, and nothing saved yet
    write_tokenizer(tmp_path / "tokenizer" / "tokenizer.pkl", 270)
    return tmp_path


@pytest.mark.parametrize("suffix, expected", [
    ("", "sft d20 1000"), (":sft", "sft d20 1000"), (":sft/d20@650", "sft d20 650"), (":sft/d8", "sft d8 100000"),
    (":sft@9", "sft d20 9"), (":@650", "sft d20 650"), (":base", "base d20 5400"), (":mid", "mid d32 90"),
    (":/d32", "mid d32 90"), (":mid/d20@800", "mid d20 800"),
    ("/chatsft_checkpoints", "sft d20 1000"), ("/chatsft_checkpoints:/d4", "sft d4 700"),
    ("/mid_checkpoints/d20", "mid d20 800"), ("/chatsft_checkpoints/d20:@9", "sft d20 9"),
    ("/chatsft_checkpoints/d20/model_000650.pt", "sft d20 650"),
])
def test_of_a_tree_the_most_trained_largest_and_last_is_taken_unless_another_is_named(tree, suffix, expected):
    files = checkpoint.find(f"{tree}{suffix}").files
    assert f"{files.stage} {files.tag} {files.step}" == expected
    assert files.tokenizer == tree / "tokenizer" / "tokenizer.pkl"


def test_load_model_takes_such_a_path_too(tree):
    model, tokenizer = load_model(f"{tree}:sft/d20@650", dtype=torch.bfloat16)
    assert model.description.startswith("nanochat d20 sft, step 650: architecture of 2026-07, ")
    assert model.description.endswith("cache 320 bytes a token in bfloat16")
    assert model.cache_dtype == torch.bfloat16 and tokenizer.get_vocab_size() == 270


@pytest.mark.parametrize("suffix, says", [
    (":rl", "has no checkpoint rl"), (":sft/d7", "has no checkpoint sft/d7"), (":/d7", "has no checkpoint /d7"),
    (":sft/d20@651", "has no step 651, only 9, 650, 1000"), (":tuned", "'tuned' does not choose a checkpoint"),
    (":", "'' does not choose"), (":sft/d20@last", "does not choose"), ("/nowhere", "There is no file or folder"),
    ("/tokenizer", "holds no nanochat checkpoint"), ("/chatrl_checkpoints", "holds no nanochat checkpoint"),
    ("/tokenizer/tokenizer.pkl", "is not a nanochat checkpoint, whose name would be"),
    ("/mid_checkpoints:mid", "is a stage itself"), ("/mid_checkpoints/d20:/d32", "holds a checkpoint itself"),
])
def test_a_path_that_names_no_checkpoint_is_refused(tree, suffix, says):
    with pytest.raises(ModelError, match=re.escape(says)):
        checkpoint.find(f"{tree}{suffix}")


def test_tags_of_which_none_is_the_largest_must_be_named(tree):
    write_checkpoint(tree / "chatrl_checkpoints" / "first", with_tokenizer=False)
    assert checkpoint.find(tree).files.tag == "first"
    write_checkpoint(tree / "chatrl_checkpoints" / "second", with_tokenizer=False)
    with pytest.raises(ModelError, match="first, second"):
        checkpoint.find(tree)
    assert checkpoint.find(f"{tree}:rl/second").files.tag == "second"


def test_of_a_published_folder_the_last_step_is_taken(tmp_path):
    folder = write_checkpoint(tmp_path / "nanochat-d2", step=650)
    write_checkpoint(folder, step=1000)
    assert checkpoint.find(folder).files.step == 1000
    assert checkpoint.find(f"{folder}:@650").files.step == 650
    assert checkpoint.find(folder).name == "nanochat-d2"


@pytest.mark.parametrize("missing", ["meta_000010.json", "tokenizer.pkl"])
def test_a_missing_file_is_named(tmp_path, missing):
    folder = write_checkpoint(tmp_path / "model")
    (folder / missing).unlink()
    with pytest.raises(ModelError, match=f"{folder}/{missing} is missing"):
        checkpoint.find(folder)
