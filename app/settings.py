"""Every option there is: flag, environment variable, default, check and help, in one table.

The table is the `Settings` class itself: each field carries its option. The command line, the environment,
the error messages and the README's table all come from it. `Settings` is built once and passed on; nobody
else reads the environment. This module must never import torch: a wrong option is answered at once.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from platformdirs import user_data_dir

MAX_TEMPERATURE = 100.0  # as in app.engine.sampling, which cannot be imported without torch
MAX_SEED = 2**63 - 1
MAX_SYSTEM_CHARACTERS = 20_000


class SettingsError(ValueError):
    """An option has a value that it cannot have. The text is one line: the option, the value, what is allowed."""

    def __init__(self, option: str, value: object, allowed: str):
        self.option, self.value, self.allowed = option, value, allowed
        super().__init__(f"{option} is {_on_one_line(value)}; allowed: {allowed}")


def _on_one_line(value: object, longest: int = 80) -> str:
    shown = str(value)
    shown = shown if len(shown) <= longest else shown[:longest] + "…"
    return '"' + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown) + '"'


# --- kinds of values: what is allowed, in words, and how a text becomes a value (ValueError: not allowed)

@dataclass(frozen=True)
class Kind:
    allowed: str
    read: Callable[[str], object]


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def one_of(*words: str) -> Kind:
    def read(text: str) -> str:
        _require(text in words)
        return text
    return Kind(", ".join(words[:-1]) + " or " + words[-1], read)


def whole_number(lowest: int, highest: int, shown_highest: str = "") -> Kind:
    def read(text: str) -> int:
        _require(re.fullmatch(r"[0-9]{1,20}", text.strip()) is not None)
        value = int(text)
        _require(lowest <= value <= highest)
        return value
    return Kind(f"a whole number from {lowest} to {shown_highest or highest}", read)


def number(lowest: float, highest: float) -> Kind:
    def read(text: str) -> float:
        value = float(text)
        _require(math.isfinite(value) and lowest <= value <= highest)
        return value
    return Kind(f"a number from {lowest:g} to {highest:g}", read)


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def _read_bytes(text: str) -> int:
    size = re.fullmatch(r"([0-9]{1,15})(\.[0-9]{1,6})? ?([A-Za-z]*)", text.strip())
    _require(size is not None and size[3].upper() in _UNITS)
    value = int(float(size[1] + (size[2] or "")) * _UNITS[size[3].upper()])
    _require(0 < value <= 2**50)
    return value


def text_up_to(characters: int) -> Kind:
    def read(text: str) -> str:
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # bytes that are no text
        _require(len(text) <= characters)
        return text
    return Kind(f"a text of at most {characters} characters", read)


def _read_name(text: str) -> str:
    _require(text.strip() != "" and "\0" not in text)
    return text


def _read_host(text: str) -> str:
    _require(re.fullmatch(r"[0-9A-Za-z.:_%-]+", text) is not None)
    return text


def _read_folder(text: str) -> Path:
    path = Path(_read_name(text)).expanduser()
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    _require(existing.is_dir())
    return path


def _read_prefix(text: str) -> str:
    text = text.rstrip("/")
    _require(re.fullmatch(r"(/[0-9A-Za-z._~-]+)*", text) is not None)
    return text


MODEL = Kind('"default" or the path of a model', _read_name)
ADAPTER = Kind('"none", "calculator" or the path of an adapter', _read_name)
HOST = Kind("a host name or address, such as 127.0.0.1, ::1 or 0.0.0.0", _read_host)
BYTES = Kind("a size such as 500MB or 2GiB", _read_bytes)
FOLDER = Kind("a folder, or a path where one can be made", _read_folder)
PREFIX = Kind("a path that begins with /, such as /chat, of letters, digits, and . _ ~ -", _read_prefix)


# --- the table

@dataclass(frozen=True)
class Option:
    """What is known of one option. `default_text` says in words what happens where it is not given."""
    name: str
    environment: str | None
    kind: Kind
    help: str
    default_text: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    def read(self, text: str, source: str) -> object:
        try:
            return self.kind.read(text)
        except ValueError:
            raise SettingsError(source, text, self.kind.allowed) from None


def option(default: object, environment: str | None, kind: Kind, help: str, default_text: str = ""):
    about = {"environment": environment, "kind": kind, "help": help, "default_text": default_text or str(default)}
    if callable(default):
        return field(default_factory=default, metadata=about)
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Settings:
    model: str = option("default", "CHAT_MODEL", MODEL, "the model: a path, or default for SmolLM2-135M-Instruct")
    adapter: str | None = option(None, "CHAT_ADAPTER", ADAPTER, "what the model has learned afterwards: calculator lets the default "
                                 "model use the calculator; none takes the model as it was published", "calculator for the default model, else none")
    device: str = option("auto", "CHAT_DEVICE", one_of("auto", "cpu", "cuda", "mps"), "where to compute; auto takes the best there is")
    dtype: str = option("auto", "CHAT_DTYPE", one_of("auto", "float32", "bfloat16", "float16"),
                        "number type of weights and cache; auto takes bfloat16 where that is faster, else float32")
    threads: int | None = option(None, "CHAT_THREADS", whole_number(1, 1024), "processor threads to compute with", "one a core")
    host: str = option("127.0.0.1", "CHAT_HOST", HOST, "address to serve on; any but this machine's own (127.0.0.1, ::1) lets others in")
    port: int = option(8000, "PORT", whole_number(1, 65535), "port to serve on")
    data: Path = option(lambda: Path(user_data_dir("glasschat", appauthor=False)), "CHAT_DATA", FOLDER,
                        "folder of the database and the secret key", "your own data folder")
    context: int = option(2048, "CHAT_CONTEXT", whole_number(16, 1_048_576), "tokens that a conversation may hold, at most what the model allows")
    rows: int = option(8, "CHAT_ROWS", whole_number(1, 1024), "conversations that the cache holds at once")
    cache_memory: int | None = option(None, "CHAT_CACHE_MEMORY", BYTES,
                                      "memory for the cache; sets how many conversations it holds, in place of --rows", "what --rows takes")
    prefix: str = option("", "CHAT_PREFIX", PREFIX, "path prefix behind a proxy, such as /chat", "none")
    system: str | None = option(None, "CHAT_SYSTEM", text_up_to(MAX_SYSTEM_CHARACTERS), "system prompt", "the model's own")
    temperature: float | None = option(None, None, number(0, MAX_TEMPERATURE), "0 always takes the likeliest token; higher is more varied",
                                       "the model's: SmolLM2 0.2, nanochat 0.8")
    top_k: int | None = option(None, None, whole_number(0, 1_000_000), "draw from this many of the likeliest tokens; 0 is off",
                               "the model's: 50")
    max_tokens: int = option(512, None, whole_number(1, 1_048_576), "longest reply, in tokens")
    seed: int | None = option(None, None, whole_number(0, MAX_SEED, "2^63 - 1"), "repeats a reply exactly", "a new one each reply")

    @property
    def chosen_adapter(self) -> str | None:
        """The adapter to load the model with, if any."""
        adapter = self.adapter or ("calculator" if self.model == "default" else "none")
        return None if adapter == "none" else adapter

    @property
    def asked_context(self) -> int | None:
        """The context, where one was asked for; None where it is the default, which gives way to a shorter model's."""
        return None if self.context == Settings.context else self.context

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """From the environment alone, as under gunicorn. Raises SettingsError."""
        return cls(**_from_environment(OPTIONS, os.environ if environ is None else environ))

    @classmethod
    def from_args(cls, args: argparse.Namespace, environ: Mapping[str, str] | None = None) -> Settings:
        """From the options that `args` has (see `add_options`); where one was not given, from the environment.

        Options that the command does not have keep their defaults, whatever the environment says.
        """
        offered = [each for each in OPTIONS if hasattr(args, each.name)]
        given = {each.name: each.read(getattr(args, each.name), each.flag)
                 for each in offered if getattr(args, each.name) is not None}
        others = [each for each in offered if each.name not in given]
        return cls(**_from_environment(others, os.environ if environ is None else environ), **given)


OPTIONS = tuple(Option(name=each.name, **each.metadata) for each in fields(Settings))
OPTION = {each.name: each for each in OPTIONS}


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Offer the named options, or all of them. They are read as text: `Settings.from_args` checks them."""
    for each in OPTIONS:
        if not names or each.name in names:
            where = f"; ${each.environment}" if each.environment else ""
            parser.add_argument(each.flag, dest=each.name, metavar=each.name.upper(),
                                help=f"{each.help} ({each.default_text}{where})".replace("%", "%%"))


def _from_environment(options, environ: Mapping[str, str]) -> dict[str, object]:
    """Values of the variables that are set. An empty one counts as not set, as in a form left blank."""
    return {each.name: each.read(environ[each.environment], f"{each.environment} ({each.flag})")
            for each in options if each.environment and environ.get(each.environment)}


def readme_rows() -> list[str]:
    """The README's table of options, a line a row."""
    head = ["| option | environment | default | allowed | what it does |", "|---|---|---|---|---|"]
    return head + [f"| `{each.flag}` | {f'`{each.environment}`' if each.environment else '–'} | {each.default_text} "
                   f"| {each.kind.allowed} | {each.help} |" for each in OPTIONS]
