"""Several answers to one question, as one browser sees them."""

from __future__ import annotations

from app.chat.chats import Caller
from tests.scripted import ASSISTANT_START, ScriptedModel
from tests.web.talk import Browser, wait_until

LETTERS = slice(ord("a"), ord("z") + 1)


class DrawingModel(ScriptedModel):
    """As `ScriptedModel`, but the first letter of each reply is drawn: with another seed it is another."""

    def forward(self, ids, kv_cache=None):
        self.begins = []
        logits = super().forward(ids, kv_cache)
        for row, begins in enumerate(self.begins):
            if begins:
                logits[row, -1, LETTERS] = 100.0
        return logits

    def _next_id(self, ids):
        self.begins.append(ids[-1] == ASSISTANT_START)
        return super()._next_id(ids)


class Table:
    """One browser at a chat with several answers."""

    def __init__(self, server, **settings):
        self.server, self.browser = server, Browser(server)
        self.socket = self.browser.socket()
        self.settings = {"n": 3, "temperature": 1.0, "seed": 7, **settings}

    def ask(self, text="hi", **fields):
        """-> the ids of the answers, all of them finished."""
        start = len(self.socket.heard)
        self.socket.send(text, self.socket.conversation, settings=self.settings, **fields)
        self.socket.until("state", state="idle")
        return [event["id"] for event in self.socket.heard[start:]
                if event["type"] == "message" and event["role"] == "assistant"]

    def ask_and_hold(self, after_tokens):
        """-> the ids of the answers, with the model held after so many tokens of each."""
        model = self.server.model
        model.hold(after_tokens)
        self.socket.send("hi", settings=self.settings)
        wait_until(model.holding.is_set)
        return [self.socket.until("message", role="assistant")["id"] for _ in range(self.settings["n"])]

    def say(self, type, **fields):
        self.socket.say(type, conversation=self.socket.conversation, **fields)

    def pick(self, message):
        self.say("pick", message=message)
        return self.socket.until("picked")

    @property
    def store(self):
        return self.server.replies.store

    def line(self):
        """The texts of the conversation as it goes on."""
        return [message.text for message in self.store.messages(self.socket.conversation)]

    def rows(self):
        return dict(self.server.worker.snapshot().cached_tokens)

    def look(self):
        owner = self.store.conversation(self.socket.conversation).owner
        return self.server.replies.chats.look(Caller(owner), self.socket.conversation)
