"""Text to token ids and back, for every family.

`Tokenizer` wraps a tiktoken encoding; a family adds the ids of its marks and how a conversation is laid
out. Text is always encoded as ordinary text: a special token that somebody types stays the characters
that were typed, so nobody can forge the end of a message or a tool's answer. This module must never
touch a tensor, nor know what the ids are used for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import tiktoken

from app.models.rendering import ConversationError, Rendering, Turn, read_conversation


# tiktoken's pattern matcher gives up, with a panic, at a million white spaces in a row: such a run is cut.
_VERY_LONG_SPACE = re.compile(r"\s{100000}")


class UnknownSpecialError(KeyError):
    """A special token that this family does not have."""

    def __init__(self, name: str, tokenizer: str):
        super().__init__(name)
        self.sentence = f"The tokenizer {tokenizer} has no special token {name!r}."

    def __str__(self):
        return self.sentence


class Tokenizer:
    """A tiktoken encoding with the marks of one family.

    `marks` maps nanochat's nine names (`<|bos|>`, `<|user_start|>`, …) to this family's ids for the same
    part of a conversation; a family may lack some. `end_token_ids` are the ids that end a reply.
    A subclass sets `chat_format`, a name that changes whenever the layout does, and implements `_render`
    and `_reply_opening`.
    """

    chat_format = "none"

    def __init__(self, encoding: tiktoken.Encoding, marks: Mapping[str, int], end_token_ids: Iterable[int], name: str):
        self.encoding = encoding
        self.name = name
        self.marks = dict(marks)
        self.end_token_ids = frozenset(end_token_ids)
        self._special_ids = frozenset(encoding._special_tokens.values())

    # --- text and ids

    def encode(self, text: str) -> list[int]:
        """The ids of `text` as ordinary text: never a special token, whatever it says."""
        ids: list[int] = []
        start = 0
        for run in _VERY_LONG_SPACE.finditer(text):
            ids += self.encoding.encode_ordinary(text[start:run.end()])
            start = run.end()
        return ids + self.encoding.encode_ordinary(text[start:])

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens by name; bytes that are not UTF-8 become U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """The bytes of `ids`: one token may be a part of a character only."""
        return self.encoding.decode_bytes(list(ids))

    def encode_special(self, name: str) -> int:
        """This family's id for one of nanochat's nine special tokens; UnknownSpecialError where it has none."""
        if name not in self.marks:
            raise UnknownSpecialError(name, self.name)
        return self.marks[name]

    def is_special(self, id: int) -> bool:
        return id in self._special_ids

    def get_bos_token_id(self) -> int:
        return self.encode_special("<|bos|>")

    def get_vocab_size(self) -> int:
        return self.encoding.n_vocab

    @cached_property
    def fingerprint(self) -> str:
        """The same for two tokenizers exactly when ids of the one mean the same to the other: a hash of
        vocabulary, split pattern, special tokens, marks and chat format."""
        digest = hashlib.sha256()
        for token, rank in sorted(self.encoding._mergeable_ranks.items(), key=lambda item: item[1]):
            digest.update(b"%d %d " % (rank, len(token)) + token)
        for part in (self.encoding._pat_str, sorted(self.encoding._special_tokens.items()), sorted(self.marks.items()),
                     sorted(self.end_token_ids), self.chat_format):
            digest.update(repr(part).encode())
        return digest.hexdigest()[:32]

    # --- conversations

    def render_conversation(self, conversation: dict) -> tuple[list[int], list[int]]:
        """A whole conversation as (ids, mask), mask 1 where the assistant writes the token itself.

        Raises ConversationError (with a sentence) for a conversation out of order.
        """
        rendering = Rendering()
        self._render(rendering, *read_conversation(conversation))
        return rendering.ids, rendering.mask

    def render_for_completion(self, conversation: dict) -> list[int]:
        """The ids up to where the model begins to write the last message, which must be the assistant's."""
        system, turns = read_conversation(conversation)
        if turns[-1].role != "assistant":
            raise ConversationError("The last message must be the assistant's: it is the one to be written.")
        rendering = Rendering()
        self._render(rendering, system, turns[:-1])
        return rendering.ids + self._reply_opening()

    def _render(self, rendering: Rendering, system: str | None, turns: list[Turn]) -> None:
        raise NotImplementedError

    def _reply_opening(self) -> list[int]:
        """What stands between the last message of the user and the first token of the reply."""
        raise NotImplementedError

    def _add_parts(self, rendering: Rendering, parts: list[tuple[str, str]]) -> None:
        """What an assistant wrote, each part encoded by itself, as it was when it was written."""
        for kind, text in parts:
            ids = self.encode(text)
            if kind == "python":
                ids = [self.encode_special("<|python_start|>"), *ids, self.encode_special("<|python_end|>")]
            elif kind == "python_output":
                ids = [self.encode_special("<|output_start|>"), *ids, self.encode_special("<|output_end|>")]
            rendering.add(ids, 0 if kind == "python_output" else 1)
