"""What can be done with a message: copying, asking again, repeating exactly, editing."""

import re

import pytest
from playwright.sync_api import expect

from tests.scripted import ScriptedModel

COPIED = "() => navigator.clipboard.readText()"


def test_an_answer_and_its_code_are_copied(serve, visit):
    chat = visit(serve(ScriptedModel("Here:\n\n```python\nx = 1\n```\n\nSo <|python_start|>2*3<|python_end|>.")),
                 permissions=["clipboard-read", "clipboard-write"])
    chat.ask_and_wait("Show")
    chat.click_and_hear(chat.answers.last.get_by_test_id("copy"), "Copied")
    assert chat.page.evaluate(COPIED) == "Here:\n\nx = 1\n\nSo\n\n2*3 = 6\n\n."
    chat.click_and_hear(chat.copy_code, "Copied")
    assert chat.page.evaluate(COPIED).strip() == "x = 1"


def test_copying_works_without_the_clipboard_of_secure_pages(serve, visit):
    chat = visit(serve())
    chat.page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    chat.reload()
    chat.ask_and_wait("Hello")
    chat.page.evaluate("""() => document.addEventListener("copy", () => {
        window.__copied = document.activeElement.value;
    })""")
    chat.click_and_hear(chat.answers.last.get_by_test_id("copy"), "Copied")
    assert chat.page.evaluate("window.__copied") == "Hello there."


def test_an_answer_is_written_again_in_its_place(serve, visit):
    server = serve(ScriptedModel("Hello there."))
    chat = visit(server)
    chat.ask_and_wait("First")
    old = chat.answers.last.get_attribute("data-id")
    chat.regenerate.click()
    assert chat.wait_for_another_answer(old) == "Hello there."
    assert chat.messages.count() == 2
    assert chat.number("reused-tokens") > 0


def test_answering_an_older_question_again_asks_first_and_cuts_what_followed(serve, visit):
    chat = visit(serve(ScriptedModel("One.", "Two.")))
    chat.ask_and_wait("First")
    chat.ask_and_wait("Second")
    chat.answers.first.hover()
    chat.answers.first.get_by_test_id("regenerate").click()
    expect(chat.confirm).to_contain_text("2 messages")
    chat.page.keyboard.press("Escape")
    expect(chat.messages).to_have_count(4)
    chat.answers.first.get_by_test_id("regenerate").click()
    chat.confirm_yes.click()
    expect(chat.messages).to_have_count(2)
    chat.wait_for_end()
    chat.reload()
    assert chat.messages.count() == 2
    assert chat.text_of(chat.answers.last) == "One."


def test_an_edited_question_replaces_what_follows_and_reuses_what_came_before(serve, visit):
    chat = visit(serve(ScriptedModel(lambda question: f"You said {question}.")))
    for question in ("one", "two", "three"):
        chat.ask_and_wait(question)
    cached = chat.number("cached-tokens")
    chat.questions.nth(1).hover()
    chat.questions.nth(1).get_by_test_id("edit").click()
    expect(chat.edit_text).to_be_focused()
    chat.edit_text.fill("TWO")
    chat.edit_text.press("Enter")
    expect(chat.confirm).to_contain_text("3 messages")
    chat.confirm_yes.click()
    expect(chat.questions).to_have_count(2)
    assert chat.wait_for_end() == "You said TWO."
    reused = chat.number("reused-tokens")
    assert 0 < reused < cached
    chat.reload()
    assert [q.inner_text() for q in chat.page.locator(".message__text").all()] == ["one", "TWO"]
    assert chat.number("reused-tokens") == reused


def test_an_edit_is_left_with_escape_and_refused_while_an_answer_is_written(serve, visit):
    server = serve(ScriptedModel("word " * 30))
    server.model.hold(20)
    chat = visit(server)
    chat.ask("one")
    chat.questions.first.hover()
    chat.questions.first.get_by_test_id("edit").click()
    chat.edit_text.fill("two")
    chat.edit_send.click()
    expect(chat.notice).to_be_visible()
    assert chat.edit_text.input_value() == "two"
    chat.edit_text.press("Escape")
    expect(chat.edit_text).to_have_count(0)
    assert chat.questions.first.locator(".message__text").inner_text() == "one"
    server.model.let_go()
    chat.wait_for_end()


def test_an_edited_question_that_the_server_refuses_stays_in_its_box(serve, visit):
    chat = visit(serve(context=200))
    chat.ask_and_wait("one")
    begin_edit(chat, "far too long for this memory " * 20)
    chat.edit_send.click()
    expect(chat.notice).to_contain_text("too long")
    assert chat.edit_text.input_value() == "far too long for this memory " * 20
    chat.edit_text.fill("short")
    chat.edit_send.click()
    expect(chat.edit_text).to_have_count(0)
    expect(chat.questions.first.locator(".message__text")).to_have_text("short")
    chat.wait_for_end()


def test_an_edit_is_busy_until_the_server_has_it_and_can_be_taken_back(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("one")
    chat.page.route_web_socket("**/ws?*", lambda socket: None)  # a server that never answers
    chat.reload()
    begin_edit(chat, "two")
    chat.edit_send.click()
    expect(chat.edit_send).to_be_disabled()
    chat.edit_text.press("Escape")
    assert chat.edit_text.input_value() == "two"


def test_an_edit_asks_before_later_turns_are_removed(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("one")
    chat.ask_and_wait("two")
    begin_edit(chat, "ONE")
    chat.edit_send.click()
    expect(chat.confirm).to_contain_text("3 messages")
    chat.page.keyboard.press("Escape")
    expect(chat.edit_send).to_be_enabled()
    assert chat.edit_text.input_value() == "ONE" and chat.messages.count() == 4
    chat.edit_send.click()
    chat.confirm_yes.click()
    expect(chat.messages).to_have_count(2)
    chat.wait_for_end()


def test_an_unchanged_edit_only_closes_its_box(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("one")
    chat.ask_and_wait("two")
    begin_edit(chat, "one")
    chat.edit_send.click()
    expect(chat.edit_text).to_have_count(0)
    expect(chat.confirm).to_be_hidden()
    assert chat.messages.count() == 4


def test_an_edit_whose_question_is_removed_in_another_tab_comes_into_the_box(serve, visit):
    server = serve()
    chat = visit(server)
    chat.ask_and_wait("one")
    chat.ask_and_wait("two")
    begin_edit(chat, "A long thought", question=1)
    other = visit(server, chat.page.url.removeprefix(server.url), like=chat)
    other.answers.first.hover()
    other.answers.first.get_by_test_id("regenerate").click()
    other.confirm_yes.click()
    expect(chat.questions).to_have_count(1)
    expect(chat.composer).to_have_value("A long thought")
    expect(chat.notice).to_contain_text("is gone from this chat")


def begin_edit(chat, text, question=0):
    chat.questions.nth(question).hover()
    chat.questions.nth(question).get_by_test_id("edit").click()
    chat.edit_text.fill(text)


def test_where_turns_were_left_out_is_said_right_above_the_line(serve, visit):
    chat = visit(serve(ScriptedModel(lambda question: "answer " + question[:3]), context=64))
    for question in ("one", "two", "three" * 4):
        chat.ask_and_wait(question)
    expect(chat.answers.nth(0)).to_have_class(re.compile("is-left-out"))
    said = chat.answers.nth(0).get_by_text("Left out from here up").bounding_box()
    stats = chat.answers.nth(0).locator(".message__stats").bounding_box()
    line = chat.questions.nth(1).bounding_box()["y"]
    assert stats["y"] + stats["height"] <= said["y"]
    assert 0 <= line - (said["y"] + said["height"]) < 8


def test_repeat_exactly_sends_seed_and_settings_of_that_answer(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("First")
    sent = chat.frames("regenerate", "done")
    seed = int(chat.repeat.inner_text().split()[1])
    old = chat.answers.last.get_attribute("data-id")
    chat.repeat.click()
    chat.wait_for_another_answer(old)
    assert sent[0]["settings"]["seed"] == seed
    assert sent[-1]["stats"]["seed"] == seed
    assert f"seed {seed}" in chat.answers.last.inner_text()


@pytest.mark.parametrize("reason, said", [("length", "word " * 30), ("error", RuntimeError("made to fail"))])
def test_an_answer_that_ended_early_says_why_live_and_after_a_reload(serve, visit, reason, said):
    model = ScriptedModel(said)
    chat = visit(serve(model, max_tokens=10))
    chat.ask("Go")
    for _ in ("live", "after a reload"):
        expect(chat.answers.last).to_have_attribute("data-state", reason)
        expect(chat.answers.last.locator(".message__end")).not_to_be_empty()
        chat.reload()
