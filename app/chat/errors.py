"""What a person is told when something cannot be done."""

from __future__ import annotations

from app.chat.sentences import fill, sentence


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


class CannotStoreError(ChatError):
    """The disk takes nothing, for now: what was to be stored is not, not even a part of it. `unstored` is what whoever
    waits for an answer is told, which is kept until it can be stored."""

    SENTENCES = {
        "disk_full": sentence("The disk is full: nothing was changed. Make room on the machine that serves this page, "
                              "and try again."),
        "cannot_store": sentence("The chats cannot be written: nothing was changed. Look at the disk of the machine that "
                                 "serves this page, and try again."),
    }
    UNSTORED = {
        "disk_full": sentence("The disk is full, so this answer cannot be stored. It ends as soon as there is room on "
                              "the machine that serves this page."),
        "cannot_store": sentence("The chats cannot be written, so this answer cannot be stored. It ends as soon as they "
                                 "can be: look at the disk of the machine that serves this page."),
    }

    def __init__(self, code: str, reason: str):
        """`reason` is the database's, for the log."""
        super().__init__(code, self.SENTENCES[code])
        self.reason = reason

    @property
    def unstored(self) -> str:
        return self.UNSTORED[self.code]


class StoreError(RuntimeError):
    """The database cannot be opened. The message is a sentence."""
