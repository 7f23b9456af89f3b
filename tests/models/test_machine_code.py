"""Compiled code is kept for the next start, and where it cannot be kept it is made again."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.models import machine_code
from app.models.half_projection import can_multiply_half

pytestmark = pytest.mark.skipif(not can_multiply_half("cpu"), reason="this processor does not convert numbers of 16 bits")

MULTIPLIES = """
import torch
from app.models.half_projection import keep_half, project_half, _project
weight, x = torch.randn(30, 10), torch.randn(4, 10)
torch.testing.assert_close(project_half(x, keep_half(weight), 30), x @ weight.half().float().T, rtol=1e-5, atol=1e-5)
print(sum(_project.stats.cache_hits.values()), sum(_project.stats.cache_misses.values()))
"""


def run(cache_folder, before: str = "") -> str:
    """-> how often compiled code was found there, and how often not."""
    environment = os.environ | {"XDG_CACHE_HOME": str(cache_folder), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-c", before + MULTIPLIES], env=environment, check=True, text=True, capture_output=True).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is named by XDG_CACHE_HOME on Linux alone")
def test_it_is_kept_for_the_next_start(tmp_path):
    assert run(tmp_path) == "0 1\n"
    assert list(tmp_path.glob("glasschat/machine_code/*/*/*.nbi"))
    assert run(tmp_path) == "1 0\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is named by XDG_CACHE_HOME on Linux alone")
def test_where_nothing_can_be_written_it_is_made_anew(tmp_path):
    (tmp_path / "file").write_text("no folder")
    assert run(tmp_path / "file") == "0 1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is named by XDG_CACHE_HOME on Linux alone")
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_where_a_kept_file_is_damaged_it_is_made_anew_and_kept_again(tmp_path, kind):
    run(tmp_path)
    for file in tmp_path.glob(f"glasschat/machine_code/*/*/*.{kind}"):
        file.write_bytes(file.read_bytes()[:40])
    assert run(tmp_path) == "0 1\n"
    assert run(tmp_path) == "1 0\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is named by XDG_CACHE_HOME on Linux alone")
def test_where_a_file_cannot_be_written_the_numbers_come_all_the_same(tmp_path):
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); import signal\n" \
              "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    assert run(tmp_path, limited) == "0 1\n"
    assert run(tmp_path) == "0 1\n"


def test_every_module_that_is_compiled_decides_which_code_is_kept():
    """A changed module that does not would go on with the code that was kept of the old one."""
    folder = Path(machine_code.__file__).parent
    compiled = {path.stem for path in folder.glob("*.py")
                if re.search(r"^(from llvmlite|from numba|import numba|@compiled)", path.read_text(), re.MULTILINE)}
    assert compiled == set(machine_code.COMPILED) and len(compiled) > 5
