"""Single values of a file that is taken in: each is what it should be, or `Wrong` names its place."""

from __future__ import annotations

import math


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
    if not isinstance(value, str) or len(value) > most_bytes or len(value.encode()) > most_bytes:
        raise Wrong(where)
    return value


def number_of(value: object, where: str, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
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


def is_finite(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < 2**63 and math.isfinite(value)


def time_of(raw: dict, name: str, where: str | None = None) -> float:
    value = raw.get(name)
    if isinstance(value, bool) or not is_finite(value) or not 0 <= value < 2**40:
        raise Wrong(where or name)
    return float(value)
