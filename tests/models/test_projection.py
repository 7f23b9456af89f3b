"""Packed weights hold the same numbers."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from app.models import projection
from app.models.projection import Projection, can_pack


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 2e-3)])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (3, 1), (2, 40)])
@pytest.mark.parametrize(("width_out", "width_in"), [(96, 64), (80, 48), (33, 17), (8, 192)])
def test_a_projection_multiplies_with_the_transposed_weight(width_out, width_in, shape, dtype, tolerance):
    weight = torch.randn(width_out, width_in).to(dtype)
    x = torch.randn(*shape, width_in).to(dtype)
    y = Projection(weight.clone())(x)
    assert y.shape == (*shape, width_out) and y.dtype == dtype
    truth = F.linear(x.float(), weight.float())
    torch.testing.assert_close(y.float(), truth, rtol=tolerance, atol=tolerance * width_in**0.5)


def test_where_packing_does_not_work_the_weight_is_used_as_it_is(monkeypatch):
    def fail(*_):
        raise RuntimeError("no such operation")

    monkeypatch.setattr(projection, "packed_linear", fail)
    can_pack.cache_clear()
    try:
        weight, x = torch.randn(16, 32), torch.randn(1, 2, 32)
        multiply = Projection(weight)
        assert multiply.kept is weight
        torch.testing.assert_close(multiply(x), F.linear(x, weight))
    finally:
        can_pack.cache_clear()


def test_only_the_processor_packs_and_only_types_that_it_computes_in():
    assert not can_pack("cuda", torch.bfloat16) and not can_pack("cpu", torch.float16)


MULTIPLIES_MANY_SHAPES = """
import os
from pathlib import Path
import torch
from app.models.projection import Projection

def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

projections = [Projection(torch.randn(width, 64).bfloat16()) for width in (64, 128, 192, 256)]
for rows in range(1, 281):
    for projection in projections:
        projection(torch.randn(rows, 64).bfloat16())
    torch.bmm(torch.randn(3, 8, 280 + rows).bfloat16(), torch.randn(3, 280 + rows, 64).bfloat16())
    if rows == 100:
        before = resident_bytes()
print(resident_bytes() - before)
"""


@pytest.mark.skipif(sys.platform != "linux" or not can_pack("cpu", torch.bfloat16), reason="no packed bfloat16, or no /proc")
def test_texts_of_ever_new_lengths_do_not_take_ever_more_memory():
    done = subprocess.run([sys.executable, "-c", MULTIPLIES_MANY_SHAPES], capture_output=True, text=True, check=True,
                          cwd=Path(__file__).parents[2])
    assert int(done.stdout) < 60 * 2**20  # with the code of each shape kept it is 500 MB
