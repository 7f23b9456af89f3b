"""Conversations on disk: one SQLite file, so that a restart loses no message.

Any thread may call any method: there is one connection behind one lock, and no call takes long. What
belongs together is written in one `transaction`. What the disk does not take raises CannotStoreError, and the
database is as it was. This module must never know what a message means, nor
put anything of the cache on disk: text and token ids only.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path

from app.chat.conversation import Conversation, MemoryEvent, Message
from app.chat.errors import CannotStoreError, StoreError
from app.chat.schema import migrate

FILE_NAME = "glasschat.sqlite3"
JSON_FIELDS = frozenset({"segments", "ids", "masks", "stats", "settings", "figures"})
EVENTS_SHOWN = 100
# what the disk is to blame for, and what it is called; the others are faults of ours
DISK_CODES = {sqlite3.SQLITE_FULL: "disk_full", sqlite3.SQLITE_READONLY: "cannot_store", sqlite3.SQLITE_IOERR: "cannot_store",
              sqlite3.SQLITE_CANTOPEN: "cannot_store"}
# several answers to one question: those that the conversation does not go on with
BESIDE = "(choice = 'folded' OR (choice = 'open' AND answer > 0))"


class Store:
    """The database in `folder`, which is made if it is not there."""

    def __init__(self, folder: Path | str):
        self.path = Path(folder) / FILE_NAME
        self._lock = threading.RLock()
        self._depth = 0
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None, timeout=10)
            self._connection.row_factory = sqlite3.Row
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
                self._connection.execute(f"PRAGMA {pragma}")
            migrate(self._connection)
            self.path.chmod(0o600)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"the database {self.path} cannot be opened: {error}") from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside is written, or none of it."""
        with self._lock:
            outermost = self._depth == 0
            if outermost:
                self._execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
                if outermost:
                    self._execute("COMMIT")
            except BaseException:
                if outermost and self._connection.in_transaction:  # it is not, where a full disk has ended it
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    # --- conversations

    def conversation(self, id: str) -> Conversation | None:
        return next(self._read(Conversation, "SELECT * FROM conversations WHERE id = ?", id), None)

    def conversations(self, owner: str) -> list[Conversation]:
        """Those of one browser session, the last used first."""
        query = "SELECT * FROM conversations WHERE owner = ? ORDER BY changed_s DESC, rowid DESC"
        return list(self._read(Conversation, query, owner))

    def conversations_of_owners_like(self, pattern: str) -> list[Conversation]:
        return list(self._read(Conversation, "SELECT * FROM conversations WHERE owner LIKE ?", pattern))

    def add_conversation(self, conversation: Conversation) -> None:
        self._insert("conversations", conversation)

    def update_conversation(self, id: str, **changes) -> None:
        self._update("conversations", id, changes)

    def delete_conversation(self, id: str) -> None:
        self._write("DELETE FROM conversations WHERE id = ?", id)

    # --- messages

    def message(self, id: str) -> Message | None:
        return next(self._read(Message, "SELECT * FROM messages WHERE id = ?", id), None)

    def messages(self, conversation: str) -> list[Message]:
        """The conversation: of several answers to one question that which it goes on with."""
        query = f"SELECT * FROM messages WHERE conversation = ? AND NOT {BESIDE} ORDER BY place"
        return list(self._read(Message, query, conversation))

    def answers_beside(self, conversation: str) -> list[Message]:
        """The other answers to its questions."""
        query = f"SELECT * FROM messages WHERE conversation = ? AND {BESIDE} ORDER BY place, answer"
        return list(self._read(Message, query, conversation))

    def last_message(self, conversation: str) -> Message | None:
        query = f"SELECT * FROM messages WHERE conversation = ? AND NOT {BESIDE} ORDER BY place DESC LIMIT 1"
        return next(self._read(Message, query, conversation), None)

    def message_of_request(self, owner: str, request: str) -> Message | None:
        """What this session's request `request` was answered with."""
        query = """SELECT messages.* FROM messages JOIN conversations ON conversations.id = messages.conversation
                   WHERE messages.request = ? AND conversations.owner = ? ORDER BY place DESC LIMIT 1"""
        return next(self._read(Message, query, request, owner), None)

    def add_message(self, message: Message) -> None:
        self._insert("messages", message)

    def update_message(self, id: str, **changes) -> None:
        self._update("messages", id, changes)

    def delete_messages_from(self, conversation: str, place: int) -> None:
        self._write("DELETE FROM messages WHERE conversation = ? AND place >= ?", conversation, place)

    def keep_chances(self, message: str, records: bytes) -> None:
        """How likely the tokens of a reply were, in place of what was kept of it before."""
        self._write("INSERT OR REPLACE INTO chances (message, records) VALUES (?, ?)", message, records)

    def chances(self, messages: list[str]) -> dict[str, bytes]:
        """By message, of those of which it is known."""
        places = ", ".join("?" * len(messages))
        with self._lock:
            rows = self._connection.execute(f"SELECT message, records FROM chances WHERE message IN ({places})", messages)
            return {row["message"]: row["records"] for row in rows}

    def keep_timeline(self, message: str, runs: list[dict]) -> None:
        """When a reply was read and written, in place of what was kept of it before."""
        text = json.dumps(runs, ensure_ascii=False, separators=(",", ":"))
        self._write("INSERT OR REPLACE INTO timelines (message, runs) VALUES (?, ?)", message, text)

    def timelines(self, messages: list[str]) -> dict[str, list[dict]]:
        """By message, of those of which it is known."""
        places = ", ".join("?" * len(messages))
        with self._lock:
            rows = self._connection.execute(f"SELECT message, runs FROM timelines WHERE message IN ({places})", messages)
            return {row["message"]: json.loads(row["runs"]) for row in rows}

    def unfinished_replies(self) -> list[Message]:
        return list(self._read(Message, "SELECT * FROM messages WHERE role = 'assistant' AND reason IS NULL"))

    # --- what happened to the memory

    def add_event(self, event: MemoryEvent) -> None:
        self._insert("events", event)

    def events(self, conversation: str) -> list[MemoryEvent]:
        """The last hundred, oldest first."""
        query = f"SELECT * FROM events WHERE conversation = ? ORDER BY id DESC LIMIT {EVENTS_SHOWN}"
        return list(self._read(MemoryEvent, query, conversation))[::-1]

    # --- rows and records

    def _read(self, kind, query: str, *arguments):
        with self._lock:
            rows = self._connection.execute(query, arguments).fetchall()
        names = {field.name for field in fields(kind)}
        for row in rows:
            values = {name: row[name] for name in row.keys() if name in names}
            for name in JSON_FIELDS & values.keys():
                values[name] = json.loads(values[name]) if values[name] is not None else None
            if "left_out" in values:
                values["left_out"] = bool(values["left_out"])
            yield kind(**values)

    def _insert(self, table: str, record) -> None:
        values = _as_columns(asdict(record))
        places = ", ".join("?" * len(values))
        self._write(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})", *values.values())

    def _update(self, table: str, id: str, changes: dict) -> None:
        values = _as_columns(changes)
        places = ", ".join(f"{name} = ?" for name in values)
        self._write(f"UPDATE {table} SET {places} WHERE id = ?", *values.values(), id)

    def _write(self, query: str, *arguments) -> None:
        with self._lock:
            self._execute(query, arguments)

    def _execute(self, query: str, arguments=()) -> None:
        try:
            self._connection.execute(query, arguments)
        except sqlite3.Error as error:
            code = DISK_CODES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)  # the rest says more exactly what it was
            if code is None:
                raise
            raise CannotStoreError(code, str(error)) from error


def _as_columns(values: dict) -> dict:
    def as_column(name, value):
        is_json = name in JSON_FIELDS and value is not None
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if is_json else value

    return {name: as_column(name, value) for name, value in values.items()}
