"""Engine events to prose and tool calls (T25, T26)."""

import queue

import pytest

from app.chat.transcript import Transcript
from app.engine.messages import Counts, Finished, Part, Reason, Request, Timing, Token, ToolCall, Tokens, ToolState
from app.engine.worker import EngineWorker
from tests.scripted import ASSISTANT_START, USER_START, ByteTokenizer, PlainByteTokenizer, ScriptedModel


def tokens(text, part=Part.TEXT):
    ids = text.encode() if isinstance(text, str) else text
    return Tokens("r", tuple(Token(id, 0, False, part) for id in ids), Counts())


def finished():
    return Finished("r", Reason.STOP, (), (), (), Counts(), Timing(), 0)


def events_of(model, tokenizer=None, **request):
    """All events of a reply by the real engine."""
    tokenizer = tokenizer or ByteTokenizer()
    worker = EngineWorker(lambda: (model, tokenizer), rows=1, context=512, warm_up=False)
    worker.start()
    worker.wait_ready(30)
    events = queue.Queue()
    prompt = tokenizer.render_for_completion(
        {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": ""}]}
    )
    worker.submit(Request("r", "c", tuple(prompt), temperature=0, **request), events.put)
    result = []
    while not result or not isinstance(result[-1], Finished):
        result.append(events.get(timeout=30))
    worker.stop()
    return result


@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), PlainByteTokenizer()], ids=["bytes", "text only"])
def test_a_call_stands_between_the_prose_before_and_after_it(tokenizer):
    transcript = Transcript(tokenizer)
    events = events_of(ScriptedModel("It is <|python_start|>2*21<|python_end|>, so 42."), tokenizer)
    prose = [transcript.take(event) for event in events]
    assert "".join(prose) == transcript.text == "It is , so 42."
    assert transcript.as_json() == [
        {"type": "text", "text": "It is "},
        {"type": "tool_call", "state": "done", "expression": "2*21", "result": "42", "reason": None,
         "written_tokens": 6, "forced_tokens": 4, "written_marks": 2, "forced_marks": 2},
        {"type": "text", "text": ", so 42."}]


@pytest.mark.parametrize("said, state, expression", [
    ("<|python_start|>9**9<|python_end|> is big", "refused", "9**9"),
    ("<|python_start|>1/0<|python_end|> is none", "refused", "1/0"),
    ("<|python_start|>2+2", "unfinished", "2+2"),
])
def test_a_broken_call_says_what_became_of_it(said, state, expression):
    transcript = Transcript(ByteTokenizer())
    for event in events_of(ScriptedModel(said)):
        transcript.take(event)
    call = transcript.as_json()[0]
    assert (call["state"], call["expression"], call["result"]) == (state, expression, None)
    assert "<|" not in transcript.text


def test_a_call_cut_by_the_limit_between_expression_and_result_is_unfinished():
    transcript = Transcript(ByteTokenizer())
    for event in events_of(ScriptedModel("<|python_start|>2+2<|python_end|>"), max_tokens=5):
        transcript.take(event)
    assert [(s["state"], s["result"]) for s in transcript.as_json()] == [("unfinished", "4")]


def test_special_tokens_that_a_model_writes_into_its_prose_are_not_shown():
    transcript = Transcript(ByteTokenizer())
    assert transcript.take(tokens([ord("a"), USER_START, ASSISTANT_START, ord("b")])) == "ab"


def test_half_a_character_before_a_call_is_flushed_before_it():
    transcript = Transcript(ByteTokenizer())
    assert transcript.take(tokens("😀".encode()[:2])) == ""
    assert transcript.take(ToolCall("r", 0, ToolState.WRITING)) == "\ufffd"
    assert [segment["type"] for segment in transcript.as_json()] == ["text", "tool_call"]


def test_a_cut_reply_goes_on_inside_a_character():
    emoji = "😀".encode()
    first = Transcript(ByteTokenizer())
    first.take(tokens(b"a" + emoji[:2]))
    first.take(finished())
    assert first.text == "a\ufffd"
    second = Transcript(ByteTokenizer(), first.as_json(), list(b"a" + emoji[:2]))
    assert second.text == "a"
    assert second.take(tokens(emoji[2:])) == "😀"
    assert second.text == "a😀"


def test_calls_of_a_reply_that_goes_on_are_counted_on():
    first = Transcript(ByteTokenizer())
    first.take(ToolCall("r", 0, ToolState.DONE, "1+1", "2"))
    second = Transcript(ByteTokenizer(), first.as_json())
    second.take(ToolCall("r", 0, ToolState.DONE, "2+2", "4"))
    assert [segment["expression"] for segment in second.as_json()] == ["1+1", "2+2"]
