"""What must be true when a soak has come to rest: nothing lost, nothing told twice, nothing mixed, nothing leaked."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from tests.bench.soak_person import Person
from tests.bench.soak_records import is_beside, open_to_read

# What may be more at the end than it was, and still be no leak.
MORE_THREADS_A_PERSON = 1         # a server's pool grows to the most that it ever needed at once
MORE_FILES = 4                    # those of the database, and a connection that is just being closed
MORE_MEMORY_BYTES = 48 * 2**20    # the last events of 64 chats, and what an allocator keeps for later
DATABASE_BYTES = 8 * 2**20        # the log that SQLite writes ahead ...
DATABASE_BYTES_A_MESSAGE = 16_384  # ... and this for each message ever asked for
REST_PATIENCE_S = 20

ARTICLE = re.compile(r'<article class="message[^"]*" data-testid="message" data-id="([^"]+)" data-role="(\w+)"')
TEXT = re.compile(r'<p class="message__text" data-slot="text">(.*?)</p>', re.DOTALL)


@dataclass(frozen=True)
class Gauges:
    """What a process holds."""
    threads: int
    files: int
    memory_bytes: int

    @classmethod
    def of(cls, pid: int) -> Gauges:
        process = Path(f"/proc/{pid}")
        memory_pages = int((process / "statm").read_text().split()[1])
        return cls(len(os.listdir(process / "task")), len(os.listdir(process / "fd")),
                   memory_pages * os.sysconf("SC_PAGE_SIZE"))


def growth_faults(empty: Gauges, warm: Gauges, end: Gauges, people: int, more_memory_bytes: int) -> list[str]:
    """`empty` before anybody came, `warm` after a while with everybody there, `end` when all had gone."""
    limits = (("threads", end.threads, warm.threads + MORE_THREADS_A_PERSON * people),
              ("open files", end.files, empty.files + MORE_FILES),
              ("bytes of memory", end.memory_bytes, warm.memory_bytes + more_memory_bytes))
    return [f"{count:,} {name} are held at the end; {limit:,} would be no leak" for name, count, limit in limits
            if count > limit]


def rest_of(measure, is_fine, patience_s: float = REST_PATIENCE_S):
    """Measure until it is fine, or for so long: sockets that were killed linger for a moment."""
    until = time.monotonic() + patience_s
    while not is_fine(value := measure()) and time.monotonic() < until:
        time.sleep(0.2)
    return value


def message_faults(people: list[Person], database: Path) -> list[str]:
    """Every message that was acknowledged is stored and shown once, in its order, and nobody's in another's chat."""
    faults = []
    with closing(open_to_read(database)) as stored:
        rows = stored.execute("SELECT * FROM messages ORDER BY conversation, place, answer").fetchall()
        conversations = {row["id"]: row["owner"] for row in stored.execute("SELECT id, owner FROM conversations")}
    by_conversation: dict[str, list] = {id: [] for id in conversations}
    for row in rows:
        by_conversation[row["conversation"]].append(row)
    known = {id: person for person in people for id in person.pages}
    faults += [f"a chat is stored that nobody has: {id}" for id in conversations.keys() - known.keys()]
    faults += [f"{known[id].name}: a chat is lost: {id}" for id in known.keys() - conversations.keys()]
    for id in known.keys() & conversations.keys():
        faults += [f"{known[id].name}: {fault}" for fault in _faults_of_chat(known[id], id, by_conversation[id])]
    owners = Counter(len({conversations[id] for id in person.pages if id in conversations}) for person in people)
    faults += [f"the chats of one person have {count} owners" for count in owners if count > 1]
    return faults


def _faults_of_chat(person: Person, id: str, rows: list) -> list[str]:
    faults = []
    line = [row for row in rows if not is_beside(row)]
    shown = person.pages[id].shown
    if [row["id"] for row in line] != [message for message, _ in shown]:
        faults.append(f"{len(line)} messages are stored in chat {id}, and {len(shown)} were told, or in another order")
    questions = [row["text"] for row in line if row["role"] == "user"]
    if questions != [text for _, text in shown if text is not None]:
        faults.append(f"the questions of chat {id} are stored as {questions}")
    if any(not text.startswith(person.secret) for text in questions):
        faults.append(f"somebody else's question is in chat {id}: {questions}")
    if [row["place"] for row in line] != list(range(len(line))):
        faults.append(f"the places in chat {id} are {[row['place'] for row in line]}")
    faults += [f"an answer in chat {id} never ended" for row in rows
               if row["role"] == "assistant" and row["reason"] is None]
    page = person.browser.get(f"/c/{id}").text
    ids_shown = [match[1] for match in ARTICLE.finditer(page)]
    beside = {row["id"] for row in rows if is_beside(row)}
    if [each for each in ids_shown if each not in beside] != [row["id"] for row in line]:
        faults.append(f"the page of chat {id} shows other messages than are stored")
    if sorted(ids_shown) != sorted(row["id"] for row in rows):
        faults.append(f"the page of chat {id} shows {len(ids_shown)} messages of {len(rows)}")
    if [unescape(text) for text in TEXT.findall(page) if text] != questions:
        faults.append(f"the page of chat {id} shows other questions than are stored")
    return faults


def memory_faults(people: list[Person], browser) -> list[str]:
    """When all is at rest no row is live: those in use are the kept ones of the chats, and hold what these say."""
    def measure():
        chats = [person.browser.cache(id) for person in people for id in person.pages]
        copies = [chat["copies"] for chat in chats if "copies" in chat]
        rows = sum(chat["conversation"]["tokens"] > 0 for chat in chats) + sum(each["rows"] for each in copies)
        tokens = sum(chat["conversation"]["tokens"] for chat in chats) + sum(each["tokens"] for each in copies)
        return rows, tokens, browser.cache()["pool"]

    rows, tokens, pool = rest_of(measure, lambda got: got[:2] == (got[2]["rows_used"], got[2]["tokens"]))
    if (rows, tokens) == (pool["rows_used"], pool["tokens"]) and rows <= pool["rows"]:
        return []
    return [f"the chats keep {rows} rows with {tokens} tokens, and the cache has {pool['rows_used']} of {pool['rows']} "
            f"rows in use, with {pool['tokens']} tokens"]


def database_faults(database: Path, messages: int) -> list[str]:
    limit = DATABASE_BYTES + messages * DATABASE_BYTES_A_MESSAGE
    size = sum(path.stat().st_size for path in database.parent.glob(database.name + "*"))
    if size <= limit:
        return []
    return [f"the database has {size:,} bytes, and {limit:,} would be sane after {messages} messages"]
