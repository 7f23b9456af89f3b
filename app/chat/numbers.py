"""The numbers that people see, in the shapes of the contract: `cache` and a reply's `stats`.

Everything is counted by the engine; this module names it. It must never estimate a count.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from app.engine.messages import Counts, Finished, Request, Snapshot

RESIDENT_AGE_S = 1.0
LITTLE_ROOM = 0.15     # of what a prompt may have: less than that is told
FEW_QUESTIONS = 3      # as are no more questions than these


def reply_stats(request: Request, finished: Finished) -> dict:
    """`stats` of a reply: counts, times and the settings that would repeat it."""
    counts, timing = finished.counts, finished.timing
    return {
        "prompt_tokens": len(request.prompt_ids),
        "reused_tokens": counts.reused,
        "read_tokens": counts.read,
        "generated_tokens": counts.written,
        "forced_tokens": counts.forced,
        "without_cache": counts.without_cache,
        "time_to_first_token_s": timing.time_to_first_token_s,
        "read_tokens_per_s": timing.read_tokens_per_s,
        "write_tokens_per_s": timing.write_tokens_per_s,
        "seed": finished.seed,
        "temperature": request.temperature,
        "top_k": request.top_k,
        "max_tokens": request.max_tokens,
        "use_cache": request.use_cache,
    }


def last_reply_numbers(counts: Counts) -> dict:
    return {"reused": counts.reused, "read": counts.read, "written": counts.written, "forced": counts.forced,
            "without_cache": counts.without_cache}


def last_reply_from_stats(stats: dict | None) -> dict:
    stats = stats or {}
    return {"reused": stats.get("reused_tokens", 0), "read": stats.get("read_tokens", 0),
            "written": stats.get("generated_tokens", 0), "forced": stats.get("forced_tokens", 0),
            "without_cache": stats.get("without_cache", 0)}


def copies_numbers(snapshot: Snapshot, prompt_tokens: int, rows: list[int]) -> dict:
    """What it costs to have several answers to one question: `rows` are the tokens in each row but the first. The
    prompt was read once, and copied to each of them."""
    bytes_per_token, copied, tokens = snapshot.model.bytes_per_token, len(rows) * prompt_tokens, sum(rows)
    return {"rows": len(rows), "prompt_tokens": prompt_tokens, "copied_tokens": copied,
            "copied_bytes": copied * bytes_per_token, "tokens": tokens, "bytes_used": tokens * bytes_per_token}


def room_numbers(whole: int, question: int, made: int, limit: int) -> dict | None:
    """How soon the oldest turns are left out, or None while that is far: `left` tokens, and so many `questions` like
    the last. `whole` are the tokens of the chat, the last turn of which were `question` and `made`; a prompt may have
    `limit`."""
    left = limit - whole
    questions = 0 if left < question else 1 + (left - question) // max(1, question + made)
    if left >= LITTLE_ROOM * limit and questions > FEW_QUESTIONS:
        return None
    return {"left": max(0, left), "questions": questions}


def cache_numbers(snapshot: Snapshot, tokens: int = 0, last_reply: dict | None = None,
                  copies: dict | None = None, room: dict | None = None) -> dict:
    """The `cache` object, complete: that of a conversation with `tokens` in the cache, or of none. `copies` is in it
    only while there are some, `room` only when there is little left, and of the model `windows`, one number a layer,
    only where it has layers that look back no further than so many tokens."""
    bytes_per_token = snapshot.model.bytes_per_token
    model = dict(vars(snapshot.model))
    if not any(model["windows"]):
        del model["windows"]
    return {
        **({"copies": copies} if copies else {}),
        **({"room": room} if room else {}),
        "conversation": {"tokens": tokens, "bytes_used": tokens * bytes_per_token, "limit": snapshot.context},
        "last_reply": last_reply or last_reply_from_stats(None),
        "pool": dict(vars(snapshot.pool)),
        "model": model,
        "process": {"resident_bytes": _resident.bytes(), "device_bytes": device_bytes()},
    }


class _Resident:
    """Memory of this process; asked of the system once a second at most."""

    def __init__(self):
        self._asked_at, self._bytes = float("-inf"), 0

    def bytes(self) -> int:
        now = time.monotonic()
        if now - self._asked_at > RESIDENT_AGE_S:
            self._asked_at, self._bytes = now, self._ask()
        return self._bytes

    @staticmethod
    def _ask() -> int:
        try:
            return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        except OSError:  # not Linux: the most it ever was
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            return peak if sys.platform == "darwin" else peak * 1024


_resident = _Resident()


def device_bytes() -> int:
    """Memory that torch holds on an accelerator; 0 without one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda.memory_allocated()
    return 0
