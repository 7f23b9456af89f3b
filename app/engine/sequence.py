"""One reply in the making: its ids and masks, its settings and generator, and why it ended.

A sequence chooses tokens from logits that it is given. It never runs the model and never touches the
cache: `generation` and `scheduler` do, for one prompt or for many people.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence as SequenceOf
from contextlib import suppress
from dataclasses import dataclass

import torch

from app.engine.chances import Chances, chances_of
from app.engine.messages import Part, Reason, Token
from app.engine.sampling import SamplingError, check_sampling, make_generator, sample_next_token
from app.engine.tool_calls import ToolCalls, ToolMarks


class EmptyPromptError(ValueError):
    """A prompt of no tokens: there is nothing to predict from."""


class PromptTooLongError(ValueError):
    """A prompt that can never fit the context."""

    def __init__(self, num_tokens: int, limit: int):
        super().__init__(f"this is {num_tokens} tokens long, and the model can hold {limit}")
        self.num_tokens, self.limit = num_tokens, limit


@dataclass(frozen=True)
class ReplyRules:
    """What a tokenizer says about replies: where they end and how a tool is called. Made once a model."""
    end_ids: frozenset[int]
    marks: ToolMarks | None
    encode: Callable[[str], list[int]]
    decode: Callable[[list[int]], str]
    padding_id: int  # stands for a completed row where a column needs a number

    @classmethod
    def of(cls, tokenizer) -> ReplyRules:
        bos = tokenizer.get_bos_token_id()
        try:
            end = tokenizer.encode_special("<|assistant_end|>")
        except (KeyError, ValueError):
            end = None
        ends = getattr(tokenizer, "end_token_ids", None) or {token for token in (bos, end) if token is not None}
        return cls(frozenset(ends), ToolMarks.of(tokenizer), tokenizer.encode, tokenizer.decode,
                   padding_id=end if end is not None else bos)


class Sequence:
    """A prompt and the reply to it, at most `limit` tokens together.

    With `tells_chances` each sampled token says how likely it was.
    Raises EmptyPromptError, PromptTooLongError or SamplingError for a request that can never be served.
    """

    def __init__(self, prompt_ids, rules: ReplyRules, *, limit: int, temperature: float = 1.0, top_k: int | None = None,
                 max_tokens: int | None = None, seed: int = 42, device: torch.device | str = "cpu", reply: str = "",
                 tells_chances: bool = False):
        check_sampling(temperature, top_k)
        if not prompt_ids:
            raise EmptyPromptError("there is no text to answer: the prompt has no tokens")
        if len(prompt_ids) > limit:
            raise PromptTooLongError(len(prompt_ids), limit)
        self.prompt_ids = list(prompt_ids)
        self.ids: list[int] = []
        self.masks: list[int] = []  # 1 sampled, 0 forced
        self.reason: Reason | None = None
        self.seed = seed
        self.tools = ToolCalls(rules.marks, rules.encode, rules.decode, reply)
        self._rules, self._limit, self._max_tokens = rules, limit, max_tokens
        self.sampling, self._tells_chances = (temperature, top_k), tells_chances
        self.rng = make_generator(seed, device)
        self._end_if_full()

    @property
    def num_tokens(self) -> int:
        return len(self.prompt_ids) + len(self.ids)

    @property
    def max_num_tokens(self) -> int:
        """How long prompt and reply can become: what a row must have room for."""
        if self._max_tokens is None:
            return self._limit
        return min(self._limit, len(self.prompt_ids) + self._max_tokens)

    @property
    def all_ids(self) -> list[int]:
        return self.prompt_ids + self.ids

    @property
    def last_id(self) -> int:
        return self.ids[-1] if self.ids else self.prompt_ids[-1]

    @property
    def finished(self) -> bool:
        return self.reason is not None

    @property
    def written(self) -> int:
        return sum(self.masks)

    @property
    def positions_without_cache(self) -> int:
        """What the reference way computes for the same tokens: for each, all the tokens before it."""
        count = len(self.ids)
        return count * len(self.prompt_ids) + count * (count - 1) // 2

    def choose(self, logits: torch.Tensor, chances: Callable[[int], Chances] | None = None,
               drawn: int | None = None) -> Token:
        """Add the next token: the forced one if there is one, else one drawn from `logits` (1, V). `chances(token)`
        says how likely each was, and `drawn` which one it is, where that was found for several rows at once."""
        assert not self.finished, f"this reply has ended ({self.reason}) and takes no further token"
        forced = bool(self.tools.forced)
        if forced:
            token = self.tools.forced[0]
        else:
            token = self._draw(logits, drawn)
        position = self.num_tokens
        self.ids.append(token)
        self.masks.append(0 if forced else 1)
        told = ()
        if self._tells_chances and not forced:
            told = chances(token) if chances else chances_of(logits, token)
        if not forced and token in self._rules.end_ids:
            self.end(Reason.STOP)
            return Token(token, position, forced, Part.END, *told)
        part = self.tools.observe(token, len(self.ids) - 1)
        self._end_if_full()
        return Token(token, position, forced, part, *told)

    def _draw(self, logits: torch.Tensor, drawn: int | None) -> int:
        """One token that may stand here. Drawn as the reference draws, and once more without those that may not if
        it is one of them: so both ways give the same tokens wherever the reference draws none of those either."""
        token = int(sample_next_token(logits, self.rng, *self.sampling)) if drawn is None else drawn
        banned = self.tools.banned_ids()
        if token in banned:
            known = [id for id in banned if id < logits.shape[-1]]
            logits = logits.index_fill(-1, torch.tensor(known, device=logits.device), float("-inf"))
            token = int(sample_next_token(logits, self.rng, *self.sampling))
        return token

    def end(self, reason: Reason) -> None:
        """Complete the reply. A completed reply stays as it is: a second reason is not taken."""
        if not self.finished:
            self.reason = reason
            self.tools.end()

    def kept_ids(self) -> list[int]:
        """The reply as later turns contain it: the end token only where it was written, no block left open."""
        if self.reason is not Reason.STOP:
            return self.tools.kept_ids(self.ids)
        return self.tools.kept_ids(self.ids[:-1]) + self.ids[-1:]

    def _end_if_full(self) -> None:
        if self._max_tokens is not None and len(self.ids) >= self._max_tokens:
            self.end(Reason.LENGTH)
        elif self.num_tokens >= self._limit:
            self.end(Reason.CONTEXT_FULL)


def draw_together(sequences: list[Sequence], logits: SequenceOf[torch.Tensor]) -> list[int | None]:
    """What each would draw from its logits (1, V), found at once for those with the same settings (eight rows of 49,152: 2.0
    instead of 3.2 ms).

    None where a forced token comes next, where nobody else has these settings, and where a row cannot be drawn from:
    then each draws for itself, and it is seen for whom that fails.
    """
    drawn: list[int | None] = [None] * len(sequences)
    alike: dict[tuple, list[int]] = {}
    for place, sequence in enumerate(sequences):
        if not sequence.tools.forced:
            alike.setdefault(sequence.sampling, []).append(place)
    for sampling, places in alike.items():
        if len(places) == 1:
            continue
        with suppress(SamplingError):  # raised before anything is drawn
            rows, generators = torch.cat([logits[place] for place in places]), [sequences[place].rng for place in places]
            for place, token in zip(places, sample_next_token(rows, generators, *sampling).flatten().tolist()):
                drawn[place] = token
    return drawn
