"""What a turn meant for the memory: the line that each has, and the edge that each message has by it."""

import pytest

from tests.scripted import ScriptedModel
from tests.web.talk import Browser, Socket


@pytest.fixture
def chat(serve):
    """Two turns: the model says one and two; of each turn 4 tokens are marks, of the first one more opens the chat."""
    server = serve(ScriptedModel("one", "two", "three"))
    socket = Browser(server).socket()
    socket.ask("first")
    socket.ask("second", socket.conversation)
    socket.server = server
    return socket


def last(socket):
    return socket.of("event")[-1]


def page(chat):
    """How the page has each message: role and edge."""
    from app.chat.chats import Caller
    owner = chat.server.replies.store.conversation(chat.conversation).owner
    look = chat.server.replies.chats.look(Caller(owner), chat.conversation)
    return [(view["role"][0], view["edge"]) for view in look["messages"]]


def told_edges(chat):
    return list(chat.of("edges")[-1]["edges"].values())


def turn(chat, type, **fields):
    chat.say(type, conversation=chat.conversation, **fields)
    chat.until("state", state="idle")


def without_time(event):
    return event["code"], {name: value for name, value in event["figures"].items() if name != "seconds"}


def test_a_question_says_what_of_the_chat_was_still_remembered(chat):
    first, second = chat.of("event")
    stored = 1 + 5 + 3 + 3 + 1
    assert without_time(first) == ("asked_first", {"question": 5, "reused": 0, "read": 9})
    assert without_time(second) == ("asked", {"question": 6, "reused": stored - 1, "read": 1 + 6 + 3})
    assert second["text"] == ("Your question was 6 tokens; 12 before it were still remembered. "
                              "With the chat's marks, 10 were read.")
    stats = chat.of("done")[-1]["stats"]
    assert (second["figures"]["reused"], second["figures"]["read"]) == (stats["reused_tokens"], stats["read_tokens"])
    assert page(chat) == [("u", "reused"), ("a", "reused"), ("u", "read"), ("a", "written")]
    assert told_edges(chat) == ["reused", "reused", "read", "written"]


def test_a_question_that_was_changed_is_read_though_its_beginning_was_still_remembered(chat):
    question = next(message["id"] for message in chat.of("message") if message["role"] == "user")
    turn(chat, "edit", message=question, text="firm")  # "fir" and the marks before it stay
    stats = chat.of("done")[-1]["stats"]
    assert (stats["reused_tokens"], stats["read_tokens"]) == (5, 3)
    assert told_edges(chat) == ["read", "written"] == [edge for _, edge in page(chat)]


def test_the_line_is_told_before_the_first_word(chat):
    types = [event["type"] for event in chat.heard]
    assert types.index("event") < types.index("token")


def test_a_changed_question_says_what_was_kept_and_what_forgotten(chat):
    before = chat.of("cache")[-1]["cache"]["conversation"]["tokens"]
    turn(chat, "edit", message=chat.of("message")[2]["id"], text="seven")
    kept = 13 + 1 + len("se")
    assert without_time(last(chat)) == ("edited", {"question": 5, "nth": 2, "reused": kept, "forgotten": before - kept,
                                                   "read": 13 + 5 + 3 - kept})
    sentence = f"You changed your second message: {kept} tokens kept, {before - kept} forgotten, "
    assert last(chat)["text"].startswith(sentence)
    assert page(chat) == [("u", "reused"), ("a", "reused"), ("u", "read"), ("a", "written")]


def test_another_answer_says_that_all_up_to_it_is_kept(chat):
    turn(chat, "regenerate", message=chat.of("message")[-1]["id"])
    assert last(chat)["code"] == "again" and last(chat)["figures"]["read"] == 1
    assert last(chat)["figures"]["forgotten"] == len("two") + 1
    assert page(chat)[2] == ("u", "reused")


def test_an_answer_that_goes_on_says_what_was_remembered(serve):
    socket = Browser(serve(ScriptedModel("a long answer"))).socket()
    socket.ask("hi", settings={"max_tokens": 3})
    turn(socket, "continue", message=socket.of("message")[1]["id"])
    assert without_time(last(socket)) == ("went_on", {"reused": 6 + 3 - 1, "read": 1})


def test_a_chat_that_had_to_make_room_is_read_again_and_says_how_much_and_how_long(serve):
    server = serve(ScriptedModel("one", "two"), rows=1)
    browser = Browser(server)
    chat, other = browser.socket(), browser.socket()
    chat.server = server
    chat.ask("hi")
    other.ask("me too")
    chat.until("edges")
    assert told_edges(chat) == ["none", "none"]
    assert page(chat) == [("u", "none"), ("a", "none")]
    stats = chat.ask("more", chat.conversation)["stats"]
    code, figures = last(chat)["code"], last(chat)["figures"]
    assert code == "read_again" and figures["read"] == stats["read_tokens"] and figures["seconds"] > 0
    assert f"read again with your question, {figures['read']} tokens, " in last(chat)["text"]
    assert page(chat) == [("u", "read"), ("a", "read"), ("u", "read"), ("a", "written")]
    assert told_edges(chat) == ["read", "read", "read", "written"]


def test_without_the_cache_it_says_what_that_cost_and_what_is_not_remembered(chat):
    stats = chat.ask("third", chat.conversation, settings={"use_cache": False})["stats"]
    made = stats["generated_tokens"]
    assert without_time(last(chat)) == ("without_cache", {
        "made": made, "positions": stats["without_cache"], "with_cache": stats["prompt_tokens"] + made - 1})
    assert page(chat) == [*[("u", "reused"), ("a", "reused")] * 2, ("u", "none"), ("a", "none")]
    assert told_edges(chat) == [edge for _, edge in page(chat)]
    chat.ask("fourth", chat.conversation)
    assert last(chat)["code"] == "was_uncached"
    assert page(chat)[3:5] == [("a", "reused"), ("u", "read")]


def test_what_the_calculator_put_in_is_told(serve):
    socket = Browser(serve(ScriptedModel("It is <|python_start|>12*3<|python_end|>."))).socket()
    socket.ask("hi")
    assert (last(socket)["code"], last(socket)["figures"]) == ("put_in", {"forced": len("36") + 2, "marks": 2})
    assert "4 tokens put in, not written by the model; 2 of them are marks around a result." in last(socket)["text"]


def test_a_full_context_is_told_with_its_size(serve):
    socket = Browser(serve(ScriptedModel("x" * 100), context=64)).socket()
    assert socket.ask("hi")["reason"] == "context_full"
    assert (last(socket)["code"], last(socket)["figures"]) == ("context_full", {"limit": 64})


def test_each_turn_has_one_line_also_with_several_answers(serve):
    socket = Browser(serve()).socket()
    socket.ask("hi", settings={"n": 3, "temperature": 1.0})
    assert sorted(event["code"] for event in socket.of("event")) == ["asked_first", "copied"]


def test_how_many_more_questions_fit_is_told_before_the_oldest_are_left_out(serve):
    server = serve(ScriptedModel("ok"), context=128)
    browser = Browser(server)
    socket = browser.socket()
    told = []
    while not told or told[-1]["questions"]:
        socket.ask("hi", socket.conversation)
        cache = socket.of("cache")[-1]["cache"]
        if "room" in cache:
            told.append(cache["room"])
        assert browser.cache(socket.conversation).get("room") == cache.get("room")
        assert not socket.reasons()
    assert [room["questions"] for room in told] == [3, 2, 1, 0]
    socket.ask("hi", socket.conversation)
    assert [event["code"] for event in socket.reasons()] == ["left_out"]


def test_a_chat_with_much_room_says_nothing_of_it(chat):
    assert all("room" not in event["cache"] for event in chat.of("cache"))


def test_layers_that_do_not_look_back_over_everything_are_named_with_the_model(serve):
    model = ScriptedModel("one")
    model.windows = [None, 8]
    socket = Browser(serve(model)).socket()
    socket.ask("hi")
    assert socket.of("cache")[-1]["cache"]["model"]["windows"] == [None, 8]


def test_other_pages_of_the_same_browser_hear_of_a_chat_that_is_new_renamed_or_deleted(serve):
    server = serve()
    browser = Browser(server)
    asks, listens_only, stranger = browser.socket(), browser.socket(), Browser(server).socket()
    looks = Socket(server, {"Cookie": browser.cookie}, path="/ws?list=chats")
    for socket in (looks, listens_only, stranger):
        socket.say("ping")
        socket.until("pong")
    asks.ask("hi")
    listed = looks.until("listed")
    id = asks.conversation
    assert (listed["conversation"], listed["title"], listed["url"]) == (id, "hi", f"/c/{id}")
    assert "seq" not in listed and asks.of("listed") == []
    asks.say("rename", conversation=asks.conversation, title="named")
    assert looks.until("listed")["title"] == "named"
    asks.say("delete", conversation=asks.conversation)
    assert looks.until("listed")["deleted"] is True
    listens_only.silence()
    stranger.silence()
