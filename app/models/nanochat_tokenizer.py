"""The tokenizer of a nanochat model, with nanochat's chat format.

    <|bos|> <|user_start|>TEXT<|user_end|> <|assistant_start|>PARTS<|assistant_end|> <|user_start|>…

A part is text, <|python_start|>EXPRESSION<|python_end|> or <|output_start|>RESULT<|output_end|>. There is no
system message: its text stands before that of the first user message, with an empty line between.
"""

from __future__ import annotations

import tiktoken

from app.models.pickled_encoding import SPECIAL_NAMES
from app.models.rendering import Rendering, Turn
from app.models.tokenizer import Tokenizer


class NanochatTokenizer(Tokenizer):
    """Around an encoding that has the nine special tokens."""

    chat_format = "nanochat-1"

    def __init__(self, encoding: tiktoken.Encoding, name: str = "nanochat"):
        marks = {mark: encoding._special_tokens[mark] for mark in SPECIAL_NAMES}
        super().__init__(encoding, marks, end_token_ids=[marks["<|assistant_end|>"], marks["<|bos|>"]], name=name)

    def _render(self, rendering: Rendering, system: str | None, turns: list[Turn]) -> None:
        rendering.add([self.get_bos_token_id()], 0)
        for index, turn in enumerate(turns):
            if turn.role == "user":
                text = turn.parts[0][1]
                if index == 0 and system is not None:
                    text = f"{system}\n\n{text}"  # one text to the tokenizer
                rendering.add([self.encode_special("<|user_start|>"), *self.encode(text),
                               self.encode_special("<|user_end|>")], 0)
            else:
                rendering.add(self._reply_opening(), 0)
                self._add_parts(rendering, turn.parts)
                rendering.add([self.encode_special("<|assistant_end|>")], 1)

    def _reply_opening(self) -> list[int]:
        return [self.encode_special("<|assistant_start|>")]
