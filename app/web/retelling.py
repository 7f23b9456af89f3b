"""What the server says, in the reader's language.

Events, messages and errors carry their sentence in English, with its slots and figures beside it: here, where they
leave the server, the sentence is looked up and filled anew. A stored one keeps the wording of its day, which `FORMER`
keeps translated. What was stored before sentences had slots, or what has no translation, is told in English. Nothing
that is given is changed, since others are told the same.
"""

from __future__ import annotations

import json

from app.chat.errors import ChatError
from app.chat.hub import to_json
from app.chat.sentences import fill, sentence
from app.web.languages import ENGLISH, language, number, translated

FAILURES = (sentence("The engine failed at this reply: {error}"), sentence("The engine failed at this race: {error}"))

# Of events and calls in stored chats, which are worded differently now: a wording that is changed goes here.
FORMER = (sentence("The cache was off: for {made:tokens} of answer, {positions} positions were computed. With it there "
                   "would have been {with_cache} at most."),)


def retold(text: str, figures: dict) -> str:
    return fill(translated(text), figures, number) if text else ""


def error_text(error: ChatError) -> str:
    return retold(error.sentence, error.figures)


def retold_frame(frame: str) -> str:
    """A frame of the socket. Tokens, the most of them by far, are let through as they are."""
    if language() == ENGLISH or frame.startswith(('{"type":"token"', '{"type":"cache"')):
        return frame
    return to_json(retold_event(json.loads(frame)))


def retold_event(event: dict) -> dict:
    match event.get("type"):
        case "event":
            return retold_memory_event(event)
        case "tool_call":
            return _retold_call(event)
        case "message":
            return retold_message(event)
        case "done":
            return {**event, "text": known(event.get("text")), "parts": _retold_parts(event.get("parts"))}
        case "state" | "race" if event.get("text"):
            return {**event, "text": known(event["text"])}
        case "snapshot":
            return {**event, "text": known(event.get("text")),
                    "messages": [retold_message(message) for message in event["messages"]],
                    "events": [retold_memory_event(past) for past in event["events"]]}
    return event


def retold_memory_event(event: dict) -> dict:
    return {**event, "text": retold(event["sentence"], event["figures"])}


def retold_message(message: dict) -> dict:
    told = {**message, "parts": _retold_parts(message.get("parts"))}
    if message.get("error"):
        told["error"] = known(message["error"])
    if message.get("others"):
        told["others"] = [retold_message(other) for other in message["others"]]
    return told


def _retold_parts(parts: list[dict] | None) -> list[dict]:
    return [_retold_call(part) if part["type"] == "tool_call" else part for part in parts or []]


def _retold_call(call: dict) -> dict:
    refusal = call.get("refusal")
    return {**call, "reason": retold(refusal["sentence"], refusal["figures"])} if refusal else call


def known(text: str | None) -> str | None:
    """Why something failed: a sentence without figures, or one of the engine's, which end with what was wrong."""
    failure = next((failure for failure in FAILURES if text and text.startswith(failure.partition("{")[0])), None)
    if failure is None:
        return translated(text) if text else text
    return retold(failure, {"error": text[len(failure.partition("{")[0]):]})
