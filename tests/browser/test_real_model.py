"""Once through with the default model, served as people serve it: `python -m app serve`.

In float32: only there is an answer the same, whether its question was read anew or remembered.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from tests.free_port import free_port

ANSWERED_WITHIN_MS = 180_000  # on a machine with other things to do
READY_WITHIN_S = 300  # the first time it is fetched
LAYERS, KV_HEADS, HEAD_DIM = 30, 3, 64  # of SmolLM2-135M


@pytest.fixture(scope="module")
def real_server(tmp_path_factory):
    port = free_port()
    folder = tmp_path_factory.mktemp("real")
    log = (folder / "log").open("w+")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CHAT_")}
    options = ["--port", str(port), "--data", str(folder / "data"), "--dtype", "float32"]
    process = subprocess.Popen([sys.executable, "-m", "app", "serve", *options], cwd=Path(__file__).parents[2],
                               env=environment, stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + READY_WITHIN_S
        while not is_ready(url):
            assert process.poll() is None and time.monotonic() < end, log.seek(0) or log.read()
            time.sleep(0.3)
        yield SimpleNamespace(url=url)
    finally:
        process.terminate()
        process.wait(timeout=120)
        log.close()


@pytest.fixture
def chat(real_server, visit):
    chat = visit(real_server)
    chat.page.set_default_timeout(ANSWERED_WITHIN_MS)
    return chat


def is_ready(url: str) -> bool:
    try:
        return urllib.request.urlopen(url + "/readyz", timeout=5).status == 200
    except (urllib.error.URLError, OSError):
        return False


def test_a_question_is_answered_counted_and_remembered(chat):
    assert "Tokyo" in chat.ask_and_wait("What is the capital of Japan?")
    numbers = chat.numbers()
    per_token = 2 * LAYERS * KV_HEADS * HEAD_DIM * numbers["model"]["bytes_per_element"]
    assert numbers["model"]["bytes_per_token"] == per_token
    cached = chat.number("cached-tokens")
    assert cached == numbers["conversation"]["tokens"] > 0
    assert chat.number("cache-memory") == cached * per_token == numbers["conversation"]["bytes_used"]
    assert numbers["pool"]["bytes_reserved"] >= numbers["pool"]["bytes_used"] >= cached * per_token
    assert chat.number("reused-tokens") == 0
    for factor in (f"{LAYERS} layers", f"{KV_HEADS} KV heads", f"{HEAD_DIM} numbers", f"{cached} tokens"):
        expect(chat.panel.get_by_role("button", name=factor, exact=True)).to_be_visible()

    chat.ask_and_wait("And of France?")
    assert chat.number("reused-tokens") == cached
    assert chat.number("read-tokens") < cached
    shown = chat.text_of(chat.answers.last)
    chat.reload()
    assert chat.text_of(chat.answers.last) == shown
    assert chat.number("reused-tokens") == cached


def test_an_answer_is_repeated_exactly_by_its_seed(chat):
    chat.settings.click()
    chat.page.get_by_label("Longest answer").fill("24")
    chat.settings_save.click()
    first = chat.ask_and_wait("Tell me a very short story about a cat.")
    old = chat.answers.last.get_attribute("data-id")
    chat.repeat.click()
    assert chat.wait_for_another_answer(old) == first


def test_stop_and_go_on(chat):
    chat.ask("Tell me a long story about a ship and its crew.")
    expect(chat.answers.first.locator(".prose")).to_have_text(re.compile(".{60}", re.DOTALL))
    chat.stop.click()
    expect(chat.answers.last).to_have_attribute("data-state", "cancelled")
    chat.wait_until_ready()
    tokens = chat.number("written-tokens")
    getattr(chat, "continue").click()
    expect(chat.state).to_have_attribute("data-state", "writing")
    chat.stop.click()
    chat.wait_for_end()
    assert tokens > 0
    assert chat.answers.count() == 1


@pytest.mark.parametrize("question, expression, result", [
    ("What is 123 × 456?", r"^123\*456$", "56088"),
    ("How many r are in strawberry?", r'^" ?strawberry"\.count\("r"\)$', "3")])
def test_what_is_to_be_worked_out_is_worked_out_by_the_calculator(chat, question, expression, result):
    answer = chat.ask_and_wait(question)
    call = chat.answers.last.get_by_test_id("tool-call")
    expect(call).to_have_attribute("data-state", "done")
    call.locator("summary").click()
    expect(call.get_by_test_id("tool-expression")).to_have_text(re.compile(expression))
    expect(call.get_by_test_id("tool-result")).to_have_text(result)
    assert result in answer
    assert chat.number("forced-tokens") == len(result) + 2  # a token a digit, and the two marks around them
    chat.reload()
    expect(chat.answers.last.get_by_test_id("tool-call")).to_have_attribute("data-state", "done")
