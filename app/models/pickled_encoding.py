"""Reading nanochat's tokenizer.pkl, the pickle of a tiktoken encoding, without trusting it.

A pickle is a program: it can name any function and have it called. This one may name `tiktoken.core.Encoding`
and nothing else, and even that name is answered with a stand-in that keeps what it is given and does
nothing. What was kept is checked, and only then is an encoding made from it. (Tiktoken's own class, given a
string instead of its parts, would look that name up in its registry and download a vocabulary.)
"""

from __future__ import annotations

import pickle
from pathlib import Path

import tiktoken

from app.models.errors import ModelError

SPECIAL_NAMES = ("<|bos|>", "<|user_start|>", "<|user_end|>", "<|assistant_start|>", "<|assistant_end|>",
                 "<|python_start|>", "<|python_end|>", "<|output_start|>", "<|output_end|>")
PARTS = {"name": str, "pat_str": str, "mergeable_ranks": dict, "special_tokens": dict}


def read_encoding(path: Path) -> tiktoken.Encoding:
    """The encoding pickled in `path`; ModelError for anything but a whole one with nanochat's nine special tokens."""
    try:
        with open(path, "rb") as file:
            kept = _Unpickler(file).load()
    except _Refused as refusal:
        raise ModelError(f"{path} asks for {refusal}, but may hold a tiktoken encoding and nothing else.") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from None
    except Exception as error:  # a broken pickle may raise almost anything
        raise ModelError(f"{path} is not a whole pickle: {error}.") from None
    fault = _fault_of(kept)
    if fault:
        raise ModelError(f"{path} {fault}.")
    try:
        return tiktoken.Encoding(**kept.state)
    except ValueError as error:
        raise ModelError(f"{path} holds an encoding that tiktoken refuses: {error}.") from None


def _fault_of(kept: object) -> str | None:
    """What is wrong with what came out of the pickle, as half a sentence, or None."""
    state = kept.state if isinstance(kept, _StandIn) else None
    if state is None:
        return "does not hold a tiktoken encoding"
    if not isinstance(state, dict):
        return f"holds an encoding by its name ({state!r}) only, not its vocabulary"
    if set(state) != set(PARTS) or not all(isinstance(state[part], kind) for part, kind in PARTS.items()):
        return f"holds an encoding whose parts are not {', '.join(PARTS)}"
    ranks, specials = state["mergeable_ranks"], state["special_tokens"]
    if not all(isinstance(token, bytes) for token in ranks) or not all(isinstance(name, str) for name in specials):
        return "holds an encoding whose tokens are not bytes, or whose special tokens are not text"
    missing = [name for name in SPECIAL_NAMES if name not in specials]
    if missing:
        return f"holds an encoding without the special token {missing[0]}"
    ids = [*ranks.values(), *specials.values()]
    if not all(type(id) is int for id in ids) or sorted(ids) != list(range(len(ids))):
        return f"holds an encoding whose {len(ids)} tokens are not numbered from 0 on, each once"
    if not all(bytes([byte]) in ranks for byte in range(256)):
        return "holds an encoding that lacks some single bytes, so that not every text can be written in it"
    return None


class _Refused(Exception):
    """The name of something that the pickle asked for."""


class _StandIn:
    """What the pickle takes for tiktoken's class."""
    state = None

    def __new__(cls, *args, **kwargs):
        if args or kwargs:
            raise _Refused("an encoding made with arguments")
        return super().__new__(cls)

    def __setstate__(self, state):
        self.state = state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) != ("tiktoken.core", "Encoding"):
            raise _Refused(f"{module}.{name}")
        return _StandIn
