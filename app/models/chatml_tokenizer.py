"""The tokenizer of the default model, SmolLM2: its vocabulary from a GGUF file, its chat format ChatML.

    <|im_start|>system\\nTEXT<|im_end|>\\n<|im_start|>user\\nTEXT<|im_end|>\\n<|im_start|>assistant\\n

The vocabulary is a byte-level BPE whose tokens are spelled in GPT-2's printable stand-ins for bytes.
"""

from __future__ import annotations

import tiktoken

from app.models.rendering import Rendering, Turn
from app.models.tokenizer import Tokenizer

# Every character of class N is a piece of its own, and only then GPT-2's pattern applies.
SPLIT_PATTERN = r"\p{N}|'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

DEFAULT_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"

# nanochat's names for the parts of a conversation, and what this family has in their place. Its format
# opens both sides' messages with the same mark. The tool marks are reserved tokens it never learned.
MARK_NAMES = {
    "<|bos|>": "<|im_start|>",
    "<|user_start|>": "<|im_start|>",
    "<|user_end|>": "<|im_end|>",
    "<|assistant_start|>": "<|im_start|>",
    "<|assistant_end|>": "<|im_end|>",
    "<|python_start|>": "<jupyter_code>",
    "<|python_end|>": "<jupyter_script>",
    "<|output_start|>": "<jupyter_output>",
    "<|output_end|>": "<jupyter_text>",
}
END_NAMES = ("<|im_end|>", "<|im_start|>", "<|endoftext|>")


class ChatMLTokenizer(Tokenizer):
    """Built from the vocabulary: the spelling of every token in order of id, and which ids are special.

    Raises ValueError, with what is wrong, for a vocabulary that is not of this family.
    """

    chat_format = "chatml-1"

    def __init__(self, tokens: list[str], special_ids: list[int], name: str):
        specials = {tokens[id]: id for id in special_ids}
        lacking = {*MARK_NAMES.values(), *END_NAMES} - specials.keys()
        if lacking:
            raise ValueError(f"it lacks the special token {min(lacking)}")
        byte_of = _bytes_by_stand_in()
        try:
            ranks = {bytes(byte_of[character] for character in token): id
                     for id, token in enumerate(tokens) if token not in specials}
        except KeyError as error:
            raise ValueError(f"the character {error} stands for no byte") from None
        self._known_bytes = bytes(byte for byte in range(256) if bytes([byte]) in ranks)
        if len(ranks) + len(specials) != len(tokens) or "\ufffd".encode().translate(None, self._known_bytes):
            raise ValueError("tokens stand in it twice, or single bytes are missing")
        encoding = tiktoken.Encoding(name, pat_str=SPLIT_PATTERN, mergeable_ranks=ranks, special_tokens=specials,
                                     explicit_n_vocab=len(tokens))
        super().__init__(encoding, marks={mark: specials[own] for mark, own in MARK_NAMES.items()},
                         end_token_ids=[specials[own] for own in END_NAMES], name=name)

    def encode(self, text: str) -> list[int]:
        """As ordinary text. The vocabulary lacks a few bytes (control characters, and those of the planes that
        Unicode has not assigned); a character that needs one is read as U+FFFD, for tiktoken would die of it."""
        if text.encode(errors="replace").translate(None, self._known_bytes):
            text = "".join("\ufffd" if c.encode(errors="replace").translate(None, self._known_bytes) else c for c in text)
        return super().encode(text)

    def _render(self, rendering: Rendering, system: str | None, turns: list[Turn]) -> None:
        # Role and text are one text to the tokenizer, so that a text that begins with a newline is encoded
        # as in training. A reply is encoded by itself: its first token was written after the header's last.
        self._add_message(rendering, "system", DEFAULT_SYSTEM if system is None else system)
        for turn in turns:
            if turn.role == "user":
                self._add_message(rendering, "user", turn.parts[0][1])
            else:
                rendering.add(self._reply_opening(), 0)
                self._add_parts(rendering, turn.parts)
                rendering.add([self.encode_special("<|assistant_end|>")], 1)
                rendering.add(self.encode("\n"), 0)

    def _add_message(self, rendering: Rendering, role: str, text: str) -> None:
        rendering.add([self.encode_special("<|user_start|>"), *self.encode(f"{role}\n{text}"),
                       self.encode_special("<|user_end|>"), *self.encode("\n")], 0)

    def _reply_opening(self) -> list[int]:
        return [self.encode_special("<|assistant_start|>"), *self.encode("assistant\n")]


def _bytes_by_stand_in() -> dict[str, int]:
    """GPT-2's table backwards: printable Latin-1 stands for itself, the other bytes for U+0100 and up, in order."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}
