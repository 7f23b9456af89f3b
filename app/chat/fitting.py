"""What of a conversation fits into the model's memory.

A message that is too long by itself is refused, with both counts, before anything is stored. When it is
the history that is too long, the oldest whole turns are left out of the prompt; they stay in the chat,
marked. The tokenizer decides what is too long, never a guess from characters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from app.chat.conversation import Message
from app.chat.errors import ChatError
from app.chat.prompt import Prompt, PromptBuilder

ROOM_FOR_REPLY = 8     # one part in so many of the context stays free for the answer
KEEP_WHEN_FULL = 0.75  # of the context; fuller, and every turn would leave out another and read all again


def longest_prompt(context: int, max_tokens: int) -> int:
    """How many tokens a prompt may have, so that there is room for an answer."""
    return context - min(max_tokens, max(1, context // ROOM_FOR_REPLY))


def least_context(builder: PromptBuilder, max_tokens: int) -> int:
    """The smallest context, in tokens, in which the shortest question has room."""
    shortest = len(builder.build([Message("", 0, "user", text="?")], None).ids)
    return next(context for context in count(shortest) if longest_prompt(context, max_tokens) >= shortest)


@dataclass
class Fitted:
    """A prompt that fits, and the messages that were left out for it."""
    prompt: Prompt
    left_out: list[Message]


def fit(builder: PromptBuilder, messages: list[Message], system: str | None, context: int, max_tokens: int) -> Fitted:
    """The prompt of `messages`, the last turn of which is to be answered or gone on with.

    Raises ChatError `too_long` where not even that turn fits.
    """
    limit = longest_prompt(context, max_tokens)
    turn_length = 2 if messages[-1].is_reply else 1
    kept = list(messages)
    prompt = builder.build(kept, system)
    if len(prompt.ids) <= limit:
        return Fitted(prompt, [])
    alone = prompt if len(kept) == turn_length else _build_anew(builder, kept[-turn_length:], system)
    if len(alone.ids) > limit:
        raise too_long(len(alone.ids), limit, context)
    left_out: list[Message] = []
    while len(kept) > turn_length and len(prompt.ids) > min(limit, KEEP_WHEN_FULL * context):
        left_out += kept[:2]
        kept = kept[2:]
        prompt = _build_anew(builder, kept, system)
    return Fitted(prompt, left_out)


def _build_anew(builder: PromptBuilder, messages: list[Message], system: str | None) -> Prompt:
    """With the first message opening the conversation, whatever stood before it when it was encoded."""
    return builder.build([replace(messages[0], ids=None), *messages[1:]], system)


def too_long(tokens: int, limit: int, context: int) -> ChatError:
    return ChatError("too_long", "This is too long: with the chat's own marks it is {tokens} tokens, and at most {limit} "
                     "fit ({context} that the model can hold, less some room for the answer).",
                     tokens=tokens, limit=limit, context=context)
