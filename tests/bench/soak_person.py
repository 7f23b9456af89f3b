"""One person of the soak: a browser session that acts at random, and remembers what it was told.

What it does is drawn with its own seed, so that a soak acts alike each time, as far as its server does.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter

from simple_websocket import ConnectionClosed

from tests.bench.soak_page import Page
from tests.web.talk import Browser, Socket

TOPICS = ("otters", "the moon", "a lighthouse", "bread", "old maps", "a red bicycle", "tea", "glass", "whales")
ACK_PATIENCE_S = 120
IDLE_PATIENCE_S = 240


class Person:
    """`records` gets what each finished answer was made of: see `soak_records`."""

    def __init__(self, number: int, server, seed: int, until: float, records, max_tokens: int = 16):
        self.name = f"person {number}"
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self.random = random.Random(f"{seed} {number}")
        self.secret = "".join(self.random.choices("bcdfghjklmnpqrstvwxz", k=9))
        self.others: list[str] = []       # the secrets of all the others
        self.acts, self.refusals = Counter(), Counter()
        self.faults: list[str] = []
        self.pages: dict[str, Page] = {}
        self.browser = Browser(server)
        self._records, self._until, self._max_tokens = records, until, max_tokens
        self._current: Page | None = None
        self._serial = 0
        self._awaited: dict | None = None  # a wish that was not acknowledged yet
        self._allowed: set[str] = set()    # what it may be refused for
        self._socket = self.browser.socket()
        self._lost: list[Page] = []        # those that the present socket has not opened

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        try:
            while time.monotonic() < self._until:
                self._listen(self.random.choice((0.0, 0.05, 0.3, 1.0)))
                self._act()
            self._wait_for_idle()
        except Exception as error:
            self.faults.append(f"{self.name} could not go on: {type(error).__name__}: {error}")
        finally:
            self._socket.close()

    @property
    def asked(self) -> int:
        """How many messages there may ever have been."""
        return 4 * self._serial

    def all_faults(self) -> list[str]:
        return [*self.faults, *(fault for page in self.pages.values() for fault in page.faults)]

    # --- acts

    def _act(self) -> None:
        page = self._current
        if page is None or not self.pages:
            return self._begin()
        if page.is_idle and not page.live:
            names, weights = zip(("send", 40), ("edit", 8), ("regenerate", 8), ("go_on", 4), ("pick", 8), ("begin", 6),
                                 ("delete", 4), ("turn_to_another", 6), ("kill", 5), ("reload", 6), strict=True)
        else:
            names, weights = zip(("nothing", 60), ("stop", 14), ("stop_twice", 6), ("send_behind_stop", 6),
                                 ("begin", 3), ("delete", 3), ("turn_to_another", 3), ("kill", 6), ("reload", 6),
                                 strict=True)
        name = self.random.choices(names, weights)[0]
        self.acts[name.replace("_", " ")] += 1
        getattr(self, "_" + name)()

    def _nothing(self) -> None:
        pass

    def _question(self) -> dict:
        self._serial += 1
        text = f"{self.secret} {self._serial}: one sentence about {self.random.choice(TOPICS)}, please."
        text += " It is for a friend who likes long questions." * self.random.choice((0, 0, 0, 1, 8))
        return {"text": text, "settings": self._settings()}

    def _settings(self) -> dict:
        return {"temperature": 0, "max_tokens": self.random.choice((3, self._max_tokens)),
                "n": self.random.choice((1, 1, 1, 1, 2, 3)), "use_cache": True}

    def _begin(self) -> None:
        self._ask("send", conversation=None, **self._question())

    def _send(self, allowed=frozenset()) -> None:
        base = self.random.choice([self._current.last_id, *self._current.beside])
        self._ask("send", allowed, conversation=self._current.conversation, base=base, **self._question())

    def _edit(self) -> None:
        self._ask("edit", conversation=self._current.conversation,
                  message=self.random.choice(self._current.questions[-3:]), **self._question())

    def _regenerate(self) -> None:
        self._ask("regenerate", conversation=self._current.conversation,
                  message=self.random.choice(self._current.answers[-2:]), settings=self._settings())

    def _go_on(self) -> None:
        self._ask("continue", {"complete", "not_picked"}, conversation=self._current.conversation,
                  message=self._current.answers[-1], settings=self._settings())

    def _pick(self) -> None:
        page = self._current
        if page.beside:
            self._say("pick", conversation=page.conversation, message=self.random.choice([page.last_id, *page.beside]))
            self._listen_until(lambda: not page.beside, "what was picked")  # or the next question stands on another

    def _stop(self) -> None:
        for id in self.random.sample(sorted(self._current.live), len(self._current.live)):
            self._say("stop", conversation=self._current.conversation, message=id)

    def _stop_twice(self) -> None:
        self._stop()
        self._stop()

    def _send_behind_stop(self) -> None:
        self._stop()
        self._send({"busy"})  # where the machine takes longer to stop than the server waits

    def _delete(self) -> None:
        page = self._current
        self._say("delete", conversation=page.conversation)
        self._listen_until(lambda: page.conversation not in self.pages, "a deletion to be told")

    def _turn_to_another(self) -> None:
        self._current = self.pages[self.random.choice(sorted(self.pages))]
        self._open(self._current)

    # --- the socket

    def _kill(self) -> None:
        """The network breaks: no goodbye; the page comes back by number."""
        self._socket.kill()
        self._come_back()

    def _reload(self) -> None:
        """A page that is loaded again knows only what the server tells it."""
        self._socket.close()
        for id in self.pages:
            self.pages[id] = self._forgetful(self.pages[id])
        self._current = self.pages[self._current.conversation] if self._current else None
        self._come_back()

    @staticmethod
    def _forgetful(old: Page) -> Page:
        page = Page(old.conversation)
        page.faults = old.faults
        return page

    def _come_back(self) -> None:
        self._socket = self.browser.socket()
        self._lost = list(self.pages.values())
        if self._current is not None:
            self._open(self._current)
        if self._awaited is not None:  # as a page does: it cannot know whether the question arrived
            self._socket.say(**self._awaited)

    def _open(self, page: Page) -> None:
        if page not in self._lost:
            return
        self._lost.remove(page)
        seq = page.seq
        self._say("open", conversation=page.conversation, **({"after": seq} if seq else {}))
        if not seq:
            self._listen_until(lambda: page.seq > 0, "a snapshot")

    def _say(self, type: str, **fields) -> None:
        try:
            self._socket.say(type, **fields)
        except (ConnectionClosed, OSError) as error:
            self.faults.append(f"{self.name} lost its socket: {error}")
            self._come_back()

    def _ask(self, type: str, allowed=frozenset(), **fields) -> None:
        """Say what begins a reply, and wait until it is acknowledged or refused. Now and then the line breaks first."""
        self._serial += 1
        request = f"{self.secret}-{self._serial}"
        self._awaited = {"type": type, "request": request, **fields}
        self._allowed = {"queue_full", *allowed}
        self._say(**self._awaited)
        if self.random.random() < 0.1:
            self.acts["kill behind a question"] += 1
            time.sleep(self.random.choice((0, 0.01, 0.1)))
            self._kill()
        self._listen_until(lambda: self._awaited is None, f"an answer to a {type}")

    # --- what is heard

    def _listen(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (event := self._next(max(0.0, until - time.monotonic()))) is not None:
            self._hear(event)

    def _listen_until(self, condition, what: str, patience_s: float = ACK_PATIENCE_S) -> None:
        until = time.monotonic() + patience_s
        while not condition():
            if time.monotonic() > until:
                raise TimeoutError(f"{what} did not come for {patience_s} s")
            if (event := self._next(0.1)) is not None:
                self._hear(event)

    def _next(self, timeout_s: float) -> dict | None:
        try:
            frame = self._socket.client.receive(timeout=timeout_s)
        except ConnectionClosed as error:
            self.faults.append(f"{self.name} was let go by the server: {error}")
            self._come_back()
            return None
        if frame is None:
            return None
        if any(secret in frame for secret in self.others):
            self.faults.append(f"{self.name} heard of somebody else's chat: {frame[:200]}")
        return json.loads(frame)

    def _hear(self, event: dict) -> None:
        kind, conversation = event["type"], event.get("conversation")
        if kind == "error":
            return self._hear_error(event)
        if kind == "conversation" and event.get("deleted"):
            page = self.pages.pop(conversation, None)
            self._current = None if page is self._current else self._current
            return
        if conversation is None:
            return
        if conversation not in self.pages:
            if kind not in ("conversation", "snapshot"):  # the last words of a chat that was deleted
                return
            self._current = self.pages[conversation] = Page(conversation)
        page = self.pages[conversation]
        page.take(event)
        if kind == "done":
            self._records.note(conversation, event, self.faults)
        told = event["messages"] if kind == "snapshot" else [event] if kind == "message" else []
        if self._awaited and any(message["request"] == self._awaited["request"] for message in told):
            self._awaited = None

    def _hear_error(self, event: dict) -> None:
        self.refusals[event["code"]] += 1
        is_own = self._awaited and event.get("request") == self._awaited["request"]
        if is_own and (event["code"] in self._allowed or event["code"] == "stale" and self._was_told_more()):
            self._awaited = None
        else:
            wish = self._awaited and self._awaited["type"]
            raise AssertionError(f"refused ({wish}): {event['code']}: {event['text']}")

    def _was_told_more(self) -> bool:
        """Since the wish was said: of a question that had been sent twice, as the line broke behind it, the second may be
        refused while the first is still on its way."""
        page = self.pages[self._awaited["conversation"]]
        return self._awaited["base"] not in [page.last_id, *page.beside]

    def _wait_for_idle(self) -> None:
        for page in list(self.pages.values()):
            self._open(page)
            self._listen_until(lambda page=page: page.is_idle and not page.live, "the end of a reply", IDLE_PATIENCE_S)
        self._listen(0.3)
