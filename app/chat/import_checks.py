"""Single values of a file that is taken in: each is what it should be, or `Wrong` names its place."""

from __future__ import annotations

import math

LAST_S = 2**37  # in the year 6325: what is later has no date


class Wrong(Exception):
    """At this place the file does not hold what an export has there."""


def list_of(raw: dict, name: str, where: str, most: int) -> list:
    value = raw.get(name)
    if not isinstance(value, list) or len(value) > most:
        raise Wrong(where)
    return value


def text_of(raw: dict, name: str, where: str, most_bytes: int, may_lack: bool = False) -> str | None:
    value = raw.get(name)
    if value is None and may_lack:
        return None
    if not is_text(value, most_bytes):
        raise Wrong(where)
    return value


def is_text(value: object, most_bytes: int) -> bool:
    return isinstance(value, str) and len(value) <= most_bytes and len(value.encode()) <= most_bytes


def number_of(value: object, where: str, most: int, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Wrong(where)
    return value


def numbers_of(values: object, where: str, most: tuple[int, ...]) -> list[int]:
    if not isinstance(values, list) or len(values) != len(most):
        raise Wrong(where)
    return [number_of(value, where, limit) for value, limit in zip(values, most, strict=True)]


def flag_of(raw: dict, name: str, where: str) -> bool:
    if not isinstance(raw.get(name), bool):
        raise Wrong(where)
    return raw[name]


def is_number(value: object) -> bool:
    """In Python true and false are numbers, too; here they are none, since no language writes them as such."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63 and math.isfinite(value)


def amount_of(value: object, where: str, most: float, may_lack: bool = False) -> float | None:
    if value is None and may_lack:
        return None
    if not is_number(value) or not 0 <= value <= most:
        raise Wrong(where)
    return value


def time_of(raw: dict, name: str, where: str | None = None) -> float:
    return float(amount_of(raw.get(name), where or name, LAST_S))
