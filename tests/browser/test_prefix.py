"""Behind a proxy under a prefix, everything stays under it."""

from playwright.sync_api import expect


def test_page_files_socket_and_addresses_stay_under_the_prefix(serve, visit):
    chat = visit(serve(prefix="/chat"), "/chat/")
    asked_for = []
    chat.page.on("request", lambda request: asked_for.append(request.url))
    chat.page.on("websocket", lambda socket: asked_for.append(socket.url.replace("ws:", "http:")))
    chat.reload()
    chat.ask_and_wait("Hello")
    chat.reload()
    expect(chat.answers).to_have_count(1)
    chat.begin_new_chat()
    expect(chat.page.locator("#welcome")).to_be_visible()
    assert asked_for and all(url.startswith(chat.server.url + "/chat/") for url in asked_for)
    chat.forget.click()
    with chat.page.expect_navigation():
        chat.forget_yes.click()
    expect(chat.page.locator("#welcome")).to_be_visible()
    assert chat.server.url + "/chat/api/forget" in asked_for
    assert all(url.startswith(chat.server.url + "/chat/") for url in asked_for)
