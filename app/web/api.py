"""The few things that are asked for over plain HTTP, as JSON."""

from __future__ import annotations

from flask import Blueprint, current_app, request

from app.chat.chats import Caller
from app.chat.errors import ChatError
from app.chat.texts import MAX_TEXT_BYTES
from app.web.sessions import begin_session, known_owner, owner

blueprint = Blueprint("api", __name__, url_prefix="/api")


@blueprint.get("/cache")
def cache():
    """The panel's numbers: of a conversation, or without one those of pool and model."""
    replies = current_app.extensions["glasschat"].replies
    return replies.chats.cache(Caller(known_owner() or ""), request.args.get("conversation") or None)


@blueprint.get("/strip")
def strip():
    """?conversation=id -> `tokens`, one by one, that are in its row of the cache, each as in the event `strip` and with
    how likely a written one was; `waiting`, those of the chat that are in no row; and the `seq` that this is as of."""
    replies = current_app.extensions["glasschat"].replies
    return replies.chats.strip(Caller(known_owner() or ""), request.args.get("conversation") or "")


@blueprint.post("/count")
def count():
    """{"conversation": id or null, "text", "settings" as in a `send`} -> how many tokens it is, alone and with the
    chat, how many there may be, and how many of them the next reply would read."""
    body = request.get_json(silent=True)
    body = body if isinstance(body, dict) else {}
    text, conversation = body.get("text"), body.get("conversation")
    if not isinstance(text, str) or not isinstance(conversation, str | None):
        raise ChatError("bad_message", 'Wanted is a JSON object such as {example}.',
                        example='{"conversation": null, "text": "…"}')
    if len(text.encode(errors="replace")) > MAX_TEXT_BYTES:
        raise ChatError("too_long", "A text to be counted may have {limit_bytes} bytes at most.", limit_bytes=MAX_TEXT_BYTES)
    return current_app.extensions["glasschat"].replies.count(
        Caller(known_owner() or ""), conversation, text, body.get("settings"))


@blueprint.post("/forget")
def forget():
    """All chats of this browser and all memory of them are gone; the next visitor begins anew."""
    current_app.extensions["glasschat"].forget_everything(owner())
    begin_session()
    return "", 204
