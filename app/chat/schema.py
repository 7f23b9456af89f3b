"""The shape of the database, as a list of steps: step n leads from version n to version n + 1.

A step that has been released is never changed; a new one is added. The version is SQLite's `user_version`.
"""

from __future__ import annotations

import sqlite3

from app.chat.errors import StoreError

STEPS = [
    """
    CREATE TABLE conversations (
        id TEXT PRIMARY KEY,
        owner TEXT NOT NULL,              -- the browser session that began it
        title TEXT NOT NULL,
        system TEXT,                      -- the system prompt that its first message was encoded with
        seq INTEGER NOT NULL DEFAULT 0,   -- no event of it has a higher number
        created_s REAL NOT NULL,
        changed_s REAL NOT NULL
    );
    CREATE INDEX conversations_by_owner ON conversations (owner, changed_s);
    CREATE TABLE messages (
        id TEXT PRIMARY KEY,
        conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        place INTEGER NOT NULL,           -- 0 for the first
        role TEXT NOT NULL,               -- user | assistant
        reply_to TEXT,                    -- the message before it
        text TEXT NOT NULL,               -- a user's: as typed; a reply's: its prose
        segments TEXT NOT NULL,           -- JSON; a reply's prose and tool calls
        ids TEXT,                         -- JSON; the tokens that stand for it in a prompt, NULL: to be encoded
        masks TEXT,                       -- JSON; 1 sampled, 0 forced
        fingerprint TEXT,                 -- of the tokenizer that `ids` belong to
        reason TEXT,                      -- why a reply ended, NULL while it is written
        error TEXT,                       -- a sentence, with reason error
        stats TEXT,                       -- JSON
        settings TEXT,                    -- JSON; what a reply was asked for with
        request TEXT,                     -- the page's own id of the send that this answers
        left_out INTEGER NOT NULL DEFAULT 0,  -- 1: no longer part of the prompt
        created_s REAL NOT NULL,
        UNIQUE (conversation, place)
    );
    CREATE INDEX messages_by_request ON messages (request) WHERE request IS NOT NULL;
    CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        code TEXT NOT NULL,
        text TEXT NOT NULL,               -- a sentence about the memory
        figures TEXT NOT NULL,            -- JSON
        created_s REAL NOT NULL
    );
    CREATE INDEX events_by_conversation ON events (conversation);
    """,
    # Several answers to one question share its place: only one of them is part of the conversation.
    """
    CREATE TABLE messages_with_answers (
        id TEXT PRIMARY KEY,
        conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        role TEXT NOT NULL,
        reply_to TEXT,
        text TEXT NOT NULL,
        segments TEXT NOT NULL,
        ids TEXT,
        masks TEXT,
        fingerprint TEXT,
        reason TEXT,
        error TEXT,
        stats TEXT,
        settings TEXT,
        request TEXT,
        left_out INTEGER NOT NULL DEFAULT 0,
        answer INTEGER NOT NULL DEFAULT 0,    -- which of the answers to its question it is, from 0 on
        choice TEXT NOT NULL DEFAULT 'only',  -- only | open | picked | folded
        created_s REAL NOT NULL
    );
    INSERT INTO messages_with_answers (id, conversation, place, role, reply_to, text, segments, ids, masks, fingerprint,
                                       reason, error, stats, settings, request, left_out, created_s)
        SELECT id, conversation, place, role, reply_to, text, segments, ids, masks, fingerprint,
               reason, error, stats, settings, request, left_out, created_s FROM messages;
    DROP TABLE messages;
    ALTER TABLE messages_with_answers RENAME TO messages;
    CREATE UNIQUE INDEX messages_by_answer ON messages (conversation, place, answer);
    CREATE INDEX messages_by_request ON messages (request) WHERE request IS NOT NULL;
    """,
    # How likely the tokens of a reply were. Apart from the messages, which are read far more often.
    """
    CREATE TABLE chances (
        message TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
        records BLOB NOT NULL  -- see chance_records
    );
    """,
    # When each token of a reply came. Apart from the messages, too.
    """
    CREATE TABLE timelines (
        message TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
        runs TEXT NOT NULL  -- JSON; see timeline
    );
    """,
    # When a chat was taken in from a file: what is older was not made here.
    "ALTER TABLE conversations ADD COLUMN imported_s REAL;",
]


class NewerSchemaError(StoreError):
    """The database was written by a later version of this program."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the database to the newest version, each step whole or not at all."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(STEPS):
        raise NewerSchemaError(f"the database has version {version}, and this Glasschat knows {len(STEPS)} at most: "
                               "use a newer Glasschat, or another --data folder")
    for number in range(version, len(STEPS)):
        try:
            connection.executescript(f"BEGIN IMMEDIATE; {STEPS[number]} PRAGMA user_version = {number + 1}; COMMIT;")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
