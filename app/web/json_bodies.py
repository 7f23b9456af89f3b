"""The JSON that a request brings is read by the same rule as a frame of the socket: every text in it is clean."""

from __future__ import annotations

from flask import Flask
from flask.json.provider import DefaultJSONProvider

from app.chat.texts import read_json


class CleanJSON(DefaultJSONProvider):
    def loads(self, text: str | bytes, **_) -> object:
        return read_json(text)


def init_json(app: Flask) -> None:
    app.json = CleanJSON(app)
