"""What is said of memory that went with a former process."""

import pytest

from tests.web.talk import Browser, wait_until


def _restarted(server, browser):
    """A chat of one answer after a restart -> a new socket and the chat's id."""
    socket = browser.socket()
    socket.ask("hi")
    conversation = socket.conversation
    server.restart()
    socket = browser.socket()
    socket.say("open", conversation=conversation)
    return socket, conversation


def test_what_went_with_a_former_process_is_told_once_with_its_tokens(server, browser):
    socket, conversation = _restarted(server, browser)
    remembered = sum(len(message.ids) for message in server.replies.store.messages(conversation))
    assert socket.ask("more", conversation)["stats"]["reused_tokens"] == 0
    socket.ask("yet more", conversation)
    (event,) = socket.reasons()
    assert (event["code"], event["figures"]) == ("lost", {"tokens": remembered})
    assert f"{remembered} tokens are read again" in event["text"]
    assert event["text"] in browser.get(f"/c/{conversation}").text


def test_another_answer_after_a_restart_counts_only_what_is_read_for_it(server, browser):
    socket, conversation = _restarted(server, browser)
    question, reply = server.replies.store.messages(conversation)
    socket.say("regenerate", conversation=conversation, message=reply.id)
    socket.until("done")
    socket.until("state", state="idle")
    assert [event["figures"] for event in socket.reasons()] == [{"tokens": len(question.ids)}]


@pytest.mark.parametrize("first, then", [({"use_cache": False}, {}), ({}, {"use_cache": False})])
def test_without_the_cache_nothing_is_lost_by_a_restart(server, browser, first, then):
    socket = browser.socket()
    socket.ask("hi", settings=first)
    server.restart()
    again = browser.socket()
    again.ask("more", socket.conversation, settings=then)
    assert [event["code"] for event in again.reasons()] == (["without_cache"] if then else [])


def test_what_was_forgotten_before_a_restart_is_not_told_as_lost_by_it(serve):
    server = serve(rows=1)
    browser = Browser(server)
    socket = browser.socket()
    socket.ask("hi")
    conversation = socket.conversation
    browser.socket().ask("another chat")
    wait_until(lambda: server.replies.store.events(conversation))
    server.restart()
    browser.socket().ask("more", conversation)
    assert [event.code for event in server.replies.store.events(conversation)] == ["asked_first", "evicted", "read_again"]
