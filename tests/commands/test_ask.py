"""`ask` with a model that says what it is told: the terminal, the JSON object, and what goes wrong."""

import io
import json
import signal
import sys
import threading
import time

import pytest

from app.__main__ import main
from app.engine import EngineWorker
from tests.scripted import ByteTokenizer, PlainByteTokenizer, ScriptedModel

SUM = "123 × 456 is <|python_start|>123*456<|python_end|>, as you see."
REFUSED = "That is <|python_start|>1/0<|python_end|> nothing."


@pytest.fixture
def ask(monkeypatch, capsys):
    """ask(model, *arguments) -> status, standard output, standard error."""

    def ask(model, *arguments, tokenizer=ByteTokenizer()):
        monkeypatch.setattr("app.commands.ask.load", lambda settings: (model, tokenizer))
        status = main(["ask", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return ask


def test_the_answer_is_printed_and_nothing_else(ask):
    assert ask(ScriptedModel("Tokyo, 東京 🗼."), "What is the capital of Japan?") == (0, "Tokyo, 東京 🗼.\n", "")


def test_a_model_with_the_contracts_methods_alone_will_do(ask):
    assert ask(ScriptedModel("Tokyo 🗼."), "Japan?", tokenizer=PlainByteTokenizer()) == (0, "Tokyo 🗼.\n", "")


def test_the_answer_is_streamed_piece_by_piece(ask, monkeypatch):
    pieces = []

    class Terminal(io.StringIO):
        def write(self, text):
            pieces.append(text)
            return len(text)

    monkeypatch.setattr(sys, "stdout", Terminal())
    ask(ScriptedModel("one two"), "Count.")
    assert [piece for piece in pieces if piece] == [*"one two", "\n"]


def test_tool_calls_are_shown_in_their_place(ask):
    assert ask(ScriptedModel(SUM), "123 × 456?")[1] == "123 × 456 is [calculator: 123*456 = 56088], as you see.\n"
    assert ask(ScriptedModel(REFUSED), "1/0?")[1] == "That is [calculator: 1/0 was refused: division by zero] nothing.\n"


def test_a_tool_call_that_was_cut_is_shown_as_unfinished(ask):
    status, out, err = ask(ScriptedModel(SUM), "123 × 456?", "--max-tokens", "20")
    assert (status, out) == (0, "123 × 456 is [calculator: 123*4 was not finished]\n")
    assert err == "[the answer was cut at 20 tokens; --max-tokens allows more]\n"


def test_what_a_model_writes_cannot_steer_the_terminal(ask):
    assert ask(ScriptedModel("\x1b[2Jgone\x07\ttab\n"), "Hello")[1] == "\\x1b[2Jgone\\x07\ttab\n\n"


def test_the_question_can_come_from_standard_input(ask, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Say it.\n"))
    assert ask(ScriptedModel(lambda question: f"<{question}>"), "-")[1] == "<Say it.\n>\n"


def test_the_system_prompt_is_put_before_the_question(ask):
    assert ask(ScriptedModel(lambda question: question), "Hello", "--system", "Be kind.")[1] == "Be kind.\n\nHello\n"


def test_json_is_one_object_with_what_the_contract_names(ask):
    status, out, err = ask(ScriptedModel(SUM), "123 × 456?", "--json", "--seed", "7")
    answer = json.loads(out)
    assert (status, err, out.count("\n")) == (0, "", 1)
    assert answer["text"] == "123 × 456 is , as you see."
    call = answer["segments"][1]
    assert [segment["type"] for segment in answer["segments"]] == ["text", "tool_call", "text"]
    assert (call["expression"], call["result"], call["state"]) == ("123*456", "56088", "done")
    assert answer["finish_reason"] == "stop"
    assert len(answer["token_ids"]) == len(answer["masks"])
    forced = len("56088") + 2
    assert answer["masks"].count(0) == forced
    stats = answer["stats"]
    assert (stats["forced_tokens"], stats["generated_tokens"], stats["seed"]) == (forced, answer["masks"].count(1), 7)
    cache = answer["cache"]
    assert cache["conversation"]["tokens"] == stats["prompt_tokens"] + len(answer["token_ids"]) - 1
    assert cache["conversation"]["bytes_used"] == cache["conversation"]["tokens"] * cache["model"]["bytes_per_token"]
    assert cache["last_reply"]["without_cache"] > stats["prompt_tokens"] * len(answer["token_ids"])
    assert set(cache) == {"conversation", "last_reply", "pool", "model", "process"}


def test_the_reference_way_gives_the_same_tokens_and_keeps_nothing(ask):
    cached = json.loads(ask(ScriptedModel(SUM), "123 × 456?", "--json")[1])
    reference = json.loads(ask(ScriptedModel(SUM), "123 × 456?", "--json", "--no-cache")[1])
    assert reference["token_ids"] == cached["token_ids"]
    assert reference["text"] == cached["text"]
    assert reference["cache"]["conversation"]["tokens"] == 0 < cached["cache"]["conversation"]["tokens"]


def test_the_recommendation_of_the_model_holds_unless_an_option_is_given(ask):
    model = ScriptedModel("Hello.")
    model.recommended = {"temperature": 0.2, "top_k": 50}
    stats = json.loads(ask(model, "Hello", "--json")[1])["stats"]
    assert (stats["temperature"], stats["top_k"], stats["max_tokens"]) == (0.2, 50, 512)
    stats = json.loads(ask(model, "Hello", "--json", "--temperature", "0", "--top-k", "0", "--max-tokens", "9")[1])["stats"]
    assert (stats["temperature"], stats["top_k"], stats["max_tokens"]) == (0, 0, 9)


def test_a_question_that_does_not_fit_is_told_in_one_line(ask):
    status, out, err = ask(ScriptedModel("Hello."), "x" * 100, "--context", "64")
    assert (status, out) == (2, "")
    assert err.startswith("glasschat: ") and "64" in err and err.count("\n") == 1


def test_an_engine_that_fails_is_told_in_one_line(ask):
    status, out, err = ask(ScriptedModel(RuntimeError("no more memory")), "Hello")
    assert status == 1 and "no more memory" in err.splitlines()[-1]


def test_ctrl_c_stops_the_answer_and_keeps_what_was_written(ask, monkeypatch):
    model, before, stopped = ScriptedModel("one two three"), signal.getsignal(signal.SIGINT), threading.Event()
    cancel = EngineWorker.cancel
    monkeypatch.setattr(EngineWorker, "cancel", lambda self, reply: (cancel(self, reply), stopped.set()))
    model.hold(after_tokens=3)

    def interrupt():
        model.holding.wait(300)
        while signal.getsignal(signal.SIGINT) is before:  # nobody listens for it yet
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        stopped.wait(300)
        model.let_go()

    threading.Thread(target=interrupt).start()
    status, out, err = ask(model, "Count.")
    assert status == 130
    assert out in ("on\n", "one\n", "one \n"), "two tokens were there, and a stop may take up to two more"
    assert err == "[stopped]\n"


def test_ctrl_c_while_the_answer_is_being_printed_loses_nothing(ask, monkeypatch):
    model, written = ScriptedModel("one two three"), []

    class Terminal(io.StringIO):
        def write(self, text):
            written.append(text)
            if text == "n":
                model.holding.wait(300)
                signal.raise_signal(signal.SIGINT)
                model.let_go()
            return len(text)

    monkeypatch.setattr(sys, "stdout", Terminal())
    model.hold(after_tokens=3)
    before = signal.getsignal(signal.SIGINT)
    status, _, err = ask(model, "Count.")
    assert (status, err) == (130, "[stopped]\n")
    assert "".join(written) in ("on\n", "one\n", "one \n")
    assert signal.getsignal(signal.SIGINT) is before
