"""Who waits for a row, who makes way for them, and whose row stays."""

from app.chat import vanished
from tests.scripted import ScriptedModel
from tests.web.talk import Browser, begin, wait_until

SLOW = "word " * 30


def test_a_chat_deleted_while_it_waits_leaves_the_queue_and_the_others_move_up(serve):
    model = ScriptedModel("one")
    server = serve(model, rows=1)
    model.hold(1)
    first, _ = begin(server)
    wait_until(model.holding.is_set)
    second, third = begin(server)[0], begin(server)[0]
    second.say("delete", conversation=second.conversation)
    assert second.until("conversation")["deleted"]
    model.let_go()
    assert first.until("done")["reason"] == third.until("done")["reason"] == "stop"
    wait_until(lambda: server.worker.snapshot().queued == ())
    assert second.conversation not in server.worker.snapshot().cached_tokens
    assert not server.replies.publisher.live_in(second.conversation)


def test_whoever_vanished_makes_way_for_one_who_waits(serve, monkeypatch):
    monkeypatch.setattr(vanished, "MAKES_WAY_AFTER_S", 0.1)
    server = serve(ScriptedModel("word " * 400, seconds_per_token=0.05), rows=1, max_tokens=2000)
    browser = Browser(server)
    gone, reply = begin(server, browser)
    gone.until("token")
    gone.kill()
    waiting, _ = begin(server)
    stored = wait_until(lambda: (m := server.replies.store.message(reply)).reason and m)
    assert stored.reason == "cancelled" and stored.text
    waiting.until("token")
    wait_until(lambda: "somebody else waited" in browser.get(f"/c/{gone.conversation}").text)


def test_whoever_vanished_is_let_on_while_nobody_waits_and_so_is_one_who_came_back(serve, monkeypatch):
    monkeypatch.setattr(vanished, "MAKES_WAY_AFTER_S", 0)
    server = serve(ScriptedModel(SLOW, seconds_per_token=0.005), rows=2)
    browser = Browser(server)
    gone, reply = begin(server, browser)
    back, _ = begin(server)
    gone.kill()
    again = browser.socket()
    again.say("open", conversation=gone.conversation, after=0)
    again.until("message")  # it listens
    waiting, _ = begin(server)
    assert again.until("done")["reason"] == back.until("done")["reason"] == waiting.until("done")["reason"] == "stop"


def test_the_row_of_a_closed_tab_stays_for_when_its_reader_is_back(server, browser):
    socket = browser.socket()
    first = socket.ask("hi")["stats"]
    socket.close()
    Browser(server).socket().ask("somebody else")
    again = browser.socket().ask("more", socket.conversation)["stats"]
    assert again["reused_tokens"] == first["prompt_tokens"] + first["generated_tokens"] - 1


def test_the_same_question_in_another_browser_or_another_chat_is_read_anew(server, browser):
    browser.socket().ask("the very same")
    for other in (Browser(server), browser):
        assert other.socket().ask("the very same")["stats"]["reused_tokens"] == 0
