"""Conversations on disk."""

import sqlite3
import stat
import threading

import pytest

from app.chat import schema
from app.chat.conversation import Conversation, MemoryEvent, Message
from app.chat.errors import CannotStoreError, StoreError
from app.chat.store import FILE_NAME, Store
from tests.full_disk import full_disk, read_only_disk


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "data")
    yield store
    store.close()


def test_what_was_written_is_read_again_after_a_restart(store):
    conversation = Conversation(owner="me", title="a <title> \0 字")
    message = Message(
        conversation.id,
        0,
        "assistant",
        text="hi",
        segments=[{"type": "text", "text": "hi"}],
        ids=[1, 2],
        masks=[1, 0],
        stats={"seed": 2**63 - 1},
        left_out=True,
    )
    store.add_conversation(conversation)
    store.add_message(message)
    store.add_event(MemoryEvent(conversation.id, "evicted", "A sentence.", {"tokens": 3}))
    store.close()
    again = Store(store.path.parent)
    assert again.conversations("me") == [conversation]
    assert again.messages(conversation.id) == [message]
    assert again.events(conversation.id)[0].figures == {"tokens": 3}
    again.close()
    store.__init__(store.path.parent)


def test_deleting_a_conversation_deletes_all_of_it(store):
    conversation = Conversation(owner="me", title="t")
    store.add_conversation(conversation)
    store.add_message(Message(conversation.id, 0, "user"))
    store.add_event(MemoryEvent(conversation.id, "code", "text"))
    store.delete_conversation(conversation.id)
    assert (store.conversations("me"), store.messages(conversation.id), store.events(conversation.id)) == ([], [], [])


def test_a_transaction_that_fails_leaves_nothing(store):
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.add_conversation(Conversation(owner="me", title="t"))
        with store.transaction():
            1 / 0
    assert store.conversations("me") == []
    store.add_conversation(Conversation(owner="me", title="t"))
    assert len(store.conversations("me")) == 1


def test_requests_of_other_sessions_are_not_found(store):
    conversation = Conversation(owner="me", title="t")
    store.add_conversation(conversation)
    store.add_message(Message(conversation.id, 0, "user", request="r1"))
    assert store.message_of_request("me", "r1").place == 0
    assert store.message_of_request("you", "r1") is None


def test_threads_may_write_at_once(store):
    conversation = Conversation(owner="me", title="t")
    store.add_conversation(conversation)

    def write(first):
        for n in range(50):
            with store.transaction():
                store.add_message(Message(conversation.id, first + n, "user"))

    threads = [threading.Thread(target=write, args=(1000 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.messages(conversation.id)) == 200


def test_the_database_is_for_its_owner_alone(store):
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def test_a_database_of_a_later_version_is_refused_with_a_sentence(tmp_path):
    Store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(schema.NewerSchemaError, match="version 99"):
        Store(tmp_path)


def test_a_file_that_is_no_database_is_refused_with_a_sentence(tmp_path):
    (tmp_path / FILE_NAME).write_text("not a database, but long enough to be looked at as one " * 20)
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(tmp_path)


def test_an_old_database_is_brought_to_the_newest_version(tmp_path, monkeypatch):
    Store(tmp_path).close()
    monkeypatch.setattr(schema, "STEPS", [*schema.STEPS, "ALTER TABLE conversations ADD COLUMN colour TEXT;"])
    Store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(schema.STEPS),)
    assert "colour" in [row[1] for row in connection.execute("PRAGMA table_info(conversations)")]
    connection.close()


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    Store(tmp_path).close()
    monkeypatch.setattr(
        schema, "STEPS", [*schema.STEPS, "ALTER TABLE conversations ADD COLUMN colour TEXT; SELECT nonsense;"]
    )
    with pytest.raises(StoreError):
        Store(tmp_path)
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    assert "colour" not in [row[1] for row in connection.execute("PRAGMA table_info(conversations)")]
    connection.close()


def test_chats_of_the_first_version_are_kept(tmp_path):
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.executescript(f"{schema.STEPS[0]} PRAGMA user_version = 1;")
    connection.execute("INSERT INTO conversations VALUES ('c', 'me', 'title', NULL, 7, 1.0, 2.0)")
    for place, role, left_out in ((0, "user", 1), (1, "assistant", 0)):
        connection.execute("INSERT INTO messages (id, conversation, place, role, text, segments, ids, request, left_out, "
                           "created_s) VALUES (?, 'c', ?, ?, 'said', '[]', '[1,2]', ?, ?, 3.0)",
                           (f"m{place}", place, role, f"r{place}", left_out))
    connection.commit()
    connection.close()
    store = Store(tmp_path)
    first, second = store.messages("c")
    assert (first.id, first.text, first.ids, first.request, first.left_out) == ("m0", "said", [1, 2], "r0", True)
    assert (second.role, second.answer, second.choice, second.created_s) == ("assistant", 0, "only", 3.0)
    store.delete_conversation("c")
    assert store.messages("c") == []
    store.close()


def test_of_several_answers_the_conversation_has_the_first_and_then_the_picked_one(store):
    conversation = Conversation(owner="me", title="t")
    store.add_conversation(conversation)
    store.add_message(Message(conversation.id, 0, "user", id="question"))
    for answer in range(3):
        store.add_message(Message(conversation.id, 1, "assistant", id=f"a{answer}", answer=answer, choice="open"))

    def ids(messages):
        return [message.id for message in messages]

    assert ids(store.messages(conversation.id)) == ["question", "a0"]
    assert ids(store.answers_beside(conversation.id)) == ["a1", "a2"]
    for answer in range(3):
        store.update_message(f"a{answer}", choice="picked" if answer == 1 else "folded")
    assert ids(store.messages(conversation.id)) == ["question", "a1"]
    assert ids(store.answers_beside(conversation.id)) == ["a0", "a2"]
    assert store.last_message(conversation.id).id == "a1"
    assert all(message.is_beside for message in store.answers_beside(conversation.id))


def test_what_finds_no_room_is_not_there_and_the_next_that_does_is(store):
    conversation = Conversation(owner="me", title="t")
    store.add_conversation(conversation)
    with full_disk(store):
        for _ in range(2):
            with pytest.raises(CannotStoreError) as error, store.transaction():
                store.update_conversation(conversation.id, title="new")
                store.add_message(Message(conversation.id, 0, "user", text="x" * 10_000))
            assert error.value.code == "disk_full"
    assert store.conversation(conversation.id).title == "t" and store.messages(conversation.id) == []
    with store.transaction():
        store.add_message(Message(conversation.id, 0, "user", text="x" * 10_000))
    assert len(store.messages(conversation.id)) == 1


def test_a_disk_that_takes_nothing_has_a_name_of_its_own(store):
    with read_only_disk(store), pytest.raises(CannotStoreError) as error:
        store.add_conversation(Conversation(owner="me", title="t"))
    assert error.value.code == "cannot_store" and "readonly" in error.value.reason


def test_what_cannot_be_written_at_its_very_end_is_taken_back(store):
    with pytest.raises(sqlite3.IntegrityError), store.transaction():
        store._connection.execute("PRAGMA defer_foreign_keys = ON")
        store.add_message(Message("nobody's", 0, "user"))  # found wrong by COMMIT
    store.add_conversation(Conversation(owner="me", title="t"))
    with store.transaction():
        assert store.messages("nobody's") == [] and len(store.conversations("me")) == 1
