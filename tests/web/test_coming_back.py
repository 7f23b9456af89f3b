"""Coming back: after a reload, a break of the line or a restart nothing is missing or told twice (T15)."""

from tests.scripted import ScriptedModel
from tests.web.talk import Browser, wait_until


def test_a_reply_goes_on_while_its_page_is_reloaded(serve):
    """T15: reload after some tokens, inside a tool block; nothing is missing or told twice."""
    text = "Before it. <|python_start|>2*21<|python_end|> After it."
    model = ScriptedModel(text)
    server = serve(model)
    browser = Browser(server)
    socket = browser.socket()
    model.hold(15)  # inside the expression
    socket.send("hi")
    wait_until(model.holding.is_set)
    socket.until("tool_call")
    socket.kill()
    page = wait_until(lambda: (p := browser.page(socket.conversation)) and p["busy"] and p)
    html = browser.get(f"/c/{socket.conversation}").text
    assert "<p>Before it.</p>" in html and 'data-state="writing"' in html
    again = browser.socket()
    again.say("open", conversation=socket.conversation, after=page["seq"])
    model.let_go()
    done = again.until("done")
    assert again.prose().strip() == "After it."
    assert [event["seq"] for event in again.heard] == list(range(page["seq"] + 1, page["seq"] + 1 + len(again.heard)))
    assert done["html"] == "<p>Before it.</p>\n<p>After it.</p>\n"


def without_strips(events):
    """The tokens of a strip that is told again are not kept: whoever was away fetches them."""
    return [{**event, "tokens": ...} if event["type"] == "strip" else event for event in events]


def test_two_windows_see_the_same(server, browser):
    first, second = browser.socket(), browser.socket()
    first.ask("hi")
    second.say("open", conversation=first.conversation, after=0)
    second.until("state", state="idle")
    first.ask("more", first.conversation)
    second.until("state", state="idle")
    assert without_strips(second.heard) == without_strips(first.heard)


def test_what_a_network_break_swallowed_comes_by_number(server, browser):
    socket = browser.socket()
    socket.ask("hi")
    seen = socket.heard[5]["seq"]
    again = browser.socket()
    again.say("open", conversation=socket.conversation, after=seen)
    while len(again.heard) < len(socket.heard) - 6:
        again.next()
    assert without_strips(again.heard) == without_strips(socket.heard[6:])
    assert [event["tokens"] for event in again.heard if event["type"] == "strip"] == [None]  # to be fetched


def test_after_a_restart_a_page_gets_a_snapshot_and_numbers_go_on(server, browser):
    socket = browser.socket()
    socket.ask("hi")
    last = socket.heard[-1]["seq"]
    server.restart()
    again = browser.socket()
    again.say("open", conversation=socket.conversation, after=last - 1)
    snapshot = again.next()
    assert (snapshot["type"], snapshot["seq"], snapshot["state"]) == ("snapshot", last, "idle")
    assert [message["text"] for message in snapshot["messages"]] == ["hi", "Hello."]
    assert snapshot["cache"]["conversation"]["tokens"] == 0
    again.ask("more", socket.conversation)
    assert [event["seq"] for event in again.heard[1:]] == list(range(last + 1, last + len(again.heard)))


def test_after_a_restart_in_mid_reply_what_was_written_is_there_marked_interrupted(serve):
    model = ScriptedModel("Some words, 2+2 = <|python_start|>2+2<|python_end|>.", "next")
    server = serve(model)
    browser = Browser(server)
    socket = browser.socket()
    model.hold(20)  # inside the expression
    socket.send("hi")
    reply = socket.until("message", role="assistant")["id"]
    wait_until(model.holding.is_set)
    server.restart()
    html = browser.get(f"/c/{socket.conversation}").text
    stored = server.replies.store.message(reply)
    assert (stored.reason, stored.text, stored.ids) == (
        "interrupted",
        "Some words, 2+2 = ",
        list(b"Some words, 2+2 = "),
    )
    assert 'data-state="interrupted"' in html and 'data-state="unfinished"' in html
    again = browser.socket()
    assert again.ask("more", socket.conversation)["reason"] == "stop"


def test_a_process_that_was_killed_leaves_what_was_stored_marked_interrupted(serve):
    model = ScriptedModel("Some words <|python_start|>2+2<|python_end|>.")
    server = serve(model)
    browser = Browser(server)
    socket = browser.socket()
    model.hold(13)
    socket.send("hi")
    reply = socket.until("message", role="assistant")["id"]
    wait_until(lambda: server.replies.store.message(reply).text == "Some words ")  # stored as it is written
    copy = (
        server.replies.store.path.read_bytes(),
        server.replies.store.path.with_name(server.replies.store.path.name + "-wal").read_bytes(),
    )
    seq_seen = socket.heard[-1]["seq"]
    server.stop()  # and now as if it had not been stopped, but killed at that moment
    path = server.replies.store.path
    path.write_bytes(copy[0])
    path.with_name(path.name + "-wal").write_bytes(copy[1])
    server.start()
    stored = server.replies.store.message(reply)
    assert (stored.reason, stored.text) == ("interrupted", "Some words ")
    assert [segment.get("state") for segment in stored.segments] == [None, "unfinished"]
    again = browser.socket()
    again.say("open", conversation=socket.conversation, after=seq_seen)
    snapshot = again.next()
    assert snapshot["type"] == "snapshot" and snapshot["seq"] > seq_seen
    assert snapshot["messages"][1]["state"] == "interrupted"
