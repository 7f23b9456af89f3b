"""The default model for tests that need the real one, which is fetched if it is not here yet; and the number of threads."""

import pytest
import torch

from app.models import default
from app.models.gguf import GGUFModel
from app.models.llama import Llama


@pytest.fixture
def threads():
    """Sets with how many threads the test computes."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def smollm2_file() -> GGUFModel:
    return GGUFModel(default.fetch(progress=True))


@pytest.fixture(scope="session")
def smollm2_tokenizer(smollm2_file):
    return smollm2_file.tokenizer(default.MODEL_NAME)


@pytest.fixture(scope="session")
def smollm2(smollm2_file) -> Llama:
    """In float32, in which every figure of the fixtures was made."""
    return Llama(smollm2_file.config, smollm2_file.weight, dtype=torch.float32, context=512, name=default.MODEL_NAME)
