"""The numbers of the cache (T40), a full context (T20, T21), rows that run out, many people (T29)."""

import pytest

from tests.scripted import ScriptedModel
from tests.web.talk import Browser, wait_until

BYTES_PER_TOKEN = 2 * 2 * 2 * 4 * 4  # keys and values, layers, KV heads, head size, float32


def test_memory_is_tokens_times_bytes_per_token_at_every_moment(server, browser):
    socket = browser.socket()
    socket.ask("hi")
    socket.ask("and more", socket.conversation)
    for event in socket.of("cache"):
        cache = event["cache"]
        assert set(cache) == {"conversation", "last_reply", "pool", "model", "process"}
        assert cache["model"]["bytes_per_token"] == BYTES_PER_TOKEN
        for part in (cache["conversation"], cache["pool"]):
            assert part["bytes_used"] == part["tokens"] * BYTES_PER_TOKEN
        assert cache["pool"]["bytes_reserved"] == 8 * 2048 * BYTES_PER_TOKEN >= cache["pool"]["bytes_used"]
        assert cache["process"]["resident_bytes"] > 2**20
    # the last token of the reply is not in it until the next turn reads it
    assert (
        socket.of("cache")[-1]["cache"]["conversation"]["tokens"]
        == sum(map(len, ("hi", "Hello.", "and more", "Hello."))) + 9 - 1
    )
    assert browser.cache(socket.conversation) == socket.of("cache")[-1]["cache"] | {
        "process": browser.cache()["process"]
    }


def test_the_last_reply_counts_what_the_reference_way_would_compute(server, browser):
    socket = browser.socket()
    stats = socket.ask("hi")["stats"]
    assert socket.of("cache")[-1]["cache"]["last_reply"] == {
        "reused": 0, "read": 6, "written": 7, "forced": 0, "without_cache": sum(range(6, 6 + 7))}
    assert (stats["prompt_tokens"], stats["generated_tokens"]) == (6, 7)


def test_a_new_chat_has_nothing_and_the_pool_keeps_what_it_has(server, browser):
    browser.socket().ask("hi")
    cache = wait_until(lambda: (c := browser.cache())["pool"]["tokens"] and c)
    assert cache["conversation"] == {"tokens": 0, "bytes_used": 0, "limit": 2048}
    assert cache["pool"]["rows_used"] == 1


# --- a full context

def test_a_message_that_is_too_long_alone_is_refused_with_numbers_and_not_stored(serve):
    """T20 (a), T21: up to the very token, in a script of three bytes a letter."""
    server = serve(context=64)
    browser = Browser(server)
    socket = browser.socket()
    limit = 64 - 8
    socket.send("字" * 17 + "aa")
    error = socket.until("error")
    assert (error["code"], error["tokens"], error["limit"]) == ("too_long", limit + 1, limit)
    assert "/c/" not in browser.get("/").text
    assert socket.ask("字" * 17 + "a")["reason"] == "stop"


def test_counting_tells_beforehand_whether_it_will_be_taken(serve):
    server = serve(context=64)
    browser = Browser(server)
    assert browser.request("POST", "/api/count", {"text": "字字"}).json == {
        "tokens": 6, "alone": 10, "whole": 10, "limit": 56, "read": 10}
    socket = browser.socket()
    socket.ask("hi")
    counted = browser.request("POST", "/api/count", {"conversation": socket.conversation, "text": "more"}).json
    assert counted["whole"] == socket.ask("more", socket.conversation)["stats"]["prompt_tokens"]


def test_counting_tells_how_many_tokens_the_next_reply_will_read(serve):
    server = serve(context=400)
    browser = Browser(server)
    socket = browser.socket()
    socket.ask("hi")
    for settings in ({}, {"max_tokens": 7}, {"system": "Be brief."}, {"system": "Be brief."}, {}):
        wanted = {"conversation": socket.conversation, "text": "more", "settings": settings}
        counted = browser.request("POST", "/api/count", wanted).json
        stats = socket.ask("more", socket.conversation, settings=settings)["stats"]
        assert (counted["whole"], counted["read"]) == (stats["prompt_tokens"], stats["read_tokens"]), settings


def test_counting_heeds_the_settings_and_leaves_out_what_it_cannot_know(serve):
    server = serve(context=64)
    browser = Browser(server)
    socket = browser.socket()
    socket.ask("hi")

    def count(text, **settings):
        wanted = {"conversation": socket.conversation, "text": text, "settings": settings}
        return browser.request("POST", "/api/count", wanted).json

    assert count("a", max_tokens=2)["limit"] == 64 - 2
    assert count("a", system="four")["alone"] > count("a")["alone"]
    assert "read" in count("a") and "read" not in count("a", use_cache=False)
    left_out = count("a" * 45)
    assert left_out["whole"] > left_out["limit"] >= left_out["alone"] and "read" not in left_out
    assert count("a", max_tokens=0)["code"] == "bad_settings"


def test_when_history_and_message_are_too_long_the_oldest_turns_are_left_out_and_marked(serve):
    """T20 (b)"""
    server = serve(ScriptedModel(lambda question: "answer " + question[:3]), context=64)
    browser = Browser(server)
    socket = browser.socket()
    socket.ask("one")
    socket.ask("two", socket.conversation)
    done = socket.ask("three" * 4, socket.conversation)
    assert socket.prose().endswith("answer thr") and done["reason"] == "stop"
    (event,) = socket.reasons()
    assert (event["code"], event["figures"]["messages"]) == ("left_out", 2) and "left out" in event["text"]
    views = server.replies.chats.look(_caller(server, socket), socket.conversation)["messages"]
    assert [view["left_out"] for view in views] == [True, True, False, False, False, False]
    assert "is-left-out" in browser.get(f"/c/{socket.conversation}").text
    assert max(event["cache"]["conversation"]["tokens"] for event in socket.of("cache")) <= 64
    # the same turn stays left out, so that the next one is not read from the beginning
    again = socket.ask("a", socket.conversation)["stats"]
    assert again["reused_tokens"] == done["stats"]["prompt_tokens"] + done["stats"]["generated_tokens"] - 1


def test_an_answer_that_fills_the_context_says_so_and_can_go_on(serve):
    """T20 (c)"""
    server = serve(ScriptedModel(lambda question: "x" * 100 if question == "much" else "one"), context=64)
    socket = Browser(server).socket()
    socket.ask("hi")
    done = socket.ask("much", socket.conversation)
    assert done["reason"] == "context_full"
    assert socket.of("cache")[-1]["cache"]["conversation"]["tokens"] <= 64
    written = len(server.replies.store.messages(socket.conversation)[-1].text)
    assert done["stats"]["prompt_tokens"] + written == 64
    socket.say("continue", conversation=socket.conversation, message=socket.of("message")[-1]["id"])
    done = socket.until("done")
    assert [event["code"] for event in socket.reasons()] == ["context_full", "left_out"]
    assert len(server.replies.store.messages(socket.conversation)[-1].text) > written


def test_cutting_a_long_chat_back_takes_back_what_was_left_out(serve):
    server = serve(ScriptedModel(lambda question: "answer " + question[:3]), context=64)
    socket = Browser(server).socket()
    socket.ask("one")
    for question in ("two", "three" * 4):
        socket.ask(question, socket.conversation)
    assert server.replies.store.messages(socket.conversation)[0].left_out
    second = server.replies.store.messages(socket.conversation)[2]
    socket.say("edit", conversation=socket.conversation, message=second.id, text="2")
    done = socket.until("done")
    messages = server.replies.store.messages(socket.conversation)
    assert [message.left_out for message in messages] == [False] * 4
    assert done["stats"]["prompt_tokens"] == 1 + (3 + 3 + 10 + 1) + (3 + 1)


# --- rows that run out

def test_a_chat_whose_row_went_to_another_is_told_and_reads_again(serve):
    server = serve(rows=1)
    browser = Browser(server)
    first, second = browser.socket(), browser.socket()
    first.ask("hi")
    second.ask("me too")
    event = first.until("event", code="evicted")
    assert event["figures"]["tokens"] == 6 + 7 - 1
    assert first.until("cache")["cache"]["conversation"]["tokens"] == 0
    assert "were forgotten" in browser.get(f"/c/{first.conversation}").text
    assert first.ask("more", first.conversation)["stats"]["reused_tokens"] == 0


def test_the_list_of_chats_tells_which_are_warm(serve):
    server = serve(rows=1)
    browser = Browser(server)
    for title in ("older", "newer"):
        browser.socket().ask(title)
    caller = _caller(server, None, browser)
    chats = wait_until(lambda: [(chat["title"], chat["tokens"]) for chat in server.replies.chats.list(caller)])
    assert chats == [("newer", 9 + 7 - 1), ("older", None)]


def test_many_people_at_once_each_get_their_own(serve):
    """T29: more than there are rows, some vanish, and no code word is in another's text or numbers."""
    server = serve(ScriptedModel(lambda question: f"the word is {question}"), rows=2)
    browsers = [Browser(server) for _ in range(8)]
    sockets = [browser.socket() for browser in browsers]
    for number, socket in enumerate(sockets):
        socket.send(f"code{number}" * (number + 1))
    for socket in sockets[6:]:
        socket.kill()
    for number, socket in enumerate(sockets[:6]):
        assert socket.until("done")["reason"] == "stop"
        assert socket.prose() == "the word is " + f"code{number}" * (number + 1)
        heard = str([event for event in socket.heard if event["type"] != "cache"])
        assert all(f"code{other}" not in heard for other in range(8) if other != number)
        own = [event["cache"]["conversation"]["tokens"] for event in socket.of("cache")]
        assert max(own) <= 4 + 5 * (number + 1) + len(socket.prose())


def test_a_model_that_fails_ends_its_reply_with_a_sentence_and_serves_on(serve):
    server = serve(ScriptedModel(ValueError("<img src=x onerror=alert(1)>")))
    browser = Browser(server)
    socket = browser.socket()
    done = socket.ask("hi")
    assert done["reason"] == "error" and "engine failed" in done["text"]
    server.model.replies = ["fine"]
    html = browser.get(f"/c/{socket.conversation}").text
    assert "<img src=x" not in html and "&lt;img src=x" in html
    assert socket.ask("more", socket.conversation)["reason"] == "stop"


@pytest.mark.parametrize("rows", [1])
def test_a_full_queue_is_refused_and_nothing_is_stored(serve, rows, monkeypatch):
    model = ScriptedModel("slow")
    server = serve(model, rows=rows)
    monkeypatch.setattr(server.worker, "_max_queue", 0)
    browser = Browser(server)
    first, second = browser.socket(), browser.socket()
    model.hold(1)
    first.send("hi")
    first.until("message", role="assistant")
    second.send("me too")
    assert second.until("error")["code"] == "queue_full"
    model.let_go()
    assert first.until("done")["reason"] == "stop"
    assert browser.get("/").text.count('class="chat-item__link"') == 2  # one chat, and the template


def _caller(server, socket, browser=None):
    from app.chat.chats import Caller
    if socket is not None:
        return Caller(server.replies.store.conversation(socket.conversation).owner)
    conversation = browser.get("/").text.split("/c/")[1].split('"')[0]
    return Caller(server.replies.store.conversation(conversation).owner)
