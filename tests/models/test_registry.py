"""Opening models by name."""

import pytest
import torch

from app.models import ModelError, load_model
from app.models import default, llama, registry
from app.models.registry import choose_device, choose_dtype, computes_in_bfloat16
from tests.models.tiny_llama import CONTEXT, logits_of, random_weights, same, tiny_config, tiny_llama, write_gguf
from tests.models.tiny_nanochat import write_checkpoint


@pytest.fixture
def tiny_file(tmp_path):
    config = tiny_config()
    return write_gguf(tmp_path / "tiny model.gguf", config, random_weights(config))


def test_a_gguf_file_is_opened_by_its_path(tiny_file):
    for path in (tiny_file, str(tiny_file)):
        model, tokenizer = load_model(path)
        assert model.name == tokenizer.name == "tiny model"
        assert model.cache_dtype == torch.float32 and model.get_device() == torch.device("cpu")
        same(logits_of(model, [5, 6, 7]), logits_of(tiny_llama(), [5, 6, 7]))


def test_a_gguf_file_may_be_called_anything(tiny_file):
    assert load_model(tiny_file.rename(tiny_file.with_name("blob")))[0].name == "blob"


def test_the_default_model_is_fetched_and_opened(tiny_file, monkeypatch):
    monkeypatch.setattr(default, "fetch", lambda progress: tiny_file)
    model, tokenizer = load_model()
    assert model.name == "SmolLM2-135M-Instruct" and tokenizer.encode_special("<|bos|>") == 1


def test_a_nanochat_folder_is_opened_by_its_path(tmp_path):
    write_checkpoint(tmp_path / "mine")
    model, tokenizer = load_model(tmp_path / "mine", dtype="float32", context=50)
    assert model.max_context == 50 and tokenizer.get_vocab_size() == model.config.vocab_size


def test_the_context_asked_for_is_what_the_model_holds_and_too_large_a_one_gives_way(tiny_file):
    assert load_model(tiny_file, context=20)[0].max_context == 20
    assert load_model(tiny_file, context=5 * CONTEXT)[0].max_context == CONTEXT
    assert load_model(tiny_file)[0].max_context == CONTEXT


def test_a_path_that_is_no_model_is_refused_with_a_sentence(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a model")
    for path in (text, tmp_path / "nothing here", tmp_path):
        with pytest.raises(ModelError) as raised:
            load_model(path)
        assert str(path) in str(raised.value) and "\n" not in str(raised.value)


def test_a_file_of_a_checkpoint_alone_is_refused_with_what_to_give_instead(tmp_path):
    file = tmp_path / "model_000010.pt"
    file.write_bytes(b"PK")
    with pytest.raises(ModelError, match="alone is not a model: give the folder it lies in"):
        load_model(file)


def test_types_are_chosen_by_name(tiny_file, monkeypatch):
    cpu = torch.device("cpu")
    assert choose_dtype("float16", cpu) == choose_dtype(torch.float16, cpu) == torch.float16
    for able, dtype in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(registry, "computes_in_bfloat16", lambda device: able)
        assert choose_dtype("auto", cpu) == dtype
    with pytest.raises(ModelError, match="no type of weights called 'int3'"):
        choose_dtype("int3", cpu)


@pytest.mark.parametrize("has_halves, computes, dtype", [
    (True, False, torch.bfloat16), (True, True, torch.bfloat16), (False, True, torch.bfloat16), (False, False, torch.float32)])
def test_a_llama_is_of_16_bits_where_any_part_of_it_is_faster_so(tiny_file, monkeypatch, has_halves, computes, dtype):
    monkeypatch.setattr(registry, "computes_in_bfloat16", lambda device: computes)
    for module in (registry, llama):
        monkeypatch.setattr(module, "can_multiply_half", lambda device: has_halves)
    assert load_model(tiny_file, dtype="auto")[0].cache_dtype == dtype
    assert load_model(tiny_file, dtype="float32")[0].cache_dtype == torch.float32


def test_a_processor_computes_in_bfloat16_when_it_has_the_instructions(monkeypatch):
    cpu = torch.device("cpu")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    for bf16, amx in ((True, False), (False, True), (False, False)):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: bf16)
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
        assert computes_in_bfloat16(cpu) == (bf16 or amx)


def test_devices_are_chosen_by_name_and_one_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")
    with pytest.raises(ModelError, match="The device cuda is not available"):
        choose_device("cuda")
    with pytest.raises(ModelError, match="no kind of device called 'toaster'"):
        choose_device("toaster")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto").type == "cuda"


def test_loading_uses_one_thread_and_computing_those_of_before(monkeypatch):
    monkeypatch.setattr(registry, "_load", lambda *_: torch.get_num_threads())
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert load_model("default") == 1 and torch.get_num_threads() == 3
        monkeypatch.setattr(registry, "_load", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            load_model("default")
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
