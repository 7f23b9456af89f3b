"""Whatever a frame says, the socket stays open, and the chat works afterwards (T27)."""

import json
from pathlib import Path

import pytest
from simple_websocket import ConnectionClosed

from tests.scripted import ScriptedModel
from tests.web.talk import Browser, Socket

CASES = json.loads((Path(__file__).parent / "setting_cases.json").read_text())


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    from tests.web.talk import RunningServer
    server = RunningServer(tmp_path_factory.mktemp("data"), ScriptedModel("Hello."))
    yield server
    server.stop()


@pytest.fixture
def socket(shared_server):
    socket = Socket(shared_server)
    yield socket
    assert socket.ask("still there?")["reason"] == "stop"
    socket.close()


@pytest.mark.parametrize("setting, value", [(case["setting"], value) for case in CASES for value in case["good"]])
def test_a_setting_within_its_range_is_taken(socket, setting, value):
    assert socket.ask("hi", settings={setting: value})["reason"] in ("stop", "length")


@pytest.mark.parametrize(
    "setting, value",
    [(case["setting"], value) for case in CASES for value in case["bad"]] + [("temperature", float("nan"))],
)
def test_a_setting_outside_its_range_is_refused_with_the_range(socket, setting, value):
    request = socket.send("hi", settings={setting: value})
    error = socket.next()
    assert (error["type"], error["code"], error["request"]) == ("error", "bad_settings", request)
    assert setting in error["text"] and "must be" in error["text"]


def test_a_setting_that_there_is_not_is_refused_by_name(socket):
    socket.send("hi", settings={"temprature": 1})
    assert "'temprature'" in socket.until("error")["text"]


@pytest.mark.parametrize(
    "frame, code",
    [
        ("", "bad_json"),
        ("{", "bad_json"),
        ("[]", "bad_json"),
        ("null", "bad_json"),
        ('"send"', "bad_json"),
        ("[" * 100_000, "bad_json"),
        (b"\x00\x01", "bad_json"),
        ("{}", "bad_message"),
        ('{"type": 5}', "bad_message"),
        ('{"type": "dance"}', "bad_message"),
        ('{"type": ["send"]}', "bad_message"),
        ('{"type": "open"}', "bad_message"),
        ('{"type": "send"}', "bad_message"),
        ('{"type": "send", "text": 5}', "bad_message"),
        ('{"type": "send", "text": "a", "conversation": 5}', "bad_message"),
        ('{"type": "send", "text": "a", "conversation": ""}', "bad_message"),
        ('{"type": "send", "text": "a", "request": {}}', "bad_message"),
        ('{"type": "send", "text": "a", "settings": [1]}', "bad_message"),
        ('{"type": "send", "text": " \\n "}', "empty"),
        ('{"type": "open", "conversation": "x", "after": -1}', "bad_message"),
        ('{"type": "open", "conversation": "x", "after": 1.5}', "bad_message"),
        ('{"type": "open", "conversation": "x", "after": 1}', "not_found"),
        ('{"type": "stop", "conversation": "x", "message": "y"}', "not_found"),
        ('{"type": "delete", "conversation": "x\' OR 1=1 --"}', "not_found"),
        ('{"type": "rename", "conversation": "x", "title": 5}', "bad_message"),
        ('{"type": "race"}', "bad_message"),
        (r'{"type": "open", "conversation": "\ud800"}', "not_found"),
        (r'{"type": "pick", "conversation": "x", "message": "\udfff"}', "not_found"),
        (r'{"type": "\ud800"}', "bad_message"),
        (r'{"type": "send", "text": "a", "base": "\ud800", "conversation": "x"}', "not_found"),
        (r'{"type": "send", "text": "a", "settings": {"\ud800": 1}}', "bad_settings"),
        (r'{"type": "send", "text": "a", "settings": {"seed": "\ud800"}}', "bad_settings"),
    ],
)
def test_what_cannot_be_understood_is_answered_with_a_sentence(socket, frame, code):
    socket.client.send(frame)
    error = socket.next()
    assert (error["type"], error["code"]) == ("error", code)
    assert len(error["text"]) > 10 and error["text"][-1] in ".:!"
    assert "seq" not in error


def test_the_request_of_a_frame_that_is_refused_is_named(socket):
    socket.client.send('{"type": "dance", "request": "r77"}')
    assert socket.next()["request"] == "r77"


def test_half_a_character_in_a_request_id_is_told_back_as_the_sign_for_it(socket):
    socket.client.send(r'{"type": "dance", "request": "a\ud800b"}')
    assert socket.next()["request"] == "a\ufffdb"


def test_half_a_character_in_a_setting_is_read_as_the_sign_for_it(socket):
    socket.client.send(r'{"type": "send", "text": "hi", "settings": {"system": "be \ud800 brief"}}')
    assert socket.until("done")["reason"] == "stop"


def test_half_a_character_in_a_body_is_no_mistake_of_ours(shared_server):
    browser = Browser(shared_server)
    headers = {"Content-Type": "application/json"}
    body = r'{"conversation": "\ud800", "text": "a"}'
    answer = browser.request("POST", "/api/count", body, headers)
    assert (answer.status, answer.json["code"]) == (404, "not_found")
    body = r'{"conversation": null, "text": "a\udc00"}'
    assert browser.request("POST", "/api/count", body, headers).json["tokens"] == len("a\ufffd".encode())


def test_a_body_that_is_nested_without_end_is_refused(shared_server):
    answer = Browser(shared_server).request(
        "POST", "/api/count", '{"text": ' + "[" * 100_000, {"Content-Type": "application/json"}
    )
    assert (answer.status, answer.json["code"]) == (400, "bad_message")


def test_a_ping_is_answered(socket):
    socket.say("ping")
    assert socket.next() == {"type": "pong"}


@pytest.mark.parametrize("size", [5 * 2**20, 64 * 2**20])
def test_a_frame_over_the_limit_closes_with_1009(shared_server, size):
    socket = Socket(shared_server)
    try:
        socket.client.send("x" * size)
    except OSError:  # closed while this was still on its way
        pass
    with pytest.raises(ConnectionClosed) as closed:
        socket.client.receive(timeout=60)
    assert closed.value.reason == 1009
    assert Browser(shared_server).socket().ask("hi")["reason"] == "stop"


def test_a_megabyte_is_counted_and_refused_with_both_counts_and_nothing_is_stored(shared_server):
    browser = Browser(shared_server)
    socket = browser.socket()
    socket.send("word " * 200_000)
    error = socket.until("error")
    assert (error["code"], error["tokens"], error["limit"]) == ("too_long", 1_000_004, 2048 - 256)
    assert "1,000,004" in error["text"] and "1,792" in error["text"]
    assert "/c/" not in browser.get("/").text
    socket.send("x" * 3 * 2**20)
    assert "bytes" in socket.until("error")["text"]


def test_a_mistake_of_ours_is_told_without_a_traceback(shared_server, monkeypatch):
    def fail(*_):
        raise RuntimeError("<img src=x onerror=alert(1)> secret path /home/x")

    monkeypatch.setattr(shared_server.replies.chats, "rename", fail)
    socket = Socket(shared_server)
    socket.say("rename", conversation="x", title="y", request="r1")
    error = socket.next()
    assert (error["code"], error["request"]) == ("internal", "r1")
    assert "secret" not in error["text"]
    assert socket.ask("hi")["reason"] == "stop"
