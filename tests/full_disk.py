"""A disk that takes nothing, made with SQLite's own means."""

from __future__ import annotations

from contextlib import contextmanager

from app.chat.store import Store

LONG = "word " * 240  # with its tokens more than a page of the database, and so more than is left free in any


@contextmanager
def full_disk(store: Store):
    """The database cannot grow: LONG does not go in, though something short may."""
    store._connection.execute("PRAGMA max_page_count = 1")  # no less than it has
    try:
        yield
    finally:
        store._connection.execute("PRAGMA max_page_count = 1000000")


@contextmanager
def read_only_disk(store: Store):
    """Nothing goes in."""
    store._connection.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        store._connection.execute("PRAGMA query_only = OFF")
