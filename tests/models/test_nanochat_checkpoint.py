"""What is said of a checkpoint, how it is loaded and for how much memory, and what is refused in its files."""

import json
import re
import subprocess
import sys

import pytest
import torch

from app.commands import loading
from app.models import checkpoint
from app.models.errors import ModelError
from app.models.nanochat_architecture import EARLY_JANUARY_2026, JANUARY_2026, JULY_2026, MARCH_2026, OCTOBER_2025
from app.settings import Settings, SettingsError
from tests.models.tiny_nanochat import DATES, Evil, logits_of, random_ids, same, write_checkpoint


# --- what is said of it

@pytest.mark.parametrize("architecture", [*DATES, EARLY_JANUARY_2026], ids=lambda architecture: architecture.date)
def test_one_line_says_what_was_found(tmp_path, architecture):
    folder = write_checkpoint(tmp_path / "chatsft_checkpoints" / "d5", architecture, step=77)
    description = checkpoint.find(tmp_path).description
    parameters = sum(tensor.numel() for tensor in torch.load(folder / "model_000077.pt", weights_only=True).values())
    assert description == (f"nanochat d5 sft, step 77: architecture of {architecture.date}, {parameters:,} parameters, "
                           f"cache {2 * 5 * 2 * 8 * 4} bytes a token in float32")
    assert "320 bytes a token in bfloat16" in checkpoint.find(tmp_path).describe(torch.bfloat16)


# --- what is loaded

@pytest.mark.parametrize("architecture", DATES, ids=lambda architecture: architecture.date)
def test_a_compiled_models_key_prefix_and_16_bit_tensors_are_read(tmp_path, architecture):
    plain, _ = checkpoint.load(write_checkpoint(tmp_path / "plain", architecture))
    folder = write_checkpoint(tmp_path / "compiled", architecture, prefix="_orig_mod.", dtype=torch.bfloat16)
    own, _ = checkpoint.load(folder, dtype=checkpoint.find(folder).dtype)
    assert own.cache_dtype == torch.bfloat16
    wide, _ = checkpoint.load(folder)
    assert wide.cache_dtype == torch.float32
    ids = random_ids(plain, 20)
    same(logits_of(wide, ids), logits_of(plain, ids), 0.2)


def test_a_model_is_loaded_for_as_long_a_context_as_is_asked_up_to_ten_times_its_own(tmp_path):
    folder = write_checkpoint(tmp_path / "model")
    assert checkpoint.load(folder)[0].max_context == 96
    assert checkpoint.load(folder, context=40)[0].max_context == 40
    assert checkpoint.load(folder, context=960)[0].max_context == 960
    assert checkpoint.load(folder, context=961)[0].max_context == 960


def test_the_default_context_gives_way_to_a_shorter_models_and_one_that_is_asked_for_does_not(tmp_path, capsys):
    folder = write_checkpoint(tmp_path / "model")
    assert loading.load(Settings(model=str(folder), device="cpu"))[0].max_context == 96
    assert loading.load(Settings(model=str(folder), device="cpu", context=900))[0].max_context == 900
    assert capsys.readouterr().err.startswith("nanochat model, step 10: architecture of 2026-07")
    with pytest.raises(SettingsError, match="at most 960"):
        loading.load(Settings(model=str(folder), device="cpu", context=1000))


def test_finding_reads_no_weights_and_loading_leaves_the_file_alone(tmp_path):
    folder = write_checkpoint(tmp_path / "model")
    before = (folder / "model_000010.pt").read_bytes()
    found = checkpoint.find(folder)
    model, tokenizer = checkpoint.load(found)
    with torch.inference_mode():
        model.embedding.zero_()
    assert (folder / "model_000010.pt").read_bytes() == before
    assert tokenizer.get_vocab_size() == model.config.vocab_size == 270


# --- what is refused: a state dict

def spoil_state(folder, spoil):
    path = folder / "model_000010.pt"
    state = torch.load(path, weights_only=True)
    state = spoil(state) or state
    torch.save(state, path)


def without(part):
    return lambda state: {name: tensor for name, tensor in state.items() if part not in name}


STATE_FAULTS = [
    ("an unknown key", JULY_2026, lambda s: s.update({"transformer.h.0.attn.bias": torch.ones(1)}),
     "has a key transformer.h.0.attn.bias, which the architecture of 2026-07 does not have"),
    ("a key of a layer too many", OCTOBER_2025, 
     lambda s: s.update({"transformer.h.5.attn.c_q.weight": torch.ones(32, 32)}),
     "has a key transformer.h.5.attn.c_q.weight"),
    ("a missing key", MARCH_2026, without("transformer.h.3.mlp.c_fc.weight"),
     "lacks the key transformer.h.3.mlp.c_fc.weight"),
    ("value embeddings without gates", JANUARY_2026, without("ve_gate"),
     "lacks the key transformer.h.0.attn.ve_gate.weight"),
    ("smear without lambda", JULY_2026, without("smear_lambda"), "lacks the key smear_lambda"),
    ("another gate width", JULY_2026, lambda s: s.update({k: torch.ones(2, 16) for k in s if "ve_gate" in k}),
     "ve_gate.weight of 16 channels; known are 32 (2026-01) and 12"),
    ("smear with the gates of January", JULY_2026,
     lambda s: s.update({k: torch.ones(2, 32) for k in s if "ve_gate" in k}),
     "gives transformer.h.0.attn.ve_gate.weight as 2 x 32, not 2 x 12"),
    ("a matrix of another shape", OCTOBER_2025,
     lambda s: s.update({"transformer.h.1.attn.c_k.weight": torch.ones(32, 32)}),
     "gives transformer.h.1.attn.c_k.weight as 32 x 32, not 16 x 32"),
    ("too few rows", OCTOBER_2025, lambda s: s.update({"lm_head.weight": torch.ones(269, 32)}),
     "gives lm_head.weight as 269 x 32, not at least 270 x 32"),
    ("whole numbers", OCTOBER_2025, lambda s: s.update({"lm_head.weight": torch.ones(320, 32, dtype=torch.int8)}),
     "holds something under lm_head.weight that is not a tensor of 16 or 32-bit floating point"),
    ("a list", OCTOBER_2025, lambda s: s.update({"lm_head.weight": [1.0]}), "holds something under lm_head.weight"),
    ("no names", OCTOBER_2025, lambda s: list(s.values()), "does not hold tensors by name"),
]


@pytest.mark.parametrize("architecture, spoil, says", [fault[1:] for fault in STATE_FAULTS],
                         ids=[fault[0] for fault in STATE_FAULTS])
def test_tensors_that_are_not_those_of_a_known_date_are_refused_by_name(tmp_path, architecture, spoil, says):
    folder = write_checkpoint(tmp_path / "model", architecture)
    checkpoint.find(folder)
    spoil_state(folder, spoil)
    with pytest.raises(ModelError) as refusal:
        checkpoint.find(folder)
    assert says in str(refusal.value) and f"{folder}/model_000010.pt" in str(refusal.value)
    with pytest.raises(ModelError, match=re.escape(says)):
        checkpoint.load(folder)


def test_a_checkpoint_that_wants_something_executed_is_refused_and_nothing_is(tmp_path):
    folder = write_checkpoint(tmp_path / "model")
    spoil_state(folder, lambda state: state.update({"extra": Evil(tmp_path / "executed")}))
    for attempt in (checkpoint.find, checkpoint.load):
        with pytest.raises(ModelError, match="model_000010.pt holds more than tensors.* io.open"):
            attempt(folder)
    assert not (tmp_path / "executed").exists()


BROKEN = r"model_000010\.pt is not a whole checkpoint: it was cut short or damaged, or nanochat did not write it\.$"


@pytest.mark.parametrize("content", [b"", b"not a checkpoint at all", b"PK\x03\x04 and no more"])
def test_a_broken_checkpoint_is_refused(tmp_path, content):
    folder = write_checkpoint(tmp_path / "model")
    (folder / "model_000010.pt").write_bytes(content)
    with pytest.raises(ModelError, match=BROKEN):
        checkpoint.find(folder)


def test_half_a_checkpoint_is_refused(tmp_path):
    folder = write_checkpoint(tmp_path / "model")
    whole = (folder / "model_000010.pt").read_bytes()
    (folder / "model_000010.pt").write_bytes(whole[:len(whole) // 2])
    with pytest.raises(ModelError, match=BROKEN):
        checkpoint.find(folder)


# --- what is refused: the meta file

@pytest.mark.parametrize("change, says", [
    ({"n_layer": None}, "lacks n_layer in its model_config"),
    ({"frozen_embd": True}, "has frozen_embd in its model_config, which no known nanochat had"),
    ({"n_head": "4"}, "gives n_head as '4'"), ({"n_embd": 0}, "gives n_embd as 0"),
    ({"n_head": 5}, "cannot divide n_embd 32"),
    ({"n_kv_head": 3}, "cannot share n_kv_head 3"), ({"window_pattern": "SXL"}, "gives window_pattern as 'SXL'"),
    ({"n_layer": 3}, "has a key transformer.h.3"), ({"n_layer": 7}, "lacks the key transformer.h.5"),
    ({"vocab_size": 400}, "not at least 400 x 32"),
    ({"vocab_size": 269}, "has 270 tokens, but meta_000010.json gives vocab_size as 269"),
])
def test_a_meta_file_that_does_not_fit_is_refused(tmp_path, change, says):
    folder = write_checkpoint(tmp_path / "model")
    meta = json.loads((folder / "meta_000010.json").read_text())
    meta["model_config"].update(change)
    meta["model_config"] = {name: value for name, value in meta["model_config"].items() if value is not None}
    (folder / "meta_000010.json").write_text(json.dumps(meta))
    with pytest.raises(ModelError, match=re.escape(says)):
        checkpoint.load(folder)


@pytest.mark.parametrize("content, says", [("{", "is not readable JSON"), ("[]", "has no model_config"),
                                           ("{}", "has no model_config"),
                                           ('{"model_config": []}', "has no model_config")])
def test_a_broken_meta_file_is_refused(tmp_path, content, says):
    folder = write_checkpoint(tmp_path / "model")
    (folder / "meta_000010.json").write_text(content)
    with pytest.raises(ModelError, match=f"meta_000010.json {says}"):
        checkpoint.find(folder)


def test_windows_in_a_checkpoint_of_a_date_without_them_are_refused(tmp_path):
    folder = write_checkpoint(tmp_path / "model", OCTOBER_2025, window_pattern="SSL")
    with pytest.raises(ModelError, match="window_pattern SSL, but the tensors of 2025-10"):
        checkpoint.find(folder)


# --- memory

MEASURE = """
import re, sys
from pathlib import Path
import torch
from app.models import checkpoint
torch.ones(64, 64) @ torch.ones(64, 64)
checkpoint.load(sys.argv[1], dtype=torch.bfloat16)          # whatever is imported or allocated once, is now
peak = lambda: 1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
before = peak()
model, _ = checkpoint.load(sys.argv[2], dtype=torch.bfloat16)
print((peak() - before) / checkpoint.find(sys.argv[2]).files.model.stat().st_size)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak of a process's memory is read the Linux way")
def test_loading_a_checkpoint_at_its_own_type_takes_little_more_memory_than_its_size(tmp_path):
    small = write_checkpoint(tmp_path / "small", dtype=torch.bfloat16)
    large = write_checkpoint(tmp_path / "large", dtype=torch.bfloat16, n_embd=768, n_layer=20, n_head=6, n_kv_head=6,
                             vocab_size=270)
    assert (large / "model_000010.pt").stat().st_size > 250e6
    run = subprocess.run([sys.executable, "-c", MEASURE, str(small), str(large)], capture_output=True, text=True,
                         check=True)
    assert 0.9 < float(run.stdout) < 1.3
