"""What each finished answer of a soak was made of, read from the database at the moment it was told to be done."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import torch

from app.engine import Engine

ENDS = ("stop", "length", "cancelled", "context_full")
# What was remembered was read in other pieces, which rounds otherwise in float32: logits of the tiny Llama differ by up
# to 5e-5, so of two that are nearer to one another than this, either may be the greater.
NEAR_TIE = 1e-3


class Record(NamedTuple):
    """An answer: the ids of the messages before it, those of answers marked as such, and its own ids."""
    before: tuple[tuple[bool, tuple[int, ...]], ...]
    ids: tuple[int, ...]
    prompt_tokens: int | None  # how many the server says it was made from; None of one that went on

    def prompt(self, foreign_ends: set[int]) -> list[int]:
        """An end token that is not the end mark stands at the end of a conversation only."""
        prompt = []
        for is_answer, ids in self.before:
            prompt += ids[:-1] if is_answer and ids and ids[-1] in foreign_ends else ids
        return prompt


class Records:
    """`made` are the different answers, with how often each was met; `near_ties` counts those that took the other of two
    equally likely tokens."""

    def __init__(self, database: Path):
        self.made: Counter[Record] = Counter()
        self.reasons: Counter[str] = Counter()
        self.near_ties = 0
        self._database, self._lock = database, threading.Lock()

    def note(self, conversation: str, done: dict, faults: list[str]) -> None:
        """`done` is the event. What is wrong goes to `faults`."""
        with closing(open_to_read(self._database)) as database:
            messages = database.execute("""SELECT id, role, place, ids, choice, answer, left_out, reason FROM messages
                                           WHERE conversation = ? ORDER BY place, answer""", (conversation,)).fetchall()
        reply = next((message for message in messages if message["id"] == done["message"]), None)
        if reply is None:  # deleted since
            return
        if reply["reason"] != done["reason"]:
            faults.append(f"an answer was told to end with {done['reason']}, and is stored with {reply['reason']}")
        if done["reason"] not in ENDS:
            faults.append(f"an answer ended with {done['reason']}: {done.get('text')}")
        before = tuple((message["role"] == "assistant", tuple(json.loads(message["ids"]))) for message in messages
                       if message["place"] < reply["place"] and not is_beside(message) and not message["left_out"])
        ids, stats = tuple(json.loads(reply["ids"])), done["stats"]
        if any(message["place"] > reply["place"] for message in messages):
            return  # the next turn has begun and may have left the oldest out: what this one was made of cannot be told
        is_whole = stats["generated_tokens"] + stats["forced_tokens"] == len(ids)
        with self._lock:
            self.made[Record(before, ids, stats["prompt_tokens"] if is_whole else None)] += 1
            self.reasons[done["reason"]] += 1

    def compare(self, model, tokenizer, at_most: int | None = None, tell=lambda number, of: None) -> list[str]:
        """Make each answer anew, alone -> what differs. An answer that was stopped is the beginning of the new one."""
        engine, faults, made = Engine(model, tokenizer), [], list(self.made)[:at_most]
        foreign_ends = set(tokenizer.end_token_ids) - {tokenizer.encode_special("<|assistant_end|>")}
        for number, record in enumerate(made, start=1):
            tell(number, len(made))
            prompt, ids = record.prompt(foreign_ends), record.ids
            if record.prompt_tokens not in (None, len(prompt)):
                faults.append(f"an answer was made from {record.prompt_tokens} tokens, and {len(prompt)} are stored")
            columns = engine.generate(prompt, max_tokens=len(ids), temperature=0.0) if ids else ()
            fresh = [column[0] for column, _ in columns]
            if tuple(fresh) == ids:
                continue
            same = next((at for at, (a, b) in enumerate(zip(fresh, ids)) if a != b), min(len(fresh), len(ids)))
            if same < len(fresh) and is_near_tie(model, [*prompt, *ids[:same]], ids[same]):
                self.near_ties += 1
            else:
                faults.append(f"an answer of {len(ids)} tokens to {len(prompt)} differs from a fresh one from {same} on")
        return faults


@torch.inference_mode()
def is_near_tie(model, before: list[int], token: int) -> bool:
    """Whether `token` is as likely after `before` as the likeliest one, but for rounding."""
    logits = model.forward(torch.tensor([before], device=model.get_device()))[0, -1]
    return bool(logits.max() - logits[token] < NEAR_TIE)


def is_beside(message) -> bool:
    """Whether the conversation goes on with another answer to the same question."""
    return message["choice"] == "folded" or (message["choice"] == "open" and message["answer"] > 0)


def open_to_read(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
    database.row_factory = sqlite3.Row
    return database
