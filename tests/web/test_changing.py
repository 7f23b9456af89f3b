"""Asking again, editing, going on, renaming, deleting (T24), and being told twice."""

import pytest

from tests.scripted import ASSISTANT_END, ByteTokenizer, ScriptedModel
from tests.web.talk import Browser, Socket, wait_until


@pytest.fixture
def chat(serve):
    """Three turns: the model says one, two, three; after that `model.replies` may be changed."""
    server = serve(ScriptedModel("one", "two", "three"))
    browser = Browser(server)
    socket = browser.socket()
    socket.ask("first")
    for question in ("second", "third"):
        socket.ask(question, socket.conversation)
    socket.browser, socket.server = browser, server
    return socket


def messages(chat):
    return [event["id"] for event in chat.of("message")]


def page_texts(chat):
    owner_view = chat.server.replies.store.messages(chat.conversation)
    return [message.text for message in owner_view]


def after(chat, type, **fields):
    """Say something that begins a reply, and listen to its end."""
    start = len(chat.heard)
    chat.say(type, conversation=chat.conversation, **fields)
    chat.until("state", state="idle")
    return chat.heard[start:]


def test_regenerating_the_last_reply_keeps_what_stands_before_it(chat):
    chat.server.model.replies = ["one", "two", "other"]
    heard = after(chat, "regenerate", message=messages(chat)[-1])
    assert page_texts(chat) == ["first", "one", "second", "two", "third", "other"]
    done = next(event for event in heard if event["type"] == "done")
    assert done["stats"]["reused_tokens"] == done["stats"]["prompt_tokens"] - 1


def test_regenerating_the_first_reply_cuts_the_chat_and_the_memory_there(chat):
    chat.server.model.replies = ["anew"]
    heard = after(chat, "regenerate", message=messages(chat)[1])
    assert page_texts(chat) == ["first", "anew"]
    new = next(event for event in heard if event["type"] == "message")
    assert (new["role"], new["reply_to"]) == ("assistant", messages(chat)[0])
    done = next(event for event in heard if event["type"] == "done")
    assert done["stats"]["reused_tokens"] == done["stats"]["prompt_tokens"] - 1 == 9 - 1
    assert chat.of("cache")[-1]["cache"]["conversation"]["tokens"] == 9 + 4  # the old tail is gone


def test_editing_a_question_cuts_at_the_first_difference(chat):
    chat.server.model.replies = ["one", "changed"]
    heard = after(chat, "edit", message=messages(chat)[2], text="secret")
    assert page_texts(chat) == ["first", "one", "secret", "changed"]
    question = next(event for event in heard if event["type"] == "message")
    assert (question["role"], question["text"], question["reply_to"]) == ("user", "secret", messages(chat)[1])
    done = next(event for event in heard if event["type"] == "done")
    stored = 9 + len("one") + 1  # the first prompt, its reply and end
    assert done["stats"]["reused_tokens"] == stored + 1 + len("sec")
    texts = chat.browser.get(f"/c/{chat.conversation}").text
    assert ">secret<" in texts and ">second<" not in texts


def test_only_questions_can_be_edited_and_only_answers_written_again(chat):
    for type, message in (("regenerate", messages(chat)[0]), ("edit", messages(chat)[1])):
        chat.say(type, conversation=chat.conversation, message=message, text="x")
        assert chat.until("error")["code"] == "bad_message"
    assert page_texts(chat)[0] == "first"


def test_a_cut_reply_goes_on_where_it_ended(serve):
    server = serve(ScriptedModel("A sentence that is *cut*.\n\nAnd more 😀."))
    browser = Browser(server)
    socket = browser.socket()
    socket.ask("hi", settings={"max_tokens": 22})
    assert socket.prose() == "A sentence that is *cu"
    reply = socket.of("message")[1]["id"]
    start = len(socket.heard)
    socket.say("continue", conversation=socket.conversation, message=reply, request="on")
    done = socket.until("done")
    assert socket.prose() == "A sentence that is *cut*.\n\nAnd more 😀."
    again = next(event for event in socket.heard[start:] if event["type"] == "message")
    assert (again["id"], again["request"], again["tail"], again["parts"]) == (reply, "on", "A sentence that is *cu", [])
    assert done["html"] == "<p>A sentence that is <em>cut</em>.</p>\n<p>And more 😀.</p>\n"
    assert done["stats"]["reused_tokens"] == 6 + 22 - 1
    stored = server.replies.store.message(reply)
    assert ByteTokenizer().decode(stored.ids[:-1]) == stored.text and stored.ids[-1] == ASSISTANT_END
    assert (len(stored.masks), stored.reason) == (len(stored.ids), "stop")


def test_a_reply_cut_inside_a_character_goes_on_inside_of_it(serve):
    server = serve(ScriptedModel("a😀b"))
    socket = Browser(server).socket()
    socket.ask("hi", settings={"max_tokens": 3})
    reply = socket.of("message")[1]["id"]
    socket.say("continue", conversation=socket.conversation, message=reply)
    assert socket.until("done")["html"] == "<p>a😀b</p>\n"
    assert server.replies.store.message(reply).text == "a😀b"


def test_a_reply_cut_inside_a_tool_call_goes_on_before_it(serve):
    server = serve(ScriptedModel("It is <|python_start|>1+1<|python_end|>."))
    socket = Browser(server).socket()
    socket.ask("hi", settings={"max_tokens": 8})
    reply = socket.of("message")[1]["id"]
    socket.say("continue", conversation=socket.conversation, message=reply)
    done = socket.until("done")
    calls = [part for part in done["parts"] if part["type"] == "tool_call"]
    assert [(call["state"], call["result"]) for call in calls] == [("unfinished", None), ("done", "2")]
    assert [part["index"] for part in done["parts"]] == list(range(len(done["parts"])))


def test_a_complete_reply_does_not_go_on(chat):
    chat.say("continue", conversation=chat.conversation, message=messages(chat)[-1])
    assert chat.until("error")["code"] == "complete"
    chat.say("continue", conversation=chat.conversation, message=messages(chat)[1])
    assert chat.until("error")["code"] == "not_last"


def test_a_repeated_request_is_answered_and_not_done_twice(chat):
    request = chat.of("message")[-2]["request"]
    chat.send("third", chat.conversation, request=request)
    told = [chat.next(), chat.next()]
    assert [(event["type"], event["repeat"], event["id"]) for event in told] == [
        ("message", True, id) for id in messages(chat)[-4:-2]
    ]
    assert len(page_texts(chat)) == 6


def test_a_request_repeated_on_a_new_connection_finds_its_chat(chat):
    request = chat.of("message")[0]["request"]
    chat.kill()
    again = chat.browser.socket()
    again.send("first", request=request)
    assert again.until("conversation")["id"] == chat.conversation
    assert again.until("message", role="user")["request"] == request
    assert (
        len(chat.server.replies.store.conversations(chat.server.replies.store.conversation(chat.conversation).owner))
        == 1
    )


def test_what_another_window_has_not_seen_is_refused_as_stale(chat):
    other = chat.browser.socket()
    other.send("late", chat.conversation, base=messages(chat)[1])
    assert other.until("error")["code"] == "stale"
    assert len(page_texts(chat)) == 6
    assert other.ask("now", chat.conversation, base=messages(chat)[-1])["reason"] == "stop"


def test_while_an_answer_is_written_nothing_else_is_taken(serve):
    model = ScriptedModel("long enough")
    server = serve(model)
    socket = Browser(server).socket()
    model.hold(3)
    socket.send("hi")
    reply = socket.until("message", role="assistant")["id"]
    wait_until(model.holding.is_set)
    for type, fields in (("send", {}), ("regenerate", {"message": reply}), ("continue", {"message": reply})):
        socket.say(type, conversation=socket.conversation, text="more", request=f"r-{type}", **fields)
        error = socket.until("error")
        assert (error["code"], error["request"]) == ("busy", f"r-{type}")
    model.let_go()
    assert socket.until("done")["reason"] == "stop"


def test_a_chat_is_named_after_its_question_and_can_be_renamed(chat):
    chat.say("rename", conversation=chat.conversation, title="  <b>New</b>\n name ")
    event = chat.until("conversation")
    assert (event["title"], event["id"]) == ("<b>New</b> name", chat.conversation)
    assert "&lt;b&gt;New&lt;/b&gt; name" in chat.browser.get("/").text
    chat.say("rename", conversation=chat.conversation, title="  ")
    assert chat.until("error")["code"] == "empty"


def test_a_chat_whose_first_question_is_edited_is_named_anew_unless_somebody_named_it(chat):
    after(chat, "edit", message=messages(chat)[0], text="a new beginning")
    assert chat.of("conversation")[-1]["title"] == "a new beginning"
    chat.say("rename", conversation=chat.conversation, title="mine")
    chat.until("conversation", title="mine")
    after(chat, "edit", message=chat.of("message")[-2]["id"], text="another")
    assert chat.of("conversation")[-1]["title"] == "mine"


def test_a_rename_is_answered_to_one_who_does_not_listen(chat):
    other = chat.browser.socket()
    other.say("rename", conversation=chat.conversation, title="other")
    assert other.until("conversation")["title"] == "other"
    assert chat.until("conversation")["title"] == "other"


def test_a_deleted_chat_is_gone_with_its_memory(chat):
    assert chat.server.worker.snapshot().pool.tokens > 0
    chat.say("delete", conversation=chat.conversation)
    event = chat.until("conversation")
    assert event["deleted"] is True
    wait_until(lambda: chat.server.worker.snapshot().pool.tokens == 0)
    assert chat.browser.get(f"/c/{chat.conversation}").status == 404
    chat.say("open", conversation=chat.conversation, after=0)
    assert chat.until("error")["code"] == "not_found"


def test_deleting_ends_a_reply_in_the_making(serve):
    model = ScriptedModel("x" * 200)
    server = serve(model)
    socket = Browser(server).socket()
    model.hold(3)
    socket.send("hi")
    socket.until("message", role="assistant")
    wait_until(model.holding.is_set)
    socket.say("delete", conversation=socket.conversation)
    assert socket.until("conversation")["deleted"]
    model.let_go()
    wait_until(lambda: server.worker.snapshot().pool.rows_used == 0)
    assert Browser(server).socket().ask("next")["reason"] == "stop"
    assert server.replies.publisher.alive


def test_another_system_prompt_reads_everything_again_and_says_so(serve):
    server = serve(ScriptedModel("one", "two"))
    socket = Browser(server).socket()
    socket.ask("hi")
    done = socket.ask("more", socket.conversation, settings={"system": "Be brief."})
    assert done["stats"]["reused_tokens"] == 2  # bos and user_start
    assert [event["code"] for event in socket.of("event")] == ["asked_first", "system_changed", "asked_anew"]
    assert (
        server.model.replies
        and socket.ask("yet more", socket.conversation, settings={"system": "Be brief."})["stats"]["reused_tokens"] > 20
    )


def test_with_another_model_the_text_is_encoded_again_and_that_is_said(serve):
    server = serve(ScriptedModel("one", "two"))
    browser = Browser(server)
    socket = browser.socket()
    socket.ask("hi")
    server.tokenizer = ByteTokenizer("bytes-2")
    server.restart()
    socket = browser.socket()
    done = socket.ask("more", browser.get("/").text.split("/c/")[1].split('"')[0])
    assert done["stats"]["reused_tokens"] == 0 and done["reason"] == "stop"
    assert [event["code"] for event in socket.of("event")] == ["encoded_again", "asked_anew"]


def test_a_message_that_is_asked_for_in_another_chat_is_not_found(chat):
    other = Socket(chat.server, {"Cookie": chat.browser.cookie})
    other.ask("elsewhere")
    other.say("regenerate", conversation=other.conversation, message=messages(chat)[1])
    assert other.until("error")["code"] == "not_found"
