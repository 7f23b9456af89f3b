"""Which browser the tests take, and what is said where there is none."""

import os
import shutil
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from tests import find_browser


@pytest.fixture
def system(tmp_path, monkeypatch):
    """system(name, runs) puts a program on the path of a system where Playwright has no browser of its own."""
    own = SimpleNamespace(executable_path=str(tmp_path / "own"))

    @contextmanager
    def playwright():
        yield SimpleNamespace(chromium=own)

    monkeypatch.setattr(find_browser, "sync_playwright", playwright)
    monkeypatch.setattr(find_browser, "NAMES", ("chromium", "google-chrome"))
    monkeypatch.setenv("PATH", str(tmp_path))

    def add(name, runs=True):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\nexit {0 if runs else 1}\n".replace("/bin/sh", shutil.which("sh", path="/bin:/usr/bin")))
        program.chmod(0o755)
        return str(program)

    return add


def test_playwrights_own_browser_goes_before_the_systems(system):
    system("chromium")
    own = system("own")
    assert find_browser.browser_path() == own


def test_the_systems_browser_is_taken_if_it_runs(system):
    system("chromium", runs=False)  # as a stand-in that only tells how to install one
    assert find_browser.browser_path() is None
    chrome = system("google-chrome")
    assert find_browser.browser_path() == chrome


def test_where_none_can_be_had_a_sentence_says_what_to_do(system, monkeypatch, capsys):
    tried = []
    monkeypatch.setattr(find_browser, "_done", lambda command, timeout_s: tried.append(command[0]))
    assert find_browser.main() == 1
    assert tried and capsys.readouterr().err.splitlines()[-1].startswith("glasschat: the browser tests need Chromium")


def test_as_root_the_systems_packages_are_asked_first(system, monkeypatch):
    system("apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(find_browser, "_done", lambda command, timeout_s: "chromium" in command and system("chromium"))
    assert find_browser.main() == 0
