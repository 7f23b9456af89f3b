"""The tour's card and its outline: in nobody's way, and open to everybody."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.test_access import assert_accessible
from tests.browser.test_tour import TITLES, at_step

COVERS = """() => {
    const card = document.getElementById("tour").getBoundingClientRect();
    const it = document.querySelector(".is-pointed")?.getBoundingClientRect();
    return !it ? "nothing is pointed at" : card.left < it.right && it.left < card.right
        && card.top < it.bottom && it.top < card.bottom;
}"""


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["desktop", "phone"])
def test_the_outline_of_a_question_does_not_reach_into_the_answer(serve, visit, screen):
    chat = visit(serve(), **screen)
    chat.ask_and_wait("Hello")
    at_step(chat, 4)
    expect(chat.questions.first).to_contain_class("is-pointed")
    drawn = chat.page.evaluate("""() => [...document.querySelectorAll("#messages *")].flatMap((element) => {
        const { outlineStyle, outlineWidth, outlineOffset } = getComputedStyle(element);
        return outlineStyle === "none" || !parseFloat(outlineWidth) ? []
            : [element.getBoundingClientRect().bottom + parseFloat(outlineWidth) + parseFloat(outlineOffset)];
    })""")
    assert len(drawn) == 1
    assert drawn[0] <= chat.answers.first.bounding_box()["y"]


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["desktop", "phone"])
def test_no_step_covers_what_it_speaks_of(serve, visit, screen):
    chat = visit(serve(), **screen)
    chat.ask_and_wait("Hello")
    at_step(chat, 0)
    for title in TITLES:
        expect(chat.tour_title).to_have_text(title)
        if title != "The race":  # that is on another page
            assert chat.page.evaluate(COVERS) is False, title
        chat.tour_skip.click()
    assert chat.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_tour(serve, visit, scheme):
    chat = visit(serve(), color_scheme=scheme, reduced_motion="reduce")
    chat.ask_and_wait("Hello")
    at_step(chat, 2)
    assert_accessible(chat)
    chat.ask_and_wait("Once more")
    expect(chat.tour_next).to_be_visible()
    assert_accessible(chat)
    at_step(chat, 6)
    chat.tour_race.click()
    expect(chat.tour_text).to_contain_text("start the race")
    assert_accessible(chat)
