"""A chat played again: without the model, with the numbers that were."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.replay import CALC, options_of, saved, words_of
from tests.browser.test_access import assert_accessible
from tests.scripted import ScriptedModel

HOUR_MS = 3_600_000


def failing():
    raise RuntimeError("no model is here")


def test_a_replay_needs_no_model_and_ends_with_the_text_and_the_numbers_that_were(serve, visit):
    server = serve(ScriptedModel(CALC, "Short."))
    chat = visit(server)
    first = chat.ask_and_wait("How much is it?")
    second = chat.ask_and_wait("And now?")
    last, address = chat.numbers(), chat.page.url.removeprefix(server.url)
    stored = server.parts.store.path.parent
    server.stop()
    server._tokenizer, server.model.broken = None, True  # from here on the server has a model that cannot be loaded
    import app as application
    had, application._load = application._load, lambda settings: failing()
    try:
        server.start()
        assert server.parts.store.path.parent == stored
        replay = visit(server, address + "/replay", like=chat)
        expect(replay.replay_mark).to_have_text("Replay")
        replay.wait_until(lambda: server.parts.worker.snapshot().state == "failed")
        expect(replay.answers).to_have_count(0)
        replay.replay_speed.select_option("16")
        replay.replay_play.click()
        expect(replay.state).to_have_text("Replay: this was all")
        assert [words_of(replay, replay.answers.nth(index)) for index in (0, 1)] == [first.split(), second.split()]
        for hook, wanted in (("cached-tokens", last["conversation"]["tokens"]), ("cache-memory", last["conversation"]["bytes_used"]),
                             ("reused-tokens", last["last_reply"]["reused"]), ("read-tokens", last["last_reply"]["read"])):
            assert replay.number(hook) == wanted
        assert replay.tool_call.get_attribute("data-state") == "done"
        assert replay.page.locator("strong", has_text="36").count() == 1
    finally:
        application._load = had


@pytest.mark.parametrize("width", [360, 390])
def test_on_a_phone_the_speed_stands_beside_the_slider_and_the_buttons_in_one_row(serve, visit, width):
    chat = visit(serve(), **{**PHONE, "viewport": {"width": width, "height": 844}})
    chat.ask_and_wait("hi")
    chat.page.goto(chat.page.url + "/replay")
    expect(chat.replay_play).to_be_enabled()
    for row in (("play", "step", "restart"), ("position", "speed")):
        boxes = [chat.page.get_by_test_id(f"replay-{name}").bounding_box() for name in row]
        middles = [box["y"] + box["height"] / 2 for box in boxes]
        assert max(middles) - min(middles) < 2, row
        assert all(one["x"] + one["width"] <= next["x"] for one, next in zip(boxes, boxes[1:], strict=False))
    assert chat.replay_position.bounding_box()["width"] > 120
    assert chat.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_replay_is_stepped_sought_and_begun_again(serve, visit):
    chat = visit(serve(ScriptedModel("abcdef")))
    chat.ask_and_wait("hi")
    options_of(chat)
    chat.open_replay.click()
    expect(chat.replay_mark).to_be_visible()
    chat.replay_step.click()  # the reading
    expect(chat.questions.locator(".message__body")).to_have_text("hi")
    expect(chat.cached_tokens).to_have_attribute("data-value", "6")
    for letters, tokens in (("a", "6"), ("ab", "7"), ("abc", "8")):
        chat.replay_step.click()
        expect(chat.answers.first.locator(".message__body")).to_contain_text(letters)
        expect(chat.cached_tokens).to_have_attribute("data-value", tokens)
    assert chat.text_of(chat.answers.first) == "abc"
    chat.replay_restart.click()
    expect(chat.answers).to_have_count(0)
    expect(chat.cached_tokens).to_have_attribute("data-value", "0")
    chat.replay_position.focus()
    chat.page.keyboard.press("End")
    expect(chat.answers.first).to_have_attribute("data-state", "done")
    assert chat.text_of(chat.answers.first) == "abcdef"
    chat.page.keyboard.press("Home")
    expect(chat.answers).to_have_count(0)


def test_a_replay_that_is_paused_stands_still(serve, visit, tmp_path):
    chat = visit(serve(ScriptedModel("abcdef")))
    chat.ask_and_wait("hi")
    path = saved(chat, tmp_path)
    document = json.loads(path.read_text())
    run = document["messages"][-1]["timeline"][0]
    run["times"][1:] = [HOUR_MS] * (len(run["times"]) - 1)  # it does not come to its end here, however slow the machine is
    run["ended"] += sum(run["times"])
    path.write_text(json.dumps(document))
    chat.import_file.set_input_files(path)
    expect(chat.notice).to_contain_text("Opened")
    chat.page.goto(chat.page.url + "/replay")
    shown = chat.answers.first.locator(".message__body")
    chat.replay_play.click()
    expect(shown).to_have_text(re.compile(r"^\s*a\s"))
    for _ in range(2):
        expect(chat.replay_play).to_have_text("Pause")
        time = chat.replay_time.inner_text()
        expect(chat.replay_time).not_to_have_text(time)  # it goes on
        chat.replay_play.click()
        expect(chat.replay_play).to_have_text("Play")
        time = chat.replay_time.inner_text()
        chat.wait_for_frames()
        assert chat.replay_time.inner_text() == time
        assert chat.text_of(chat.answers.first) == "a"
        chat.replay_play.click()


def test_the_numbers_of_every_step_are_those_that_the_server_told(serve, visit):
    """Token for token: what the script's counting gives is what the engine counted."""
    server = serve(ScriptedModel(CALC, "Fine."))
    chat = visit(server)
    chat.ask_and_wait("One")
    told = chat.frames("cache", "token")
    server.model.hold(1)
    chat.ask("Two")
    for written in range(1, len("Fine.")):
        chat.wait_until(lambda: any(frame["cache"]["last_reply"]["written"] == written
                                    for frame in told if frame["type"] == "cache"))
        server.model.let_go(until=written + 1)
    server.model.let_go()
    chat.wait_for_end()
    live = {frame["cache"]["last_reply"]["written"]: frame["cache"] for frame in told
            if frame["type"] == "cache" and frame["cache"]["last_reply"]["written"]}
    options_of(chat)
    chat.open_replay.click()
    expect(chat.replay_mark).to_be_visible()
    played = chat.page.evaluate("""async () => {
        const { expand } = await import("/static/js/replay_script.js");
        const { script, tokens } = JSON.parse(document.getElementById("page-data").textContent);
        return expand(script, tokens).flatMap((entry) => entry.events).filter((event) => event.type === "cache").map((event) => event.cache);
    }""")
    second = played[[i for i, cache in enumerate(played) if cache["last_reply"]["reused"]][0]:]
    by_written = {cache["last_reply"]["written"]: cache for cache in second}
    assert len(live) > 4
    for written, cache in live.items():
        assert by_written[written]["last_reply"] == cache["last_reply"]
        assert by_written[written]["conversation"] == cache["conversation"]


def test_a_replay_opens_with_the_first_question_and_is_started_and_stepped_by_keyboard(serve, visit):
    chat = visit(serve(ScriptedModel("abcdef")), reduced_motion="reduce")
    chat.ask_and_wait("hi")
    chat.page.goto(chat.page.url + "/replay")
    expect(chat.questions).to_have_count(1)
    expect(chat.answers).to_have_count(0)
    expect(chat.replay_start).to_contain_text("Recorded with Scripted on ")
    chat.wait_for_frames()
    expect(chat.replay_time).to_contain_text("0.0 of")  # nothing begins by itself
    chat.replay_position.focus()
    for key, letters in (("ArrowRight", None), ("ArrowRight", "a"), ("ArrowUp", "ab"), ("ArrowRight", "abc"),
                         ("ArrowLeft", "ab"), ("ArrowDown", "a"), ("ArrowRight", "ab")):
        chat.page.keyboard.press(key)
        if letters:
            expect(chat.answers.first.locator(".message__body")).to_have_text(re.compile(rf"^\s*{letters}\s"))
    expect(chat.replay_start).to_be_hidden()
    expect(chat.token).to_have_count(7)
    expect(chat.cached_tokens).to_have_attribute("data-value", "7")
    chat.replay_restart.click()
    expect(chat.replay_start).to_be_visible()
    expect(chat.page.get_by_test_id("token")).to_have_count(0)
    chat.replay_begin.focus()
    chat.page.keyboard.press("Enter")
    expect(chat.replay_play).to_be_focused()
    expect(chat.state).to_have_text("Replay: this was all")
    assert chat.text_of(chat.answers.first) == "abcdef"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [{}, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_on_the_replay_page(serve, visit, scheme, screen):
    server = serve(ScriptedModel(CALC))
    chat = visit(server, color_scheme=scheme, reduced_motion="reduce", **screen)
    chat.ask_and_wait("Hello")
    chat.page.goto(chat.page.url + "/replay")
    assert_accessible(chat)
    chat.replay_position.focus()
    chat.page.keyboard.press("End")
    expect(chat.answers).to_have_count(1)
    assert_accessible(chat)
    assert chat.page.evaluate("document.documentElement.scrollWidth") <= chat.page.viewport_size["width"]
