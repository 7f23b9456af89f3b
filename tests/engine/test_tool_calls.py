"""The tool-call state machine, token by token."""

import random

from app.engine.messages import Part, Reason, ToolState
from app.engine.sequence import ReplyRules, Sequence
from app.engine.tool_calls import ToolCalls, ToolMarks
from tests.engine.tiny import END, EXPRESSION_END, EXPRESSION_START, OUTPUT_END, OUTPUT_START, PlainTokenizer

import torch

TOKENIZER = PlainTokenizer()
RULES = ReplyRules.of(TOKENIZER)


def run(ids, **settings):
    """A sequence that is made to write `ids`, forced tokens coming by themselves; returns it and its tokens."""
    sequence = Sequence([256, 65], RULES, limit=200, temperature=0, **settings)
    tokens, todo = [], list(ids)
    while not sequence.finished and (todo or sequence.tools.forced):
        logits = torch.zeros(1, 265)
        if not sequence.tools.forced:
            logits[0, todo.pop(0)] = 9.0
        tokens.append(sequence.choose(logits))
    return sequence, tokens


def expression(text):
    return [EXPRESSION_START, *TOKENIZER.encode(text), EXPRESSION_END]


def output(text):
    return [OUTPUT_START, *TOKENIZER.encode(text), OUTPUT_END]


def test_parts_are_told_apart():
    sequence, tokens = run([72, *expression("1+1"), 73, END])
    assert [token.part for token in tokens] == [
        Part.TEXT, Part.MARK, *[Part.EXPRESSION] * 3, Part.MARK, Part.MARK, Part.OUTPUT, Part.MARK, Part.TEXT, Part.END]
    assert [token.position for token in tokens] == list(range(2, 13))
    assert [token.forced for token in tokens] == [False] * 6 + [True] * 3 + [False] * 2
    assert sequence.reason is Reason.STOP


def test_changes_of_state_carry_what_is_known():
    sequence, _ = run([*expression("6*7"), *expression("1/0"), END])
    changes = sequence.tools.changes
    assert [(call.index, call.state) for call in changes] == [
        (0, ToolState.WRITING), (0, ToolState.WRITING), (0, ToolState.DONE), (1, ToolState.WRITING), (1, ToolState.REFUSED)]
    done, refused = changes[2], changes[4]
    assert (done.expression, done.result, done.written_tokens, done.forced_tokens) == ("6*7", "42", 5, 4)
    assert (refused.expression, refused.result, refused.forced_tokens) == ("1/0", None, 0)
    marks = [(call.written_marks, call.forced_marks) for call in changes]
    assert marks == [(1, 0), (2, 0), (2, 2), (1, 0), (2, 0)]
    assert refused.reason == "division by zero"


def test_a_block_cut_in_its_expression_is_unfinished_and_dropped_from_what_is_kept():
    for ids, settings, reason in (([72, EXPRESSION_START, 49, 43], dict(max_tokens=4), Reason.LENGTH),
                                  ([72, EXPRESSION_START, 49, END], {}, Reason.STOP)):
        sequence, _ = run(ids, **settings)
        assert sequence.reason is reason
        assert sequence.tools.changes[-1].state is ToolState.UNFINISHED
        assert sequence.tools.changes[-1].expression.startswith("1")
        assert sequence.kept_ids() == ([72, END] if reason is Reason.STOP else [72])


def test_a_block_cut_in_its_result_is_unfinished_and_completed_in_what_is_kept():
    whole = [*expression("12*12"), *output("144")]
    for cut in range(len(expression("12*12")), len(whole)):
        sequence, _ = run(expression("12*12"), max_tokens=cut)
        assert sequence.reason is Reason.LENGTH and len(sequence.ids) == cut
        assert sequence.tools.changes[-1].state is ToolState.UNFINISHED
        assert sequence.kept_ids() == whole


def test_a_block_that_ends_with_the_limit_is_done():
    whole = [*expression("12*12"), *output("144")]
    sequence, _ = run(expression("12*12"), max_tokens=len(whole))
    assert sequence.tools.changes[-1].state is ToolState.DONE and sequence.kept_ids() == whole


def test_an_empty_block_is_refused():
    sequence, _ = run([EXPRESSION_START, EXPRESSION_END, END])
    assert sequence.tools.changes[-1].state is ToolState.REFUSED and sequence.tools.changes[-1].reason


def test_of_the_marks_only_the_one_that_makes_sense_can_be_sampled():
    calls = ToolCalls(ToolMarks.of(TOKENIZER), TOKENIZER.encode, TOKENIZER.decode)
    assert set(calls.banned_ids()) == {OUTPUT_START, OUTPUT_END, EXPRESSION_END}
    calls.observe(EXPRESSION_START, 0)
    assert set(calls.banned_ids()) == {OUTPUT_START, OUTPUT_END, EXPRESSION_START}
    calls.observe(EXPRESSION_END, 1)  # empty, so refused, and text goes on
    assert set(calls.banned_ids()) == {OUTPUT_START, OUTPUT_END, EXPRESSION_END}


def test_a_block_that_is_not_open_cannot_be_closed():
    sequence, tokens = run([72, EXPRESSION_END, 73, END])
    assert EXPRESSION_END not in sequence.ids and sequence.tools.changes == []
    assert [token.part for token in tokens][-1] is Part.END


def test_what_is_kept_never_has_an_open_block_however_a_reply_is_cut():
    rng = random.Random(1)
    pieces = [[72], [EXPRESSION_START], [EXPRESSION_END], TOKENIZER.encode("1+2"), TOKENIZER.encode("x"), expression("3*3"),
              expression("1/0"), [END]]
    for _ in range(500):
        ids = [token for _ in range(rng.randrange(1, 9)) for token in rng.choice(pieces)]
        sequence, _ = run(ids, max_tokens=rng.choice([None, rng.randrange(1, 30)]))
        sequence.end(Reason.CANCELLED)
        kept, depth = sequence.kept_ids(), []
        for token in kept:
            if token in (EXPRESSION_START, OUTPUT_START):
                assert not depth
                depth.append(token)
            elif token in (EXPRESSION_END, OUTPUT_END):
                assert not depth or depth.pop() == token - 1
        assert not depth
        assert all(call.state is not ToolState.WRITING for call in
                   {call.index: call for call in sequence.tools.changes}.values())
