"""One chat as a page shows it: kept up to date from the events of the socket alone.

It also notices what must never happen to a page: an event that is told twice, or one that is left out.
"""

from __future__ import annotations


class Page:
    """`shown` are the messages of the chat in order, as (id, text); the text of an answer is not kept. `live` are
    the answers being written, `beside` those that stand to choice beside the last."""

    def __init__(self, conversation: str):
        self.conversation = conversation
        self.seq = 0
        self.shown: list[tuple[str, str | None]] = []
        self.live: set[str] = set()
        self.beside: list[str] = []
        self.is_idle = True
        self.faults: list[str] = []

    @property
    def last_id(self) -> str | None:
        return self.shown[-1][0] if self.shown else None

    @property
    def questions(self) -> list[str]:
        return [id for id, text in self.shown if text is not None]

    @property
    def answers(self) -> list[str]:
        return [id for id, text in self.shown if text is None]

    def take(self, event: dict) -> None:
        self._count(event)
        kind = event["type"]
        if kind == "snapshot":
            self._take_snapshot(event)
        elif kind == "message":
            self._take_message(event)
        elif kind == "done":
            self.live.discard(event["message"])
        elif kind == "picked":
            self._take_pick(event)
        elif kind == "state":
            self.is_idle = event["state"] == "idle"

    def _count(self, event: dict) -> None:
        if "seq" not in event:  # told to one listener alone: an error, or what was asked for twice
            return
        if event["type"] != "snapshot" and event["seq"] != self.seq + 1:
            self.faults.append(f"after event {self.seq} of a chat came {event['seq']} ({event['type']})")
        self.seq = event["seq"]

    def _take_snapshot(self, event: dict) -> None:
        self.shown, self.live, self.beside = [], set(), []
        for view in event["messages"]:
            self.shown.append((view["id"], view["text"] if view["role"] == "user" else None))
            answers = [view, *view.get("others", [])]
            self.live |= {answer["id"] for answer in answers if answer["state"] == "writing"}
            self.beside = [other["id"] for other in answers[1:] if other["choice"] == "open"]
        self.is_idle = event["state"] == "idle"

    def _take_message(self, event: dict) -> None:
        ids = [id for id, _ in self.shown]
        if event.get("repeat") and event["id"] in [*ids, *self.beside]:
            return
        is_answer = event["role"] == "assistant"
        if is_answer and event.get("state") == "writing":
            self.live.add(event["id"])
        if is_answer and event["answer"] > 0 and event["choice"] == "open":
            self.beside.append(event["id"])
            return
        if not event.get("repeat"):
            self.is_idle = False  # an answer follows
        if event["id"] not in ids:  # an answer that goes on is there already
            place = ids.index(event["reply_to"]) + 1 if event["reply_to"] in ids else 0
            self.shown[place:] = [(event["id"], None if is_answer else event["text"])]
        self.beside = []

    def _take_pick(self, event: dict) -> None:
        if self.shown and self.shown[-1][1] is None:
            self.shown[-1] = (event["message"], None)
        self.beside = []
