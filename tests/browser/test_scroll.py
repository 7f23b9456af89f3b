"""Following the newest line, and not being pulled away from an older one."""

from playwright.sync_api import expect

from tests.scripted import ScriptedModel

LONG = "".join(f"Line {n}.\n\n" for n in range(120))


AT_REST = """async box => {
    let top = box.scrollTop;
    for (let frames = 0; frames < 30; frames += 1) {
        await new Promise(requestAnimationFrame);
        if (box.scrollTop !== top) frames = 0;
        top = box.scrollTop;
    }
    return top;
}"""


def distance_below(chat) -> float:
    return chat.transcript_box.evaluate("e => e.scrollHeight - e.clientHeight - e.scrollTop")


def test_a_reader_who_scrolled_up_stays_there_until_they_want_the_newest(serve, visit):
    server = serve(ScriptedModel(LONG))
    chat = visit(server)
    server.model.hold(500)
    chat.ask("Write much")
    expect(chat.answers.last).to_contain_text("Line 40.")
    chat.wait_until(lambda: distance_below(chat) < 4)
    chat.transcript_box.hover()
    chat.page.mouse.wheel(0, -400)
    expect(chat.to_newest).to_be_visible()
    before = chat.transcript_box.evaluate(AT_REST)
    server.model.let_go()
    chat.wait_for_end()
    assert abs(chat.transcript_box.evaluate("e => e.scrollTop") - before) < 4
    assert distance_below(chat) > 400
    chat.to_newest.click()
    expect(chat.to_newest).to_be_hidden()
    assert distance_below(chat) < 4


def test_scrolling_back_down_follows_again(serve, visit):
    server = serve(ScriptedModel(LONG))
    chat = visit(server)
    server.model.hold(500)
    chat.ask("Write much")
    expect(chat.answers.last).to_contain_text("Line 40.")
    chat.transcript_box.hover()
    chat.page.mouse.wheel(0, -300)
    expect(chat.to_newest).to_be_visible()
    chat.page.mouse.wheel(0, 3000)
    expect(chat.to_newest).to_be_hidden()
    chat.transcript_box.evaluate(AT_REST)
    server.model.let_go()
    chat.wait_for_end()
    chat.wait_until(lambda: distance_below(chat) < 4)


def test_another_chat_begins_at_its_newest_line(serve, visit):
    server = serve(ScriptedModel(LONG))
    chat = visit(server)
    chat.ask_and_wait("Write much")
    chat.begin_new_chat()
    chat.ask_and_wait("Write much again")
    other = chat.page.locator(".chat-item__link", has_text="Write much").last
    address = other.get_attribute("href")
    other.click()
    chat.page.wait_for_url(f"**{address}")
    expect(chat.answers.last).to_contain_text("Line 119.")
    chat.wait_until(lambda: distance_below(chat) < 4)
