"""The tokens of a conversation one by one: which stand in its row of the cache, and which wait to be read.

    position   0 1 2 3 4 5 6 7 8 9 ..
    row        c c c c c c c c              what the engine holds: `tokens`
    chat       c c c c c c c c w w          what the next turn stands behind: `waiting` is what is not held yet

The row is what the engine says it holds, never what the chat says should be there. Where the two part (an answer that
was made without the cache took the place of one that is remembered), the rest of the row belongs to no message.
This module must never change anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import takewhile

from app.chat.chance_records import unpack
from app.chat.conversation import Message
from app.chat.live_reply import LiveReply
from app.chat.prompt import PromptBuilder
from app.chat.store import Store
from app.chat.token_names import TokenNames, names_of
from app.chat.transcript import special_id


class Strips:
    def __init__(self, worker, store: Store):
        self._worker, self._store = worker, store

    def of(self, conversation: str, live: Sequence[LiveReply] = (), chances_from: float = 0) -> dict:
        """`tokens` in the row, in order, and `waiting`: those of the chat that are in no row. `live` are the replies that
        are being written or have just ended. How likely a token was is told of those from a position on."""
        messages = self._store.messages(conversation)
        main = next((reply for reply in live if reply.request.conversation == conversation), None)
        cells = list(self._cells(messages, main, chances_from))
        row, cached = self._row(conversation, main, [cell["id"] for cell in cells])
        last = _Last.of(messages, main, len(row))
        shared = sum(1 for _ in takewhile(lambda pair: pair[0]["id"] == pair[1], zip(cells, row, strict=False)))
        orphans = ({"id": id, "position": shared + at, "turn": None, "message": None, "source": "read", **self.names.of(id)}
                   for at, id in enumerate(row[shared:]))
        tokens = [last.with_origin(cell) for cell in (*cells[:shared], *orphans)]
        return {"cached": cached, "tokens": tokens, "waiting": [last.with_origin(cell) for cell in cells[shared:]]}

    def event(self, conversation: str, live: Sequence[LiveReply] = ()) -> dict:
        """What is in the row, without the chances: whoever wants those has seen them come, or asks for them."""
        return {"type": "strip", "tokens": self.of(conversation, live, chances_from=math.inf)["tokens"]}

    def read_for(self, reply: LiveReply) -> Iterator[dict]:
        """The tokens of its prompt that a reply does not find remembered, in order, as cells that are read. They are
        made as they are taken: those of a long paste would hold up the engine if they were made at once."""
        ids, first = reply.request.prompt_ids, reply.counts.reused
        cells = self._cells(self._store.messages(reply.channel.conversation), reply, first, first)
        for position in range(first, len(ids)):
            cell = next(cells, None)
            if cell is None or cell["id"] != ids[position]:  # a tokenizer that lays the chat out anew each turn
                cells = iter(())
                cell = {"id": ids[position], "position": position, "turn": None, "message": None, "source": "read",
                        **self.names.of(ids[position])}
            yield _told(cell, "read")

    @property
    def names(self) -> TokenNames:
        return names_of(self._worker.tokenizer)  # the model is loaded after this was made

    def _row(self, conversation: str, main: LiveReply | None, chat_ids: list[int]) -> tuple[Sequence[int], int]:
        """What the conversation's row holds, and how many that is."""
        snapshot = self._worker.snapshot()
        if main and main.is_in_row:
            ids = [*main.request.prompt_ids, *main.own_ids]
            return ids[:main.cached_tokens], main.cached_tokens
        cached = snapshot.cached_tokens.get(conversation, 0)
        ids = snapshot.kept_ids.get(conversation, chat_ids)
        return ids[:cached], min(cached, len(ids))

    def _cells(self, messages: Sequence[Message], main: LiveReply | None, chances_from: float,
               first: int = 0) -> Iterator[dict]:
        """All tokens that the next prompt begins with, from the position `first` on. `source` is how a token first came:
        read, written or forced."""
        position, records = 0, self._store.chances([message.id for message in messages if message.is_reply])
        builder = PromptBuilder(self._worker.tokenizer)
        for message in messages:
            if message.left_out:
                continue
            if not builder.knows(message):  # another model's: they will be encoded again
                return
            own = main if main and main.message.id == message.id else None
            ids, masks = (own.ids, own.masks) if own else (message.ids or [], message.masks or [])
            if message is not messages[-1]:
                ids = builder.without_foreign_end(ids)
            if position + len(ids) <= first:
                position += len(ids)
                continue
            known = bytes(own.chances) if own else records.get(message.id, b"")
            calls = self._calls(message, own, ids, masks) if message.is_reply else {}
            skipped = max(0, first - position)
            position += skipped
            for index, id in enumerate(ids[skipped:], start=skipped):
                source = "read" if not message.is_reply else "forced" if index < len(masks) and not masks[index] else "written"
                cell = {"id": id, **self.names.of(id), "position": position, "turn": message.place // 2 + 1,
                        "message": message.id, "source": source}
                if index in calls:
                    cell["call"] = calls[index]
                if known and source == "written" and position >= chances_from:
                    cell |= self.names.chances(*unpack(known, index))
                yield cell
                position += 1

    def _calls(self, message: Message, own: LiveReply | None, ids: Sequence[int], masks: Sequence[int]) -> dict[int, int]:
        """Which tool call of the reply a token belongs to, by its place among the reply's tokens."""
        tokenizer = self._worker.tokenizer
        opening, closing, output, output_end = (special_id(tokenizer, f"<|{name}|>") for name in (
            "python_start", "python_end", "output_start", "output_end"))
        segments = own.transcript.as_json() if own else message.segments
        calls = [segment for segment in segments if segment["type"] == "tool_call"]
        # one that was cut before it had a result has no tokens any more, unless it is being written
        numbers = iter([number for number, call in enumerate(calls)
                        if call["state"] != "unfinished" or call["result"] is not None])
        found, number = {}, None
        for index, id in enumerate(ids):
            if id == opening and number is None:
                number = next(numbers, None)
            if number is None:
                continue
            found[index] = number
            is_refused = id == closing and index + 1 < len(ids) and ids[index + 1] != output
            if is_refused or id == output_end:
                number = None
        return found


class _Last:
    """The last reply: what it found remembered, and what it read. One that is made without the cache, or was stopped
    while it waited for its turn, leaves the row as it was: all in it is remembered from before, nothing is of the reply."""

    def __init__(self, reused: int, prompt: int):
        self._reused, self._prompt = reused, prompt

    @classmethod
    def of(cls, messages: Sequence[Message], main: LiveReply | None, in_row: int) -> _Last:
        if main and main.is_in_row:
            return cls(main.counts.reused, len(main.request.prompt_ids))
        stats = next((message.stats for message in reversed(messages) if message.stats), {})
        if main and not main.request.use_cache or not stats.get("use_cache", True) or stats and not _has_begun(stats):
            return cls(in_row, in_row)
        return cls(stats.get("reused_tokens", 0), stats.get("prompt_tokens", 0))

    def with_origin(self, cell: dict) -> dict:
        position = cell["position"]
        if position >= self._prompt:
            return _told(cell, cell["source"])
        return _told(cell, "reused" if position < self._reused else "read")


def _has_begun(stats: dict) -> bool:
    return stats.get("reused_tokens", 0) + stats.get("read_tokens", 0) > 0


def _told(cell: dict, origin: str) -> dict:
    """A cell as it is told: its origin, and `source` only where that says more."""
    told = {**cell, "origin": origin}
    if told["source"] in ("read", origin):
        del told["source"]
    return told
