"""A question that is long is folded, with scripts and without them."""

from playwright.sync_api import expect

LONG = "\n".join(f"line {number}" for number in range(60))
HEIGHT = "element => element.getBoundingClientRect().height"


def test_a_long_question_is_folded_live_and_after_a_reload_and_can_be_shown_whole(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait(LONG)
    for _ in ("live", "after a reload"):
        text = chat.questions.first.locator(".message__text")
        folded = text.evaluate(HEIGHT)
        chat.show_all.get_by_text("Show all").click()
        expect(chat.show_all.get_by_text("Show less")).to_be_visible()
        assert text.evaluate(HEIGHT) > 2 * folded
        assert text.inner_text() == LONG
        chat.show_all.get_by_text("Show less").click()
        assert text.evaluate(HEIGHT) == folded
        chat.reload()
    chat.ask_and_wait("short")
    expect(chat.questions.last.get_by_test_id("show-all")).to_be_hidden()


def test_a_long_question_can_be_shown_whole_without_javascript(serve, visit, browser):
    chat = visit(serve())
    chat.ask_and_wait(LONG)
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies(chat.page.context.cookies())
    page = context.new_page()
    page.goto(chat.page.url)
    text = page.locator(".message__text")
    folded = text.bounding_box()["height"]
    page.get_by_text("Show all").click()
    assert text.bounding_box()["height"] > 2 * folded
    context.close()
