"""The ready stories: one click begins one, one click goes on with it, and they always take the likeliest token."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.test_access import assert_accessible
from tests.scripted import ScriptedModel

QUESTIONS = {"remembers": ["capital of France", "of Japan", "of Germany"],
             "calculator": ["123 × 456", "1000 / 8"],
             "long": ["story about an owl", "name of the owl"],
             "change": ["otter", "a fox", "whale"]}


def begin(chat, name: str) -> None:
    chat.page.locator(f"[data-story={name}]").click()
    expect(chat.answers).to_have_count(1)
    chat.wait_for_end()


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_story_goes_its_way_with_the_likeliest_tokens_alone(serve, visit, name):
    chat = visit(serve(ScriptedModel("Something.")))
    chat.page.evaluate("localStorage.setItem('settings', JSON.stringify({n: 3, temperature: 1.5, use_cache: false}))")
    sent = chat.frames("send", "edit")  # reloads
    begin(chat, name)
    for number, text in enumerate(QUESTIONS[name][1:], start=2):
        old = chat.answers.last.get_attribute("data-id")
        expect(chat.story_next).to_contain_text(text)
        expect(chat.story_next).to_have_attribute("aria-disabled", "false")
        chat.story_next.click()
        chat.wait_for_another_answer(old) if name == "change" and number == 3 else expect(chat.answers).to_have_count(number)
        chat.wait_for_end()
    expect(chat.story_look).to_contain_text("That was the story.")
    expect(chat.story_next).to_be_hidden()
    assert [text in frame["text"] for text, frame in zip(QUESTIONS[name], sent, strict=True)] == [True] * len(sent)
    assert all(frame["settings"]["temperature"] == 0 and "n" not in frame["settings"] for frame in sent)
    assert all(frame["settings"]["use_cache"] for frame in sent)  # whatever the visitor has set: it is of the memory
    assert [frame["type"] for frame in sent] == ["send", "send", "edit" if name == "change" else "send"][:len(sent)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_on_a_phone_all_stories_and_the_tour_are_seen_at_once(serve, visit, language):
    server = serve(ScriptedModel("Hello.", name="SmolLM2-135M-Instruct"))
    chat = visit(server, f"/?language={language}", **PHONE)
    expect(chat.send).to_be_enabled()
    dock = chat.page.locator(".dock").bounding_box()["y"]
    for each in (*chat.story.all(), chat.tour_start):
        box = each.bounding_box()
        assert box["y"] > 0 and box["y"] + box["height"] < dock and box["height"] >= 44
    assert chat.story.count() == 4


def test_what_it_says_of_the_memory_is_what_the_engine_counted(serve, visit):
    chat = visit(serve(ScriptedModel("Paris.", "Many.", "The Seine.")))
    begin(chat, "remembers")
    cached = chat.numbers()["conversation"]["tokens"]
    chat.story_next.click()
    expect(chat.answers).to_have_count(2)
    chat.wait_for_end()
    expect(chat.story_look).to_have_text(f"{cached} tokens were still remembered: only "
                                         f"{chat.numbers()['last_reply']['read']} were read.")
    chat.story_next.click()
    expect(chat.story_look).to_contain_text("though ")
    chat.wait_for_end()
    numbers = chat.numbers()
    expect(chat.story_look).to_contain_text(f"only {numbers['last_reply']['read']} were read, "
                                            f"though {numbers['conversation']['tokens']} are remembered")


def test_in_chinese_no_space_stands_behind_a_full_stop(serve, visit):
    chat = visit(serve(ScriptedModel("Paris.", "Many.")), locale="zh-CN")
    begin(chat, "calculator")
    chat.story_next.click()
    expect(chat.answers).to_have_count(2)
    chat.wait_for_end()
    expect(chat.story_next).to_be_hidden()
    expect(chat.story_look).to_have_text(re.compile("。.+。$"))
    assert not re.search(r"。\s", chat.story_look.text_content())


def test_a_change_at_the_beginning_replaces_all_that_stands_behind_it(serve, visit):
    chat = visit(serve(ScriptedModel("Something.")))
    begin(chat, "change")
    chat.story_next.click()
    expect(chat.answers).to_have_count(2)
    chat.wait_for_end()
    chat.story_next.click()
    expect(chat.questions).to_have_count(1)
    expect(chat.questions).to_contain_text("whale")
    expect(chat.story_look).to_contain_text("before the change could be kept")


def test_a_model_that_calculates_in_its_head_is_not_praised_for_the_calculator(serve, visit):
    chat = visit(serve(ScriptedModel("It is 7.", "<|python_start|>1000/8<|python_end|> it is.")))
    begin(chat, "calculator")
    expect(chat.story_look).to_contain_text("without the calculator: do not trust the figure")
    chat.story_next.click()
    expect(chat.story_look).to_contain_text("the results of the calculator among them")


def test_a_story_outlives_a_reload_and_stays_with_its_chat(serve, visit):
    chat = visit(serve(ScriptedModel("Something.")))
    begin(chat, "remembers")
    expect(chat.story_look).to_contain_text("read in one go")
    said = chat.story_bar.inner_text()
    chat.reload()
    expect(chat.story_bar).to_have_text(said, use_inner_text=True)
    chat.story_close.click()
    expect(chat.story_bar).to_be_hidden()
    chat.reload()
    expect(chat.send).to_be_enabled()
    expect(chat.story_bar).to_be_hidden()


def test_a_story_that_was_told_makes_room_for_the_persons_own_question(serve, visit):
    chat = visit(serve(ScriptedModel("Something.")))
    begin(chat, "calculator")
    chat.story_next.click()
    expect(chat.story_look).to_contain_text("That was the story.")
    chat.ask("And one of my own")
    expect(chat.story_look).to_be_hidden()


def test_one_guide_at_a_time_the_tour_takes_the_place_of_a_story(serve, visit):
    chat = visit(serve(ScriptedModel("Something.")))
    begin(chat, "remembers")
    expect(chat.story_look).to_be_visible()
    chat.page.locator("[data-tour-start]:visible").first.click()
    expect(chat.page.get_by_test_id("tour")).to_be_visible()
    expect(chat.story_look).to_be_hidden()


def test_a_story_takes_the_place_of_the_tour(serve, visit):
    chat = visit(serve(ScriptedModel("Something.")))
    chat.page.locator("[data-tour-start]:visible").first.click()
    expect(chat.page.get_by_test_id("tour")).to_be_visible()
    begin(chat, "remembers")
    expect(chat.story_look).to_be_visible()
    expect(chat.page.get_by_test_id("tour")).to_be_hidden()


def test_another_chat_is_without_the_story(serve, visit):
    chat = visit(serve(ScriptedModel("Something.")))
    begin(chat, "long")
    chat.begin_new_chat()
    expect(chat.story_bar).to_be_hidden()
    expect(chat.story).to_have_count(4)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_story_and_in_slow_motion(serve, visit, scheme):
    chat = visit(serve(ScriptedModel("Something.")), color_scheme=scheme, reduced_motion="reduce")
    begin(chat, "remembers")
    chat.slow_motion.click()
    assert_accessible(chat)
    chat.story_next.click()
    expect(chat.slow_ahead).to_contain_text("the model has finished")
    chat.slow_next.click()
    chat.slow_next.click()
    assert_accessible(chat)


def test_without_scripts_nothing_stands_there_that_would_do_nothing(serve, visit):
    page = visit(serve(), java_script_enabled=False).page
    expect(page.locator("#welcome")).to_be_visible()
    for name in ("story", "tour-start", "open-trace"):
        expect(page.get_by_test_id(name).first).to_be_hidden()
