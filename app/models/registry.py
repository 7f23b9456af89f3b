"""Opening a model by name: the default one, a GGUF file, or a folder of nanochat's.

This is the only place that knows which kinds of model there are. It must never compute with one.
"""

from __future__ import annotations

from pathlib import Path

import torch

from app.models import checkpoint, default
from app.models.adapter import Adapter, AdapterError, load_adapter
from app.models.errors import ModelError
from app.models.gguf import GGUFModel, is_gguf
from app.models.half_projection import can_multiply_half
from app.models.llama import Llama
from app.one_thread import one_thread

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def load_model(path: str | Path = "default", device: str | torch.device = "cpu",
               dtype: torch.dtype | str = torch.float32, context: int | None = None,
               adapter: str | Path | None = None):
    """-> (model, tokenizer), ready to compute on `device` ("auto" takes a GPU where there is one).

    `dtype` is a torch type, its name, or "auto": what the device computes in fastest without losing quality.
    `context` is how many tokens a conversation may hold; a model that can hold fewer takes as many as it can
    and says so in `max_context`. `adapter` names one in the repository ("calculator") or a file; its weights are
    added to a GGUF model's, which without one is as it was published. Raises ModelError, one sentence, for whatever
    is wrong with the files.
    """
    # Loading is thousands of small operations, at each of which several threads wait for the last. On a quiet machine they
    # win nothing; beside a program that wants the cores, loading the default model took minutes instead of 5 s.
    with one_thread():
        return _load(path, choose_device(device), dtype, context, None if adapter is None else load_adapter(adapter))


def _load(path: str | Path, device: torch.device, dtype: torch.dtype | str, context: int | None, added: Adapter | None):
    if str(path) == "default":
        return _load_gguf(default.fetch(progress=True), default.MODEL_NAME, device, dtype, context, added)
    file = Path(path).expanduser()
    if file.is_file():
        if file.suffix == ".pt":
            raise ModelError(f"{file} alone is not a model: give the folder it lies in, with its other files.")
        if not is_gguf(file) and file.suffix != ".gguf":
            raise ModelError(f"{file} is not a model: give a GGUF file, or the folder of a nanochat checkpoint.")
        return _load_gguf(file, file.stem, device, dtype, context, added)
    if added is not None:
        raise AdapterError(f"The adapter {added.name} is for a GGUF model such as the default one; {path} is none.")
    return checkpoint.load(path, device, choose_dtype(dtype, device), context)


def _load_gguf(file: Path, name: str, device: torch.device, dtype: torch.dtype | str, context: int | None,
               adapter: Adapter | None):
    opened = GGUFModel(file)
    tokenizer = opened.tokenizer(name)
    weight = opened.weight if adapter is None else adapter.weights(opened.weight)
    if dtype == "auto" and can_multiply_half(device.type):  # then Llama writes with 16-bit weights on any processor
        dtype = torch.bfloat16
    model = Llama(opened.config, weight, device, choose_dtype(dtype, device), context, name)
    model.adapter = adapter and adapter.name
    return model, tokenizer


def choose_device(device: str | torch.device) -> torch.device:
    """"auto" is CUDA, else Apple's GPU, else the processor. A device that is not there is a ModelError."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        return torch.device(next(kind for kind, here in available.items() if here))
    try:
        device = torch.device(device)
    except RuntimeError:
        raise ModelError(f"There is no kind of device called {device!r}: choose auto, cpu, cuda or mps.") from None
    if not available.get(device.type, False):
        raise ModelError(f"The device {device} is not available: PyTorch finds none on this machine.")
    return device


def choose_dtype(dtype: torch.dtype | str, device: torch.device) -> torch.dtype:
    """"auto" is bfloat16 where the device has instructions that compute in it, else float32."""
    if isinstance(dtype, torch.dtype):
        return dtype
    if dtype == "auto":
        return torch.bfloat16 if computes_in_bfloat16(device) else torch.float32
    if dtype not in DTYPES:
        raise ModelError(f"There is no type of weights called {dtype!r}: choose auto, {', '.join(DTYPES)}.")
    return DTYPES[dtype]


def computes_in_bfloat16(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 itself; one that only converts it is faster in float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    if torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.ops.mkldnn._is_mkldnn_bf16_supported()  # ARM: has the bfloat16 extension
