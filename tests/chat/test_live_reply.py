"""A reply while it is written: the same parts live and after a reload, and work in proportion to its length (T36)."""

import random
import sys

import pytest

from app.chat.conversation import Conversation, Message
from app.chat.hub import Hub
from app.chat.live_reply import LiveReply
from app.chat.parts import Parts
from app.chat.store import Store
from app.engine.messages import (
    Counts,
    Finished,
    Part,
    Queued,
    Reading,
    Reason,
    Request,
    Timing,
    Token,
    ToolCall,
    Tokens,
    ToolState,
)
from tests.scripted import ByteTokenizer, ids_of


@pytest.fixture
def channel(tmp_path):
    store = Store(tmp_path)
    conversation = Conversation(owner="me", title="t")
    store.add_conversation(conversation)
    yield Hub(store).channel(conversation.id)
    store.close()


def live(channel):
    message = Message(channel.conversation, 1, "assistant", ids=[], fingerprint="bytes-1")
    return LiveReply(message, Request("run", channel.conversation, (1, 2, 3)), channel, ByteTokenizer())


def tokens(text, size=1, part=Part.TEXT):
    ids = ids_of(text)
    return [
        Tokens("run", tuple(Token(id, 0, False, part) for id in ids[at : at + size]), Counts(cached=at))
        for at in range(0, len(ids), size)
    ]


def finished(ids=()):
    return Finished("run", Reason.STOP, tuple(ids), (1,) * len(ids), tuple(ids), Counts(), Timing(), 7)


TEXT = "# Title\n\nSome *words*.\n\n- a list\n- of two\n\n```python\nx = 1\n\ny = 2\n```\nAfter it, 字体 and 😀."


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_page_that_follows_the_events_ends_with_what_a_reload_shows(channel, size):
    """A page keeps blocks by index and the text since; nothing else is needed, however the tokens came."""
    reply = live(channel)
    blocks, tail = {}, ""
    for event in [*tokens(TEXT, size), finished(ids_of(TEXT))]:
        for told in reply.take(event):
            if told["type"] == "token":
                tail += told["text"]
            elif told["type"] == "block":
                blocks[told["index"]] = told["html"]
                tail = told["rest"]
    reloaded = Parts.of(reply.final()["segments"]).parts
    assert (
        [blocks[index] for index in sorted(blocks)]
        == [part["html"] for part in reloaded]
        == [part["html"] for part in reply.parts.parts]
    )
    assert len(reloaded) == 5 and tail.strip() == ""


def test_what_a_reload_shows_in_mid_reply_is_what_was_told_so_far(channel):
    reply = live(channel)
    told = [told for event in tokens(TEXT[:60]) for told in reply.take(event)]
    assert [part["html"] for part in reply.parts.parts] == [event["html"] for event in told if event["type"] == "block"]
    assert reply.parts.tail == TEXT[len("# Title\n\nSome *words*.\n\n- a list\n- of two\n\n"):60]


def test_states_are_told_when_they_change_and_only_then(channel):
    reply = live(channel)
    call = ToolCall("run", 0, ToolState.WRITING)
    events = [
        Queued("run", 2),
        Queued("run", 1),
        Reading("run", 0, 3, 0),
        Reading("run", 3, 3, 0),
        *tokens("a"),
        *tokens("b"),
        call,
        *tokens("<|python_start|>1", part=Part.EXPRESSION),
        ToolCall("run", 0, ToolState.REFUSED, "1"),
        *tokens("c"),
    ]
    states = [
        (told["state"], told.get("place")) for event in events for told in reply.take(event) if told["type"] == "state"
    ]
    assert states == [
        ("queued", 2),
        ("queued", 1),
        ("reading", None),
        ("writing", None),
        ("calculating", None),
        ("writing", None),
    ]


def test_what_is_stored_on_the_way_never_has_an_open_tool_block_in_its_ids(channel):
    reply = live(channel)
    for event in [
        *tokens("It is "),
        ToolCall("run", 0, ToolState.WRITING),
        *tokens("<|python_start|>1+1", part=Part.EXPRESSION),
    ]:
        reply.take(event)
    progress = reply.progress()
    assert (progress["ids"], progress["masks"]) == (list(b"It is "), [1] * 6)
    assert [segment["type"] for segment in progress["segments"]] == ["text", "tool_call"]


def test_a_reply_that_the_engine_dropped_closes_its_tool_call(channel):
    reply = live(channel)
    reply.take(ToolCall("run", 0, ToolState.WRITING))
    told = reply.take(reply.cut_off(Reason.ERROR, "gone"))
    assert [(event["type"], event["state"]) for event in told] == [("tool_call", "unfinished")]
    assert (reply.final()["reason"], reply.final()["error"]) == ("error", "gone")


def test_work_grows_with_the_length_of_the_reply_not_with_its_square(channel):
    """5,000 tokens with a code fence, against 10,000: function calls and characters told (T36)."""
    def work(num_tokens):
        reply, count, told_characters = live(channel), 0, 0
        words = random.Random(1).choices(["word ", "and ", "\n"], k=num_tokens)
        words[num_tokens // 4], words[num_tokens // 2] = "\n```\n", "\n```\n"
        events = [tokens(word, 10)[0] for word in words]

        def counter(frame, event, argument):
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(counter)
        try:
            told = [told for event in events for told in reply.take(event)]
        finally:
            sys.setprofile(None)
        for event in told:
            told_characters += len(event.get("text", "")) + len(event.get("html", "")) + len(event.get("rest", ""))
        return count, told_characters

    small, large = work(5_000), work(10_000)
    assert large[0] < 2.2 * small[0] and large[1] < 2.2 * small[1]
