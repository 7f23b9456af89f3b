"""A model that says what a test tells it to, and a tokenizer of bytes: no weights, no waiting.

`ScriptedModel` keeps to the contract and uses the cache honestly: the ids that it was given are what it
stores as keys, and what it says next is found from the ids that its row holds. A cache that was cut,
copied or reused wrongly therefore makes it say something else.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass

import torch

from app.engine.sampling import make_generator, sample_next_token

NAMES = ("<|bos|>", "<|user_start|>", "<|user_end|>", "<|assistant_start|>", "<|assistant_end|>",
         "<|python_start|>", "<|python_end|>", "<|output_start|>", "<|output_end|>")
BOS, USER_START, USER_END, ASSISTANT_START, ASSISTANT_END, PYTHON_START, PYTHON_END, OUTPUT_START, OUTPUT_END = range(
    256, 265
)
VOCAB_SIZE = 265


def ids_of(said: str) -> list[int]:
    """A text as ids, one a byte; the nine names in it stand for the special tokens."""
    pieces = re.split("(" + "|".join(map(re.escape, NAMES)) + ")", said)
    return [id for piece in pieces for id in ([256 + NAMES.index(piece)] if piece in NAMES else piece.encode())]


# --- the tokenizer

class PlainByteTokenizer:
    """Bytes as ids 0-255, then nanochat's nine special tokens: the contract's methods and no others."""

    def encode(self, text):
        return list(text.encode())

    def decode(self, ids):
        pieces = [bytes([id]) if id < 256 else NAMES[id - 256].encode() for id in ids]
        return b"".join(pieces).decode(errors="replace")

    def encode_special(self, name):
        if name not in NAMES:
            raise KeyError(f"no special token {name!r}")
        return 256 + NAMES.index(name)

    def get_bos_token_id(self):
        return BOS

    def get_vocab_size(self):
        return VOCAB_SIZE

    def render_conversation(self, conversation):
        ids, mask = [BOS], [0]

        def add(new, is_written):
            ids.extend(new)
            mask.extend([is_written] * len(new))

        for message in self._without_system(conversation["messages"]):
            if message["role"] == "user":
                add([USER_START, *self.encode(message["content"]), USER_END], 0)
                continue
            add([ASSISTANT_START], 0)
            content = message["content"]
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                text = self.encode(part["text"])
                if part["type"] == "python":
                    add([PYTHON_START, *text, PYTHON_END], 1)
                elif part["type"] == "python_output":
                    add([OUTPUT_START, *text, OUTPUT_END], 0)
                else:
                    add(text, 1)
            add([ASSISTANT_END], 1)
        return ids, mask

    def render_for_completion(self, conversation):
        messages = conversation["messages"]
        assert messages[-1]["role"] == "assistant", "the last message is the one to be written"
        return self.render_conversation({"messages": messages[:-1]})[0] + [ASSISTANT_START]

    @staticmethod
    def _without_system(messages):
        """nanochat's way: the system text goes before that of the first user message."""
        if messages and messages[0]["role"] == "system":
            system, first, *others = messages
            messages = [{"role": "user", "content": system["content"] + "\n\n" + first["content"]}, *others]
        for index, message in enumerate(messages):
            assert message["role"] == ("user", "assistant")[index % 2], f"message {index} is out of order: {message}"
        return messages


class ByteTokenizer(PlainByteTokenizer):
    """With what our own tokenizers offer beyond the contract."""

    name = "bytes"
    end_token_ids = frozenset({BOS, ASSISTANT_END})

    def __init__(self, fingerprint="bytes-1"):
        self.fingerprint = fingerprint

    def decode_bytes(self, ids):
        return b"".join(bytes([id]) if id < 256 else NAMES[id - 256].encode() for id in ids)

    def is_special(self, id):
        return id >= 256


# --- the model

@dataclass(frozen=True)
class ScriptedConfig:
    n_layer: int = 2
    n_head: int = 4
    n_kv_head: int = 2
    n_embd: int = 16
    sequence_len: int = 8192
    vocab_size: int = VOCAB_SIZE


class ScriptedModel:
    """Answers the `k`-th question of a conversation with the `k`-th of `replies`; the last one repeats.

    A reply is a text (see `ids_of`), a list of ids, or an exception, which is raised instead. `replies`
    may also be a function of the question's text. What is put in by the calculator is not part of a
    reply: it is skipped. After its reply the model ends it.

    `seconds_per_token` slows writing, `seconds_per_read` slows each chunk that is read. `hold(n)` makes the
    model wait before it says what comes after the `n`-th token of a reply, until `let_go()`; `let_go(m)` makes
    it wait again after the `m`-th.
    """

    def __init__(self, *replies, name="Scripted", seconds_per_token=0.0, seconds_per_read=0.0, sequence_len=8192):
        self.config = ScriptedConfig(sequence_len=sequence_len)
        self.name = name
        self.replies = replies[0] if len(replies) == 1 and callable(replies[0]) else list(replies) or ["Hello."]
        self.seconds_per_token, self.seconds_per_read = seconds_per_token, seconds_per_read
        self.tokens_computed = 0
        self._held_after: int | None = None
        self._times_let_go = 0
        self._changed = threading.Condition()  # guards both
        self._go_on = threading.Event()  # the same, for a model that waits elsewhere
        self.holding = threading.Event()  # set while the model waits

    def hold(self, after_tokens: int) -> None:
        with self._changed:
            self._held_after = after_tokens
            self._go_on.clear()

    def let_go(self, until: int | None = None) -> None:
        with self._changed:
            self._held_after = until
            self._times_let_go += 1
            self._changed.notify_all()
            self._go_on.set()

    def get_device(self):
        return torch.device("cpu")

    def forward(self, ids, kv_cache=None):
        num_rows, num_new = ids.shape
        self.tokens_computed += ids.numel()
        time.sleep(self.seconds_per_token if num_new == 1 else self.seconds_per_read)
        logits = torch.zeros(num_rows, num_new, VOCAB_SIZE)  # (B, T, V); only those of the last position are told
        for row in range(num_rows):
            logits[row, -1, self._next_id(self._remembered(ids, row, kv_cache))] = 100.0
        if kv_cache is not None:
            kv_cache.advance(num_new)
        return logits

    def generate(self, tokens, max_tokens, temperature=1.0, top_k=None, seed=42):
        rng, ids = make_generator(seed), list(tokens)
        for _ in range(max_tokens):
            ids.append(int(sample_next_token(self.forward(torch.tensor([ids]))[:, -1], rng, temperature, top_k)))
            yield ids[-1]

    def _remembered(self, ids, row, kv_cache) -> list[int]:
        """All ids of the row: those that its keys hold, and the new ones, which are written there."""
        if kv_cache is None:
            return ids[row].tolist()
        keys, _ = kv_cache.get_layer_cache(0)  # (B, S, G, D)
        start = int(kv_cache.cache_seqlens[row])
        end = start + ids.shape[1]
        keys[row, start:end, 0, 0] = ids[row].to(keys.dtype)
        return keys[row, :end, 0, 0].long().tolist()

    def _next_id(self, ids: list[int]) -> int:
        if ASSISTANT_START not in ids:
            return ASSISTANT_END
        said_from = len(ids) - ids[::-1].index(ASSISTANT_START)
        reply = self._reply_to(ids[:said_from])
        if isinstance(reply, Exception):
            raise reply
        script = ids_of(reply) if isinstance(reply, str) else list(reply)
        said = _without_outputs(ids[said_from:])
        self._wait_if_held(len(said))
        return script[len(said)] if len(said) < len(script) else ASSISTANT_END

    def _wait_if_held(self, after_tokens: int) -> None:
        with self._changed:
            if self._held_after is None or after_tokens < self._held_after:
                return
            times = self._times_let_go
            self.holding.set()
            self._changed.wait_for(lambda: self._times_let_go > times, 300)
            self.holding.clear()

    def _reply_to(self, ids: list[int]):
        if callable(self.replies):
            question = ids[len(ids) - ids[::-1].index(USER_START):-2]
            return self.replies(bytes(question).decode(errors="replace"))
        return self.replies[min(ids.count(ASSISTANT_START), len(self.replies)) - 1]


def _without_outputs(ids: list[int]) -> list[int]:
    said, is_output = [], False
    for id in ids:
        is_output = is_output or id == OUTPUT_START
        if not is_output:
            said.append(id)
        is_output = is_output and id != OUTPUT_END
    return said
