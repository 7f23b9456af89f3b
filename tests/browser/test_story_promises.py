"""What the bench of the stories looks for in a play: that it is found where it is, and missed where it is not."""

import pytest

from tests.bench.stories import play
from tests.bench.story_promises import PROMISES
from tests.scripted import ScriptedModel

KEPT = {
    "remembers": ["Paris.", "Tokyo.", "Berlin."],
    "calculator": ["<|python_start|>123*456<|python_end|> It is 56088.", "<|python_start|>1000/8<|python_end|>"],
    "long": ["An owl named Elara sat in the dark. " * 6, "Elara."],
    "change": [lambda question: f"This is the {question.split()[-4]}."],  # the edit is the first question once more
}
BROKEN = {
    "remembers": (["Paris.", "Kyoto.", "Berlin."], ["question 2: the answer does not name 'Tokyo'"]),
    "calculator": (["It is 7.", "<|python_start|>1000/4<|python_end|> 125"],
                   ["question 1: 0 calls of the calculator", "question 1: nothing is told of it",
                    "question 2: the result is not remembered", "question 2: 1000/4 = 250"]),
    "long": (["An owl in the dark.", "Felix."],
             ["question 1: 20 tokens are not long", "question 2: nobody of the story is named"]),
    "change": (["An otter swims. It eats.", "A fox runs."],
               ["question 1: the answer has 2 sentences", "question 3: the answer does not name 'whale'"]),
}


@pytest.mark.parametrize("language, locale", [("en", "en-US"), ("zh", "zh-CN")])
@pytest.mark.parametrize("name", KEPT)
def test_a_story_that_keeps_its_promises_is_without_a_fault(serve, visit, name, language, locale):
    made = play(visit(serve(ScriptedModel(*KEPT[name])), locale=locale), name, language)
    assert made.faults == []
    assert made.is_at_end and len(made.steps) == len(PROMISES[name])


@pytest.mark.parametrize("name", BROKEN)
def test_a_promise_that_is_broken_is_named(serve, visit, name):
    replies, faults = BROKEN[name]
    made = play(visit(serve(ScriptedModel(*replies))), name, "en")
    for fault in faults:
        assert any(told.startswith(fault) for told in made.faults), made.faults
