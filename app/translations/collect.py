"""Which sentences there are to be translated, found in the sources.

Templates have theirs in `_("…")`. Of the server's code it is whatever the calls in `TELLING` are given, directly, by
a name or as one of two: that is also why such a sentence must be a plain string, with slots and not with values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment
from jinja2.ext import extract_from_ast

ROOT = Path(__file__).parent.parent.parent
IN_TEMPLATES = ("_", "gettext", "ngettext")
SERVER = ("app/chat", "app/web", "app/engine")
# what takes a sentence -> which of its arguments that is
TELLING = {"sentence": 0, "translated": 0, "ChatError": 1, "NotFoundError": 0, "CalculatorError": 0, "bad_settings": 0,
           "tell": 2, "abort": 1}

Found = tuple[str, str | tuple[str, str]]  # file, and a sentence, or one and many


class UntranslatableError(Exception):
    """A sentence is put together where it is told, so that no catalogue can have it."""


def sentences() -> list[Found]:
    """All of them, in the order of the files, each once."""
    found: dict[str | tuple[str, str], str] = {}
    for file, sentence in (*_of_templates(), *_of_server()):
        found.setdefault(sentence, file)
    return [(file, sentence) for sentence, file in found.items()]


def _of_templates() -> Iterator[Found]:
    for path in sorted((ROOT / "templates").glob("*.html")):
        tree = Environment().parse(path.read_text())
        for line, _, said in extract_from_ast(tree, IN_TEMPLATES, babel_style=False):
            said = said if isinstance(said, tuple) else (said,)
            said = tuple(text for text in said if text is not None)
            if not said:
                raise UntranslatableError(f"{path.name}:{line}: _() wants a plain string")
            yield f"templates/{path.name}", said[0] if len(said) == 1 else said


def _of_server() -> Iterator[Found]:
    for folder in SERVER:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for sentence in of_python(path.read_text(), path.name):
                yield str(path.relative_to(ROOT)), sentence


def of_python(source: str, name: str = "") -> Iterator[str]:
    """The sentences that one file tells."""
    tree = ast.parse(source)
    named: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named.setdefault(node.targets[0].id, []).append(node.value)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        place = TELLING.get(getattr(node.func, "id", None) or getattr(node.func, "attr", ""))
        if place is not None and place < len(node.args):
            for text in _strings(node.args[place], named):
                if text is None:
                    raise UntranslatableError(f"{name}:{node.lineno}: a sentence wants slots for its values")
                yield text


def _strings(given: ast.expr, named: dict[str, list[ast.expr]]) -> Iterator[str | None]:
    """The strings that an argument can be; None for one that is put together."""
    match given:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr() | ast.BinOp():
            yield None
        case ast.IfExp(body=one, orelse=other) | ast.BoolOp(values=[one, other]):
            yield from _strings(one, named)
            yield from _strings(other, named)
        case ast.Name(id=name) if name in named:
            for value in named[name]:
                yield from _strings(value, {})
        case ast.Subscript(value=ast.Name(id=name)) if name in named:
            for value in named[name]:
                for text in value.values if isinstance(value, ast.Dict) else ():
                    yield from _strings(text, {})
