"""The tokens of a stored chat one by one, for its replay.

Of each message all tokens that are stored with it, in their order; what they are called is known only where the running
tokenizer is theirs. How the memory came by them is the replay's to say. This module must never make up a token.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.chat.chance_records import unpack
from app.chat.conversation import Message
from app.chat.prompt import PromptBuilder
from app.chat.token_names import TokenNames, names_of


def cells_of(messages: Sequence[Message], chances: dict[str, bytes], tokenizer) -> list[dict]:
    """[{"message", "turn", "tokens": [{"id", "text", "source", …}]}]. `source` is how a token first came: read, written
    or forced; `mark`, `hex`, `chance` and `runners_up` are as in the strip. `tokenizer` is None while there is none."""
    names = names_of(tokenizer) if tokenizer is not None else None
    builder = PromptBuilder(tokenizer) if tokenizer is not None else None
    return [{"message": message.id, "turn": message.place // 2 + 1,
             "tokens": _tokens(message, chances.get(message.id, b""), names if builder and builder.knows(message) else None)}
            for message in messages]


def _tokens(message: Message, records: bytes, names: TokenNames | None) -> list[dict]:
    tokens, masks = [], message.masks or []
    for index, id in enumerate(message.ids or []):
        source = "read" if not message.is_reply else "forced" if index < len(masks) and not masks[index] else "written"
        token = {"id": id, "source": source, **(names.of(id) if names else {"text": f"‹{id}›"})}
        if names and source == "written":
            token |= names.chances(*unpack(records, index))
        tokens.append(token)
    return tokens
