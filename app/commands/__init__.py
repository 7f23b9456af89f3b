"""The commands of `python -m app`, a module each.

A command module has `add_arguments(parser)` and `run(args) -> exit status`. What goes wrong
through no fault of ours is a CommandError or another error with a sentence; `main` prints it on one line.
"""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

WRONG_VALUE = 2  # exit status: something that was asked for cannot be
FAILED = 1       # exit status: it was asked rightly, but did not work


class CommandError(Exception):
    """A command cannot go on. The text is one sentence that says what to do about it."""

    def __init__(self, sentence: str, status: int = WRONG_VALUE):
        super().__init__(sentence)
        self.status = status


class OneLineParser(argparse.ArgumentParser):
    """Reports a wrong option in one line. Options are never shortened: a typing error stays one."""

    def __init__(self, **settings):
        super().__init__(allow_abbrev=False, **settings)

    def parse_args(self, args=None, namespace=None) -> argparse.Namespace:
        """What is not known is named without its values: argparse would add words that it could not place."""
        known, rest = self.parse_known_args(args, namespace)
        if rest:
            flags = [word.partition("=")[0] for word in rest if word.startswith("-")]
            self.error(f"{self.prog.rpartition(' ')[2]} does not take {', '.join(flags or rest)}")
        return known

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message}; see {self.prog} --help")


def say(text: str) -> None:
    """Tell the person something that is not part of a command's output."""
    print(text, file=sys.stderr, flush=True)
