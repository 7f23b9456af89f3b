"""`python -m app fetch`: gets the default model, for an image build or before going offline."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.commands import FAILED, CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(args: argparse.Namespace) -> int:
    print(fetch_default_model())
    return 0


def fetch_default_model() -> Path:
    """Get the default model if it is not here yet -> its file."""
    from app.models.default import fetch
    from app.models.errors import ModelError

    try:
        return fetch(progress=True)
    except ModelError as error:
        raise CommandError(str(error), FAILED) from None
