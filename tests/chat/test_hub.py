"""Who hears what (T15, BC-18): nothing twice, nothing left out, nobody waited for."""

import json

import pytest

from app.chat import hub as hub_module
from app.chat.conversation import Conversation
from app.chat.errors import NotFoundError
from app.chat.hub import Hub, Outbox, to_json
from app.chat.store import Store


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    yield store
    store.close()


@pytest.fixture
def channel(store):
    conversation = Conversation(owner="me", title="t")
    store.add_conversation(conversation)
    return Hub(store).channel(conversation.id)


def heard(outbox):
    frames = []
    while (frame := outbox.take()) is not None:
        frames.append(json.loads(frame))
    return frames


def snapshot():
    return {"type": "snapshot"}


def test_events_are_numbered_one_by_one(channel):
    outbox = Outbox("me")
    channel.join(outbox, None, snapshot)
    for n in range(3):
        channel.publish({"type": "event", "n": n})
    assert [(event["seq"], event["n"], event["conversation"]) for event in heard(outbox)] == \
        [(n + 1, n, channel.conversation) for n in range(3)]


def test_whoever_was_away_gets_what_they_missed_and_then_goes_on(channel):
    for n in range(5):
        channel.publish({"type": "event", "n": n})
    outbox = Outbox("me")
    channel.join(outbox, 3, snapshot)
    channel.publish({"type": "event", "n": 5})
    assert [event["seq"] for event in heard(outbox)] == [4, 5, 6]


@pytest.mark.parametrize("after", [0, 1, 99, -1])
def test_what_is_no_longer_kept_is_replaced_by_a_snapshot(channel, after, monkeypatch):
    monkeypatch.setattr(hub_module, "EVENTS_REPLAYED", 3)
    for _ in range(5):
        channel.publish({"type": "event"})
    outbox = Outbox("me")
    channel.join(outbox, after, snapshot)
    channel.publish({"type": "event"})
    assert [(event["type"], event["seq"]) for event in heard(outbox)] == [("snapshot", 5), ("event", 6)]


def test_opening_twice_tells_nothing_twice(channel):
    channel.publish({"type": "event"})
    outbox = Outbox("me")
    channel.join(outbox, 0, snapshot)
    channel.join(outbox, 0, snapshot)
    channel.publish({"type": "event"})
    assert [event["seq"] for event in heard(outbox)] == [1, 2]


def test_a_slow_listener_is_dropped_and_comes_back_by_number(channel, monkeypatch):
    monkeypatch.setattr(hub_module, "OUTBOX_EVENTS", 2)
    slow, quick = Outbox("me"), Outbox("me")
    channel.join(slow, None, snapshot)
    channel.join(quick, None, snapshot)
    got = []
    for _ in range(4):
        channel.publish({"type": "event"})
        got += heard(quick)
    assert slow.overflowed and slow not in channel.listeners
    assert [event["seq"] for event in got] == [1, 2, 3, 4]
    again = Outbox("me")
    monkeypatch.setattr(hub_module, "OUTBOX_EVENTS", 10)
    channel.join(again, heard(slow)[-1]["seq"], snapshot)
    assert [event["seq"] for event in heard(again)] == [3, 4]


def test_numbers_never_go_back_over_a_restart(store, channel):
    for _ in range(3):
        channel.publish({"type": "event"})
    crashed = Hub(store).channel(channel.conversation)
    assert crashed.seq >= 3
    channel.settle()
    assert Hub(store).channel(channel.conversation).seq == 3


def test_numbers_are_not_written_to_disk_one_by_one(store, channel, monkeypatch):
    writes = []
    monkeypatch.setattr(store, "update_conversation", lambda id, **changes: writes.append(changes))
    for _ in range(900):
        channel.publish({"type": "event"})
    assert len(writes) == 1


def test_only_the_conversations_used_last_keep_their_events(store, monkeypatch):
    monkeypatch.setattr(hub_module, "CHANNELS_WITH_EVENTS", 1)
    hub, channels = Hub(store), []
    for _ in range(2):
        conversation = Conversation(owner="me", title="t")
        store.add_conversation(conversation)
        channels.append(hub.channel(conversation.id))
        channels[-1].publish({"type": "event"})
    for channel, expected in zip(channels, ("snapshot", "event")):
        outbox = Outbox("me")
        channel.join(outbox, 0, snapshot)
        assert heard(outbox)[0]["type"] == expected


def test_goodbye_is_said_to_the_listeners_of_one_session(store):
    hub = Hub(store)
    mine, yours = Outbox("me"), Outbox("you")
    hub.connect(mine)
    hub.connect(yours)
    hub.close("me")
    assert (mine.closed, yours.closed) == (True, False)


def test_there_is_no_channel_without_a_conversation(store):
    with pytest.raises(NotFoundError):
        Hub(store).channel("nothing")


def test_half_a_character_in_an_event_does_not_keep_it_from_being_sent():
    assert json.loads(to_json({"type": "x", "text": "a\ud800b é"}).encode()) == {"type": "x", "text": "a\ufffdb é"}
