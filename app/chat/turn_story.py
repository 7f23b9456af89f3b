"""What a turn meant for the memory, in one sentence: what was still remembered, what was read, and why.

A story begins with the turn and is told when the engine has read: only then are the figures known. This module must
never count a token that the engine counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.chat.sentences import sentence

FEW_TOKENS = 4  # the last token, and a mark or two, are read again in any case

SENTENCES = {
    "asked_first": sentence("Your question was {question:tokens}. With the beginning of the chat and its marks, {read} "
                            "were read."),
    "asked": sentence("Your question was {question:tokens}; {reused} before it were still remembered. With the chat's "
                      "marks, {read} were read."),
    "asked_anew": sentence("Your question was {question:tokens}. With what stands before it, {read} were read, in "
                           "{seconds} s."),
    "read_again": sentence("Too many chats at once: this one was forgotten, and has been read again with your "
                           "question, {read:tokens}, {seconds} s."),
    "was_uncached": sentence("What was written without the cache is not remembered, so it has been read now, with your "
                             "question: {read:tokens}, {seconds} s."),
    "edited": sentence("You changed your message number {nth}: {reused:tokens} kept, {forgotten} forgotten, {read} "
                       "read."),
    "edited_anew": sentence("You changed a message of yours, and little before it was remembered any more: "
                            "{read:tokens} were read, in {seconds} s."),
    "again": sentence("You asked for another answer: {reused:tokens} kept, {forgotten} forgotten."),
    "again_anew": sentence("You asked for another answer, and little before it was remembered any more: {read:tokens} "
                           "were read, in {seconds} s."),
    "went_on": sentence("The answer goes on: {reused:tokens} before it were still remembered."),
    "went_on_anew": sentence("The answer goes on, but little of the chat was remembered any more: {read:tokens} were "
                             "read, in {seconds} s."),
}
EDITED_NTH = {
    1: sentence("You changed your first message: {reused:tokens} kept, {forgotten} forgotten, {read} read."),
    2: sentence("You changed your second message: {reused:tokens} kept, {forgotten} forgotten, {read} read."),
    3: sentence("You changed your third message: {reused:tokens} kept, {forgotten} forgotten, {read} read."),
}


@dataclass(frozen=True)
class Story:
    """`kind` is what was asked for: asked, edited, again or went_on. `question` are the tokens of its text, `added`
    those with all marks; `nth` counts the person's messages from 1. `remembered` is what the memory held of the chat
    before, `kept` how much of the prompt was there before this turn. `was_evicted`: it had been given up for another
    chat; `was_uncached`: the reply before was made without the cache."""
    kind: str
    question: int
    added: int
    nth: int
    remembered: int
    kept: int
    was_evicted: bool = False
    was_uncached: bool = False

    def told(self, reused: int, read: int, seconds: float) -> tuple[str, str, dict]:
        """Code, sentence and figures, once the prompt has been read."""
        code = self._code(reused)
        figures = {"reused": reused, "read": read, "seconds": round(seconds, 2 if seconds >= 0.01 else 4)}
        if self.kind in ("asked", "edited"):
            figures["question"] = self.question
        if self.kind == "edited":
            figures["nth"] = self.nth
        if self.kind in ("edited", "again"):
            figures["forgotten"] = max(0, self.remembered - reused)
        is_nth = code == "edited" and self.nth in EDITED_NTH
        return code, EDITED_NTH[self.nth] if is_nth else SENTENCES[code], figures

    def _code(self, reused: int) -> str:
        if self.kind == "asked" and self.nth == 1:
            return "asked_first"
        if self.kept - reused <= max(FEW_TOKENS, self.kept // 10):
            return self.kind
        if self.kind == "asked" and self.was_evicted:
            return "read_again"
        if self.kind == "asked" and self.was_uncached:
            return "was_uncached"
        return f"{self.kind}_anew"
