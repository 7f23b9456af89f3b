"""The settings that a reply is asked for with, and what each of them may be.

The ranges are the engine's own, so that the page and every other way of asking agree.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace

from app.chat.errors import ChatError
from app.chat.sentences import sentence
from app.engine.sampling import MAX_SEED, MAX_TEMPERATURE, SamplingError, check_sampling

MAX_TOKENS = 1_048_576
MAX_TOP_K = 1_000_000  # far above any vocabulary; from there on, as 0, it is off
MAX_SYSTEM_CHARACTERS = 20_000
MAX_ANSWERS = 4  # to one question at once
TEMPERATURE = sentence("temperature must be a number from 0 to {limit}, not {shown}.")
FAMILY_TEMPERATURE, FAMILY_TOP_K = 0.8, 50  # where a model recommends nothing


@dataclass(frozen=True)
class ReplySettings:
    """`seed` None: a new one for each reply. `system` None: the model's own system prompt. `n`: answers to one
    question, written at once."""
    temperature: float
    top_k: int
    max_tokens: int
    seed: int | None = None
    use_cache: bool = True
    system: str | None = None
    n: int = 1

    @classmethod
    def defaults(cls, settings, model) -> ReplySettings:
        """What holds where a page asks for nothing else: the server's options, then the family's recommendation."""
        recommended = getattr(model, "recommended", None) or {}
        temperature, top_k = settings.temperature, settings.top_k
        if temperature is None:
            temperature = recommended.get("temperature", FAMILY_TEMPERATURE)
        if top_k is None:
            top_k = recommended.get("top_k", FAMILY_TOP_K)
        return cls(temperature, top_k, settings.max_tokens, settings.seed, system=settings.system or None)

    def changed_by(self, fields: dict | None) -> ReplySettings:
        """With the fields that a page sent; one that is missing or null stays as it is. Raises ChatError."""
        if fields is None:
            return self
        if not isinstance(fields, dict):
            raise bad_settings("The settings must be an object, not {shown}.", fields)
        unknown = sorted(set(fields) - set(_CHECKS))
        if unknown:
            raise ChatError("bad_settings", "There is no setting {name}; there are {names}.", name=repr(unknown[0]),
                            names=", ".join(_CHECKS))
        given = {name: value for name, value in fields.items() if value is not None}
        for name, value in given.items():
            _CHECKS[name](value)
        if given.get("system") == "":
            given["system"] = None
        return replace(self, **given)

    def with_seed(self) -> ReplySettings:
        """With a seed to be used and shown: small enough for JavaScript to hold exactly."""
        return self if self.seed is not None else replace(self, seed=secrets.randbelow(2**32))


def bad_settings(sentence: str, value: object, **figures) -> ChatError:
    """The sentence ends by showing what was given, in the slot `{shown}`."""
    shown = repr(value)
    return ChatError("bad_settings", sentence, shown=shown if len(shown) <= 60 else shown[:60] + "…", **figures)


def _check_temperature(value: object) -> None:
    if isinstance(value, bool):
        raise bad_settings(TEMPERATURE, value, limit=MAX_TEMPERATURE)
    try:
        check_sampling(value, None)
    except SamplingError:
        raise bad_settings(TEMPERATURE, value, limit=MAX_TEMPERATURE) from None


def _whole_number(name: str, lowest: int, highest: int, shown_highest: str = ""):
    def check(value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise bad_settings("{name} must be a whole number from {lowest} to {highest}, not {shown}.", value,
                               name=name, lowest=lowest, highest=shown_highest or highest)
    return check


def _check_use_cache(value: object) -> None:
    if not isinstance(value, bool):
        raise bad_settings("use_cache must be true or false, not {shown}.", value)


def _check_system(value: object) -> None:
    if not isinstance(value, str) or len(value) > MAX_SYSTEM_CHARACTERS:
        raise bad_settings("system must be a text of at most {limit} characters, not {shown}.", value,
                           limit=MAX_SYSTEM_CHARACTERS)


_CHECKS = {
    "temperature": _check_temperature,
    "top_k": _whole_number("top_k", 0, MAX_TOP_K),
    "max_tokens": _whole_number("max_tokens", 1, MAX_TOKENS),
    "seed": _whole_number("seed", 0, MAX_SEED, "2^63 - 1"),
    "use_cache": _check_use_cache,
    "system": _check_system,
    "n": _whole_number("n", 1, MAX_ANSWERS),
}
