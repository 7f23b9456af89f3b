"""The tour: eight steps over the visitor's own chat, each seen by itself when it was done, none of them in the way."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE, RunningServer
from tests.browser.test_access import assert_accessible
from tests.scripted import ByteTokenizer, ScriptedModel

TITLES = ["Ask something", "Reading, then writing", "Ask again", "Let it calculate", "Change the beginning",
          "Without the cache", "The race", "Forget"]
TAKE_UP_AT = "at => localStorage.setItem('tour', JSON.stringify({isOpen: true, at}))"


class WithoutCalculator(ByteTokenizer):
    def encode_special(self, name):
        if "python" in name or "output" in name:
            raise KeyError(name)
        return super().encode_special(name)


def at_step(chat, at: int) -> None:
    chat.page.evaluate(TAKE_UP_AT, at)
    chat.reload()
    expect(chat.tour_title).to_have_text(TITLES[at])


def test_what_the_tour_suggests_is_asked_for_one_answer_that_is_not_left_to_chance(serve, visit):
    chat = visit(serve(ScriptedModel()))
    chat.settings.click()
    chat.page.locator("#set-temperature").fill("1.5")
    chat.page.locator("#set-n").fill("2")
    chat.settings_save.click()
    sent = chat.frames("send")
    chat.tour_start.click()
    chat.tour_suggest.click()
    chat.wait_for_end()
    assert sent[0]["settings"]["temperature"] == 0 and "n" not in sent[0]["settings"]
    chat.composer.fill("A question of my own")
    chat.send.click()
    chat.wait_until(lambda: len(sent) == 2)
    assert sent[1]["settings"]["temperature"] == 1.5 and sent[1]["settings"]["n"] == 2


def test_each_step_is_done_by_doing_it_and_seen_by_itself(serve, visit):
    answers = {"What is 123 × 456?": "<|python_start|>123*456<|python_end|> it is."}
    chat = visit(serve(ScriptedModel(lambda question: answers.get(question, "An answer."))))
    chat.tour_start.click()
    expect(chat.tour_title).to_have_text(TITLES[0])
    expect(chat.tour_title).to_be_focused()
    expect(chat.page.locator("#composer-form")).to_contain_class("is-pointed")
    chat.ask_and_wait("A question of my own")
    expect(chat.tour_title).to_have_text(TITLES[1])
    reply = chat.numbers()
    expect(chat.tour_text).to_contain_text(f"It read {reply['last_reply']['read']} tokens in one go and wrote "
                                           f"{reply['last_reply']['written']}, one after the other. "
                                           f"{reply['conversation']['tokens']} are remembered")
    chat.tour_next.click()
    expect(chat.page.locator(".tile[data-origin=reused]")).to_contain_class("is-pointed")
    chat.tour_suggest.click()
    expect(chat.tour_text).to_contain_text(f"{reply['conversation']['tokens']} tokens were reused")
    chat.tour_next.click()
    chat.tour_suggest.click()
    expect(chat.tour_text).to_contain_text("tokens were put in")
    chat.tour_next.click()
    expect(chat.questions.first).to_contain_class("is-pointed")
    chat.tour_suggest.click()
    expect(chat.edit_text).to_be_focused()
    expect(chat.edit_text).to_have_value("What is the capital of England?")
    chat.edit_send.click()
    chat.confirm_yes.click()
    expect(chat.tour_text).to_contain_text("tokens from before the change were kept")
    chat.tour_next.click()
    expect(chat.tour_suggest).to_be_hidden()
    chat.use_cache.uncheck()
    chat.tour_suggest.click()
    expect(chat.tour_text).to_contain_text("With the cache, at most")
    chat.use_cache.check()
    chat.tour_next.click()
    chat.tour_race.click()
    expect(chat.tour_text).to_contain_text("start the race")
    expect(chat.race_start).to_contain_class("is-pointed")
    chat.race_start.click()
    expect(chat.tour_text).to_contain_text("times as fast")
    chat.tour_next.click()
    chat.tour_chat.click()
    expect(chat.questions.first).to_contain_text("What is the capital of England?")
    expect(chat.tour_title).to_have_text(TITLES[7])
    chat.tour_forget.click()
    chat.forget_yes.click()
    expect(chat.page.locator("#welcome")).to_be_visible()
    expect(chat.tour_text).to_contain_text("Gone: your chats")
    expect(chat.notice).to_be_hidden()
    chat.tour_next.click()
    expect(chat.tour_title).to_have_text("That was the tour")


def test_in_a_used_chat_no_step_is_told_before_it_is_done(serve, visit):
    answers = {"First": "<|python_start|>1+1<|python_end|> it is."}
    chat = visit(serve(ScriptedModel(lambda question: answers.get(question, "An answer."))))
    chat.ask_and_wait("First")
    chat.ask_and_wait("Second")
    chat.tour_open.click()
    chat.ask_and_wait("Third")  # remembers both others
    expect(chat.tour_text).to_contain_text("tokens in one go and wrote")
    chat.tour_next.click()
    expect(chat.tour_text).to_contain_text("Ask a second question in this chat.")
    before = chat.numbers()["conversation"]["tokens"]
    chat.tour_suggest.click()
    expect(chat.tour_text).to_contain_text(f"{before} tokens were reused")
    chat.tour_next.click()
    expect(chat.tour_text).to_contain_text("Ask for a calculation.")


def test_an_answer_that_began_in_the_step_before_says_nothing_of_this_one(serve, visit):
    server = serve(ScriptedModel("Yes.", "An answer."))
    chat = visit(server)
    chat.ask_and_wait("First")
    at_step(chat, 1)
    server.model.hold(after_tokens=3)
    chat.ask("Second")
    chat.tour_skip.click()
    server.model.let_go()
    chat.wait_for_end()
    expect(chat.tour_title).to_have_text(TITLES[2])
    expect(chat.tour_text).to_contain_text("Ask a second question in this chat.")
    chat.reload()
    expect(chat.tour_text).to_contain_text("Ask a second question in this chat.")


@pytest.mark.parametrize("is_away", [False, True], ids=["reloaded meanwhile", "back at the end"])
def test_an_answer_counts_that_was_finished_after_the_page_was_left(serve, visit, is_away):
    server = serve(ScriptedModel("Yes.", "<|python_start|>6*7<|python_end|> it is."))
    chat = visit(server)
    chat.ask_and_wait("First")
    at_step(chat, 3)
    server.model.hold(after_tokens=11)  # the result was put in, and the page that comes back hears nothing of that
    chat.tour_suggest.click()
    expect(chat.tool_result).to_be_visible()
    other = visit(server, like=chat)
    if is_away:
        path = chat.page.evaluate("location.pathname")
        chat.page.goto(server.url + "/memory")
        other.page.goto(server.url + path)
        server.model.let_go()
        other.wait_for_end()
        chat.page.go_back()
    else:
        chat.reload()
        expect(chat.tour_text).to_contain_text("Ask for a calculation.")
        server.model.let_go()
    expect(chat.tour_text).to_contain_text("tokens were put in")
    chat.tour_next.click()
    expect(chat.tour_title).to_have_text(TITLES[4])
    chat.reload()
    expect(chat.tour_text).to_contain_text("Edit your first question")


def test_a_race_of_before_is_not_the_one_of_the_tour(serve, visit):
    chat = visit(serve(ScriptedModel("Once upon a time.")), "/race")
    chat.race_start.click()
    expect(chat.race_narrator).to_have_attribute("data-state", "done")
    at_step(chat, 6)
    expect(chat.race_narrator).to_have_attribute("data-state", "done")  # the race of before is there again
    chat.race_replay.click()
    expect(chat.race_narrator).to_have_attribute("data-state", "done")
    expect(chat.tour_text).to_contain_text("start the race")
    chat.race_start.click()
    expect(chat.tour_text).to_contain_text("times as fast")


def test_it_is_left_taken_up_and_every_step_can_be_skipped(serve, visit):
    chat = visit(serve())
    chat.tour_start.click()
    for title in TITLES[:3]:
        expect(chat.tour_title).to_have_text(title)
        chat.tour_skip.click()
    chat.tour_close.click()
    expect(chat.tour).to_be_hidden()
    chat.reload()
    expect(chat.send).to_be_enabled()
    expect(chat.tour).to_be_hidden()
    chat.tour_open.click()
    for title in TITLES[3:]:
        expect(chat.tour_title).to_have_text(title)
        chat.tour_skip.click()
    expect(chat.tour_title).to_have_text("That was the tour")
    chat.tour_again.click()
    expect(chat.tour_title).to_have_text(TITLES[0])


def test_on_a_phone_it_begins_in_the_list_of_chats_and_is_seen_at_once(serve, visit):
    chat = visit(serve(), **PHONE)
    chat.ask_and_wait("Hello")
    chat.page.get_by_role("button", name="Open the list of chats").click()
    chat.tour_open.click()
    expect(chat.tour_title).to_be_focused()
    chat.tour_suggest.click()
    expect(chat.answers).to_have_count(2)


def test_a_model_that_does_not_calculate_is_not_made_out_to(serve, visit):
    chat = visit(serve())
    at_step(chat, 3)
    chat.tour_suggest.click()
    expect(chat.tour_text).to_contain_text("It answered without the calculator")
    expect(chat.tour_skip).to_be_visible()


def test_a_model_without_a_calculator_is_told_of_before_it_is_asked(tmp_path, visit):
    server = RunningServer(tmp_path, ScriptedModel("Hello."), WithoutCalculator(), {})
    try:
        chat = visit(server)
        chat.ask_and_wait("Hello")
        at_step(chat, 3)
        expect(chat.tour_text).to_contain_text("has no calculator")
        expect(chat.tour_suggest).to_be_hidden()
    finally:
        server.stop()


def test_the_deletion_of_the_chat_is_a_way_to_forget_it(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("Hello")
    at_step(chat, 7)
    chat.page.locator(".chat-item").hover()
    chat.chat_options.click()
    chat.delete.click()
    chat.confirm_yes.click()
    expect(chat.tour_text).to_contain_text("Gone: your chats")


def test_the_ready_change_takes_the_place_of_one_that_was_begun(serve, visit):
    chat = visit(serve())
    at_step(chat, 4)
    expect(chat.tour_suggest).to_be_hidden()  # there is nothing to be changed
    chat.ask_and_wait("Hello")
    chat.questions.first.get_by_test_id("edit").click()
    chat.edit_text.fill("Half a")
    chat.tour_suggest.click()
    expect(chat.edit_text).to_have_value("What is the capital of England?")
    expect(chat.edit_text).to_be_focused()


def test_it_goes_along_to_the_page_of_what_if_and_back(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("Hello")
    path = chat.page.evaluate("location.pathname")
    at_step(chat, 2)
    chat.page.goto(chat.server.url + "/memory")
    expect(chat.tour_title).to_have_text(TITLES[2])
    assert_accessible(chat)
    chat.tour_skip.click()
    expect(chat.tour_title).to_have_text(TITLES[3])
    chat.tour_chat.click()
    expect(chat.tour_title).to_have_text(TITLES[3])
    assert chat.page.url == chat.server.url + path
