"""Finds the browser that the browser tests drive, and gets one where there is none.

Playwright's own if it is installed, else the system's Chromium; else apt-get installs one (as root), else
Playwright is asked to. `python -m tests.find_browser` says which it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
         "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def browser_path() -> str | None:
    """The program to give to Playwright as `executable_path`, or None where there is no browser."""
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    if os.path.exists(own):
        return own
    return next((found for name in NAMES if (found := shutil.which(name)) and _runs(found)), None)


def install_browser() -> str | None:
    """Get a browser in one way or another -> its program, or None where no way worked."""
    print("Getting a browser for the tests ...", file=sys.stderr)
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _done(["apt-get", "update"], timeout_s=300)
        _done(["apt-get", "install", "--yes", "--no-install-recommends", "chromium"], timeout_s=600)
        if path := browser_path():
            return path
    _done([sys.executable, "-m", "playwright", "install", "chromium"], timeout_s=600)
    return browser_path()


def _done(command: list[str], timeout_s: float) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, timeout=timeout_s).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _runs(program: str) -> bool:
    """Some systems have a `chromium` that only tells how to install one."""
    try:
        return subprocess.run([program, "--version"], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def main() -> int:
    path = browser_path() or install_browser()
    if path is None:
        print("glasschat: the browser tests need Chromium, and none could be installed. Install it (on Debian: apt install "
              "chromium) or run .venv/bin/python -m playwright install chromium, and start again.", file=sys.stderr)
        return 1
    print(f"Browser for the tests: {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
