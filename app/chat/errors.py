"""What a person is told when something cannot be done."""

from __future__ import annotations


class ChatError(ValueError):
    """A wish that is refused. `code` is for the page, the message a sentence for a person, `figures` the
    numbers in it."""

    def __init__(self, code: str, text: str, **figures):
        super().__init__(text)
        self.code, self.text, self.figures = code, text, figures


class NotFoundError(ChatError):
    """There is no such thing, or it is somebody else's: the two are not told apart."""

    def __init__(self, text: str = "There is no such chat."):
        super().__init__("not_found", text)


class StoreError(RuntimeError):
    """The database cannot be opened. The message is a sentence."""
