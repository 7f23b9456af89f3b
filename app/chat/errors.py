"""What a person is told when something cannot be done."""

from __future__ import annotations

from app.chat.sentences import fill


class ChatError(ValueError):
    """A wish that is refused. `code` is for the page, the sentence for a person, with `figures` in its `{slots}`
    (see `app.chat.sentences`); `text` is the whole of it, in English."""

    def __init__(self, code: str, sentence: str, **figures):
        super().__init__(fill(sentence, figures))
        self.code, self.sentence, self.figures = code, sentence, figures

    @property
    def text(self) -> str:
        return str(self)


class NotFoundError(ChatError):
    """There is no such thing, or it is somebody else's: the two are not told apart."""

    def __init__(self, sentence: str = "There is no such chat."):
        super().__init__("not_found", sentence)


class StoreError(RuntimeError):
    """The database cannot be opened. The message is a sentence."""
