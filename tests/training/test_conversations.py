"""What is learned from is right: the calculator gives what stands there, and answers repeat it."""

import random
import re

import pytest
from gguf import TokenType

from app.engine.calculator import use_calculator
from app.training.conversations import Conversations
from app.training.counts import Counts, expression_for, words_of
from app.training.numbers import spelled
from app.training.ordinary import ordinary_prompts
from app.training.sums import KINDS
from app.training.typed import as_typed
from app.training.word_problems import story
from app.models.chatml_tokenizer import ChatMLTokenizer
from tests.models.tiny_llama import tiny_vocabulary

WORDS = ["strawberry", "possesses", "letter", "window", "banana", "quick"]
OWN = [{"messages": [{"role": "user", "content": "Who are you?"}], "text": "A small model.", "ended": True},
       {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}], "text": "Hello.", "ended": True},
       {"messages": [{"role": "user", "content": "Tell me all"}], "text": "It began when", "ended": False}]


def many(count: int = 2000, seed: int = 1) -> list[dict]:
    rng, conversations = random.Random(seed), Conversations(WORDS, OWN)
    return [conversations.any(rng) for _ in range(count)]


def answers_of(conversations):
    return [message["content"] for each in conversations for message in each["messages"] if message["role"] == "assistant"]


def test_every_block_holds_what_the_calculator_gives():
    blocks = 0
    for parts in answers_of(many()):
        for part, after in zip(parts, [*parts[1:], None]):
            if part["type"] != "python":
                continue
            result = use_calculator(part["text"])
            put_in = after["text"] if after and after["type"] == "python_output" else None
            assert put_in == result, part["text"]
            blocks += 1
    assert blocks > 1500


def test_an_answer_repeats_the_result_exactly_as_it_was_put_in():
    for parts in answers_of(many()):
        results = [part["text"] for part in parts if part["type"] == "python_output"]
        prose = "".join(part["text"] for part in parts if part["type"] == "text")
        for result in results:
            assert re.search(rf"(?<![\d.,-]){re.escape(result)}(?![\d])", prose), (result, prose)


def test_after_a_refusal_no_number_is_invented():
    refused = [parts for parts in answers_of(many(6000)) if [part["type"] for part in parts] == ["python", "text"]]
    assert len(refused) > 50
    assert not any(re.search(r"\d", parts[1]["text"]) for parts in refused)


@pytest.mark.parametrize("kind", [kind for kind, _ in KINDS] + [story], ids=lambda kind: kind.__name__)
def test_every_kind_of_sum_can_be_worked_out(kind):
    rng = random.Random(3)
    asked = [kind(rng) for _ in range(400)]
    solved = [expression for _, expression, _ in asked if use_calculator(expression) is not None]
    assert len(solved) > 380
    assert not [question for question, _, _ in asked if re.search(r"[{}]", question)], "a slot was left open"


def test_counts_are_right_for_the_word_as_it_is_asked_for():
    rng, counts = random.Random(5), Counts(WORDS)
    for _ in range(500):
        question, expression, (part, shown) = counts.ask(rng)
        assert shown in question
        assert use_calculator(expression) == str(shown.lower().count(part)), (question, expression)


@pytest.mark.parametrize("question, shown, part, expression", [
    ("How many r are in strawberry?", "strawberry", "r", '" strawberry".count("r")'),
    ('How many r are in "strawberry"?', "strawberry", "r", '"strawberry".count("r")'),
    ("strawberry: how many r?", "strawberry", "r", '"strawberry".count("r")'),
    ("how many s in Mississippi", "Mississippi", "s", '" Mississippi".count("s")'),
    ("how many m in Mississippi", "Mississippi", "m", '" mississippi".count("m")'),
    ("Count the a in BANANA", "BANANA", "a", '" BANANA".count("A")')])
def test_a_word_is_counted_in_as_it_stands_in_the_question(question, shown, part, expression):
    assert expression_for(question, shown, part) == expression


def test_conversations_can_be_rendered_and_only_written_tokens_are_learned():
    tokens, types = tiny_vocabulary()
    tokenizer = ChatMLTokenizer(tokens, [id for id, kind in enumerate(types) if kind == TokenType.CONTROL], "tiny")
    start, end = (tokenizer.encode_special(f"<|output_{side}|>") for side in ("start", "end"))
    for conversation in many(200):
        ids, mask = tokenizer.render_conversation(conversation)
        inside = False
        for token, learned in zip(ids, mask):
            inside = inside or token == start
            assert not (inside and learned), "a token that the calculator puts in is learned"
            inside = inside and token != end


def test_a_quarter_and_more_of_the_questions_come_in_a_longer_conversation_or_with_a_system_prompt():
    conversations = many()
    longer = sum(len(each["messages"]) > 2 for each in conversations)
    assert longer > len(conversations) / 5
    assert any(each["messages"][0]["role"] == "system" for each in conversations)


def test_unfinished_answers_are_never_taken_for_whole_ones():
    assert not any(part.get("text") == "It began when" for parts in answers_of(many()) for part in parts)


def test_the_same_seed_gives_the_same_conversations():
    assert many(50, seed=7) == many(50, seed=7)
    assert many(50, seed=7) != many(50, seed=8)


def test_ordinary_prompts_are_different_and_many_have_numbers():
    prompts = ordinary_prompts(1000, seed=1)
    questions = [prompt["question"] for prompt in prompts]
    assert len(set(questions)) == 1000
    assert sum(bool(re.search(r"\d", question)) for question in questions) > 250
    assert not any(re.search(r"[{}]", question) for question in questions)
    assert any("system" in prompt for prompt in prompts)


def test_slips_of_the_finger_leave_numbers_and_the_word_alone():
    rng = random.Random(1)
    for _ in range(500):
        typed = as_typed("How many letters r are in strawberry 4,512?", rng, keep="strawberry")
        assert "strawberry" in typed and "4,512" in typed


@pytest.mark.parametrize("number, words", [(0, "zero"), (13, "thirteen"), (40, "forty"), (58, "fifty-eight"), (105, "one hundred and five"), (999, "nine hundred and ninety-nine")])
def test_numbers_in_words(number, words):
    assert spelled(number) == words


def test_words_come_from_the_vocabulary():
    class Tokens:
        spellings = [b" window", b"window", b" Win", b" a", b" it's", b" apple", b"<|bos|>"]

        def get_vocab_size(self):
            return len(self.spellings)

        def is_special(self, token):
            return token == 6

        def decode_bytes(self, ids):
            return self.spellings[ids[0]]

    assert words_of(Tokens()) == ["window", "apple"]
