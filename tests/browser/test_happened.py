"""What happened to the memory, in sentences, and the edges of the messages: live and after a reload."""

from playwright.sync_api import expect

from tests.scripted import ScriptedModel


def happened(chat):
    return chat.cache_events.locator("[data-slot=events] > li")


def edges(chat):
    return chat.messages.evaluate_all("all => all.map(message => message.dataset.edge)")


def test_each_turn_adds_a_line_the_newest_first_and_older_ones_are_folded(serve, visit):
    chat = visit(serve(ScriptedModel("one", "two", "three")))
    expect(chat.page.locator("#happened")).to_be_hidden()
    for question in ("first", "second", "third", "fourth", "fifth"):
        chat.ask_and_wait(question)
    expect(happened(chat)).to_have_count(3)
    stats = chat.numbers()["last_reply"]
    expect(happened(chat).first).to_contain_text(
        f"Your question was 5 tokens; {stats['reused']} before it were still remembered.")
    expect(chat.page.get_by_text("Your question was 5 tokens. With the beginning")).to_be_hidden()
    chat.page.get_by_text("Earlier: 2").click()
    expect(chat.page.get_by_text("Your question was 5 tokens. With the beginning")).to_be_visible()
    shown = chat.cache_events.inner_text()
    chat.reload()
    chat.page.get_by_text("Earlier: 2").click()
    expect(chat.cache_events).to_have_text(shown, use_inner_text=True)


def test_the_edges_say_what_was_remembered_and_what_was_read_and_outlive_a_reload(serve, visit):
    server = serve(ScriptedModel("one", "two", "three"), rows=1)
    chat = visit(server)
    chat.ask_and_wait("first")
    chat.ask_and_wait("second")

    def expect_edges(*wanted):
        expect(chat.messages).to_have_count(len(wanted))
        for message, edge in zip(chat.messages.all(), wanted):
            expect(message).to_have_attribute("data-edge", edge)
        chat.reload()
        assert edges(chat) == list(wanted)

    expect_edges("reused", "reused", "read", "written")
    expect(chat.questions.first.get_by_role("heading")).to_have_text("You (remembered)")
    expect(chat.answers.last.get_by_role("heading")).to_have_text("The model (written)")
    visit(server).ask_and_wait("Another chat needs the room")
    expect_edges("none", "none", "none", "none")
    expect(chat.questions.first.get_by_role("heading")).to_have_text("You (not remembered)")
    chat.ask_and_wait("third")
    expect_edges("read", "read", "read", "read", "read", "written")
    expect(happened(chat).first).to_contain_text("Too many chats at once: this one was forgotten, and has been read again")
    old = chat.answers.last.get_attribute("data-id")
    chat.questions.nth(1).hover()
    chat.edit.nth(1).click()
    chat.edit_text.fill("2nd")
    chat.edit_send.click()
    chat.confirm_yes.click()
    expect(chat.page.locator(f"[data-testid=message][data-id='{old}']")).to_have_count(0)
    chat.wait_for_end()
    expect(happened(chat).first).to_contain_text("You changed your second message: ")
    expect_edges("reused", "reused", "read", "written")


def test_the_edges_have_a_legend_in_words(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("first")
    expect(chat.page.locator(".edges")).to_have_text("Edges in the chat: remembered read written not remembered",
                                                     use_inner_text=True)


def test_another_page_of_this_browser_lists_a_new_chat_its_new_name_and_its_end_at_once(serve, visit):
    server = serve()
    chat = visit(server)
    other = visit(server, like=chat)
    stranger = visit(server)
    chat.page.bring_to_front()  # one behind another is drawn once a second
    chat.ask_and_wait("About otters")
    listed = other.page.locator(".chat-item")
    expect(listed).to_contain_text(["About otters"])
    expect(other.page).to_have_url(server.url + "/")
    expect(other.messages).to_have_count(0)
    chat.page.locator(".chat-item").hover()
    chat.chat_options.click()
    chat.rename_title.fill("Of seals")
    chat.rename.click()
    expect(listed).to_contain_text(["Of seals"])
    other.composer.fill("Still here")
    chat.page.locator(".chat-item").hover()
    chat.chat_options.click()
    chat.delete.click()
    chat.confirm_yes.click()
    expect(listed).to_have_count(0)
    expect(other.composer).to_have_value("Still here")
    expect(stranger.page.locator(".chat-item")).to_have_count(0)
