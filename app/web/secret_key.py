"""The key that signs cookies: made once, kept in the data folder, readable by its owner alone."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

FILE_NAME = "secret_key"
KEY_BYTES = 32


def load_secret_key(folder: Path) -> bytes:
    """The key in `folder`, made if there is none."""
    path = Path(folder) / FILE_NAME
    if not path.exists():
        # made under another name and then linked, so that nobody ever reads half a key, nor replaces one
        new = path.with_name(f"{FILE_NAME}.{os.getpid()}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        try:
            os.link(new, path)
            new.unlink()
        except FileExistsError:  # another process was quicker
            new.unlink()
        except OSError:  # a file system without links
            os.replace(new, path)
    return path.read_bytes()
