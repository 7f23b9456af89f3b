"""The race over the socket: asked for, followed, come back to, stopped; one at a time, and each for its own browser."""

import threading

import pytest

from app.chat import race as races
from tests.scripted import ScriptedModel
from tests.web.conftest import Browser
from tests.web.talk import wait_until

SAID = "Once upon a time."


@pytest.fixture
def server(serve):
    return serve(ScriptedModel(SAID))


@pytest.fixture
def held(serve):
    """A server whose model waits in the middle of an answer."""
    model = ScriptedModel(SAID)
    model.hold(after_tokens=3)
    return serve(model)


def result(socket):
    return socket.until("race", state="done")["result"]


def test_both_lanes_are_told_token_for_token(browser):
    socket = browser.socket()
    socket.say("race", text="Tell me a story", max_tokens=50, seed=7)
    measured = result(socket)
    texts = ["".join(token["text"] for token in measured[lane]["tokens"]) for lane in ("cached", "uncached")]
    assert texts == [SAID, SAID] and measured["same"] is True and measured["parts_at"] is None
    assert (measured["text"], measured["max_tokens"], measured["seed"]) == ("Tell me a story", 50, 7)
    prompt, count = measured["prompt_tokens"], len(SAID) + 1  # and the end
    assert measured["cached"]["positions"] == [prompt + n for n in range(count)]
    assert measured["uncached"]["positions"][-1] == count * prompt + count * (count - 1) // 2
    both = [measured[lane]["total_s"] for lane in ("uncached", "cached")]
    assert measured["speedup"] == pytest.approx(both[0] / both[1])
    assert measured["cached"]["reason"] == "stop" and measured["cached"]["disturbed"] == 0
    stages = [event["state"] for event in socket.of("race")]
    assert stages[0] == "begun" and stages[-1] == "done"
    assert all(event["max_tokens"] == 50 for event in socket.of("race")[1:-1])


class HeldInBothLanes(ScriptedModel):
    """Waits after three tokens, with the cache and without."""

    def __init__(self, said):
        super().__init__(said)
        self.may_read_again = threading.Event()

    def forward(self, ids, kv_cache=None):
        if kv_cache is None and ids[0, -3:].tolist() == list(SAID[:3].encode()):
            self.may_read_again.wait(300)
        return super().forward(ids, kv_cache)


def test_while_it_is_measured_each_lane_is_told_as_far_as_it_is(serve):
    held = serve(HeldInBothLanes(SAID))
    held.model.hold(after_tokens=3)
    browser = Browser(held)
    socket = browser.socket()
    socket.say("race", text="Tell me a story", max_tokens=10)
    socket.until("race", state="begun")
    assert held.model.holding.wait(60)
    now = until_measured(browser.socket(), socket.of("race")[0]["race"], 3)  # one who comes later hears all of it
    assert (now["state"], now["cached"]["text"], now["cached"]["done"]) == ("cached", SAID[:3], 3)
    assert now["uncached"] == {"done": 0, "text": "", "seconds": 0.0, "positions": 0}
    held.model.let_go()
    socket.until("race", state="uncached")
    held.model.may_read_again.set()
    measured = result(socket)
    assert now["cached"]["seconds"] == pytest.approx(sum(measured["cached"]["seconds"][:3]), abs=1e-5)
    assert now["cached"]["positions"] == measured["cached"]["positions"][2]
    told = [event for event in socket.of("race") if event["state"] == "uncached"]
    assert {event["cached"]["text"] for event in told} == {SAID[:10]} and told[-1]["max_tokens"] == 10


def until_measured(socket, race, tokens) -> dict:
    """The event that tells of so many tokens of the lane with the cache."""
    socket.say("race_open", race=race)
    while True:
        event = socket.until("race")
        if event.get("cached", {}).get("done") == tokens:
            return event


def test_length_and_seed_may_be_left_out(browser):
    socket = browser.socket()
    socket.say("race", text="Hello")
    measured = result(socket)
    assert (measured["max_tokens"], measured["seed"], measured["temperature"]) == (100, 42, 0.0)


def test_a_length_is_where_the_answer_ends(browser):
    socket = browser.socket()
    socket.say("race", text="Hello", max_tokens=5)
    measured = result(socket)
    assert len(measured["cached"]["tokens"]) == len(measured["uncached"]["tokens"]) == 5
    assert measured["cached"]["reason"] == "length"


@pytest.mark.parametrize("fields, code, words", [
    ({"text": " "}, "empty", "nothing to answer"),
    ({"text": "x", "max_tokens": 0}, "race_length", "from 1 to 400 tokens"),
    ({"text": "x", "max_tokens": 401}, "race_length", "from 1 to 400 tokens"),
    ({"text": "x" * 2000, "max_tokens": 60}, "race_too_long", "more than the 2,048 that the model can hold"),
    ({"text": "x" * 500, "max_tokens": 400}, "race_too_long", "would compute"),
    ({"text": "x" * 64_001}, "race_too_long", "too long for a race"),
    ({"text": "x", "temperature": -1}, "bad_settings", "temperature"),
    ({"text": "x", "seed": "seven"}, "bad_message", "seed"),
    ({}, "bad_message", "needs the field text"),
])
def test_what_cannot_be_raced_is_refused_with_a_sentence(browser, fields, code, words):
    socket = browser.socket()
    socket.say("race", request="r1", **fields)
    error = socket.until("error")
    assert error["code"] == code and words in error["text"] and error["request"] == "r1"


def test_a_repeat_of_the_same_request_is_one_race(held):
    browser = Browser(held)
    socket, later = browser.socket(), browser.socket()
    for each in (socket, later):
        each.say("race", text="Hello", request="once")
        each.until("race")
    assert socket.of("race")[0]["race"] == later.of("race")[0]["race"]
    held.model.let_go()
    assert result(socket) == result(later)


def test_there_is_one_race_at_a_time_and_others_are_told_so(held):
    first, second = Browser(held).socket(), Browser(held).socket()
    first.say("race", text="Hello")
    first.until("race", state="begun")
    second.say("race", text="Hello", request="mine")
    error = second.until("error")
    assert error["code"] == "race_busy" and error["request"] == "mine"
    held.model.let_go()
    result(first)
    second.say("race", text="Hello")
    assert result(second)["same"] is True


def test_who_comes_back_hears_where_it_is_and_the_result(held):
    browser = Browser(held)
    socket = browser.socket()
    socket.say("race", text="Hello")
    race = socket.until("race", state="begun")["race"]
    socket.kill()
    again = browser.socket()
    again.say("race_open", race=race)
    assert again.until("race")["race"] == race
    held.model.let_go()
    measured = result(again)
    latest = browser.socket()
    latest.say("race_open", race=race)
    assert result(latest) == measured


def test_another_browser_cannot_look_at_a_race_nor_stop_it(held):
    socket, other = Browser(held).socket(), Browser(held).socket()
    socket.say("race", text="A secret")
    race = socket.until("race", state="begun")["race"]
    other.say("race_open", race=race)
    assert other.until("race") == {"type": "race", "race": race, "state": "gone"}
    other.say("race_stop", race=race)
    held.model.let_go()
    assert result(socket)["same"] is True


def test_it_can_be_stopped(held):
    socket = Browser(held).socket()
    socket.say("race", text="Hello")
    race = socket.until("race", state="begun")["race"]
    assert held.model.holding.wait(60)
    socket.say("race_stop", race=race)
    socket.until_taken()
    held.model.let_go()
    socket.until("race", state="stopped")
    socket.say("race", text="Hello")
    assert result(socket)["same"] is True


def test_a_race_that_nobody_watches_is_stopped(held, monkeypatch):
    monkeypatch.setattr(races, "ABANDONED_AFTER_S", 0.0)
    monkeypatch.setattr(races, "LOOK_S", 0.05)
    socket = Browser(held).socket()
    socket.say("race", text="Hello")
    socket.until("race", state="begun")
    assert held.model.holding.wait(60)
    socket.close()
    running = held.app.extensions["glasschat"].races
    live = running._running
    wait_until(lambda: not live._watchers)
    stopped = []
    monkeypatch.setattr(live, "_worker", Watched(live._worker, stopped))
    wait_until(lambda: stopped)
    held.model.let_go()
    wait_until(lambda: live.told["state"] == "stopped")
    assert running._running is None


class Watched:
    """A worker that notes which race it is asked to stop."""

    def __init__(self, worker, stopped):
        self._worker, self._stopped = worker, stopped

    def stop_race(self, race):
        self._worker.stop_race(race)
        self._stopped.append(race)

    def __getattr__(self, name):
        return getattr(self._worker, name)


def test_forgetting_everything_forgets_the_race(browser, server):
    socket = browser.socket()
    socket.say("race", text="A secret")
    race = socket.until("race", state="done")["race"]
    assert browser.request("POST", "/api/forget").status == 204
    assert server.app.extensions["glasschat"].races._last == {}
    again = browser.socket()
    again.say("race_open", race=race)
    assert again.until("race")["state"] == "gone"


def test_chats_go_on_while_a_race_is_measured(serve):
    server = serve(ScriptedModel(SAID * 20))
    racer, chatter = Browser(server).socket(), Browser(server).socket()
    racer.say("race", text="x" * 200, max_tokens=200)
    racer.until("race", state="begun")
    chatter.ask("Hello")
    assert chatter.prose() == SAID * 20
    assert result(racer)["same"] is True


def test_a_model_that_fails_fails_the_race_with_its_sentence(serve):
    server = serve(ScriptedModel(ValueError("out of ink")))
    socket = Browser(server).socket()
    socket.say("race", text="Hello")
    assert "out of ink" in socket.until("race", state="failed")["text"]
