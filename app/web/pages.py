"""The pages: complete in their HTML, so that they can be read without JavaScript."""

from __future__ import annotations

from dataclasses import asdict

from flask import Blueprint, current_app, render_template, request, url_for

from app.chat.chats import Caller
from app.chat.races import LONGEST_ANSWER_TOKENS, MOST_POSITIONS
from app.chat.reply_settings import FAMILY_TEMPERATURE, MAX_ANSWERS, MAX_TOKENS
from app.chat.texts import MAX_TEXT_BYTES
from app.web.memory_page import memory_page
from app.web.retelling import known, retold_memory_event, retold_message
from app.web.sessions import owner, prolong_session

blueprint = Blueprint("pages", __name__)


@blueprint.get("/")
def index():
    """A new chat."""
    return _chat_page(None)


@blueprint.get("/c/<cid>")
def conversation(cid: str):
    """One conversation. A 404 for everybody but the browser session that began it."""
    return _chat_page(cid)


@blueprint.get("/race")
def race():
    """With the cache and without, side by side."""
    parts = current_app.extensions["glasschat"]
    pace = parts.worker.race_pace
    return _understanding_page(
        "race.html", pace=pace and asdict(pace), temperature=parts.replies.defaults.temperature or FAMILY_TEMPERATURE,
        limits={"tokens": LONGEST_ANSWER_TOKENS, "positions": MOST_POSITIONS})


@blueprint.get("/memory")
def memory():
    """What a cache would cost, with other numbers."""
    snapshot = current_app.extensions["glasschat"].worker.snapshot()
    return _understanding_page("memory.html", **memory_page(snapshot, request.args, url_for("pages.memory")))


def _understanding_page(template: str, **context):
    owner()  # the socket wants a session
    prolong_session()
    snapshot = current_app.extensions["glasschat"].worker.snapshot()
    return render_template(template, ready=snapshot.state == "ready", model_name=snapshot.model.name, **context)


def _chat_page(cid: str | None):
    parts = current_app.extensions["glasschat"]
    replies, snapshot = parts.replies, parts.worker.snapshot()
    caller = Caller(owner(), root=url_for("pages.index"))
    prolong_session()
    chat = replies.chats.look(caller, cid) if cid is not None else None
    state = "failed" if snapshot.state == "stopped" else snapshot.state
    return render_template(
        "chat.html",
        conversation=chat and {"id": chat["id"], "url": chat["url"], "title": chat["title"]},
        messages=[retold_message(message) for message in chat["messages"]] if chat else [],
        cache=chat["cache"] if chat else replies.chats.cache(caller),
        why=known(chat.get("text")) if chat else None,
        seq=chat["seq"] if chat else 0,
        events=[retold_memory_event(event) for event in chat["events"]] if chat else [],
        conversations=replies.chats.list(caller),
        defaults=asdict(replies.defaults),
        limits={"text_bytes": MAX_TEXT_BYTES, "max_tokens": MAX_TOKENS, "context": snapshot.context,
                "answers": min(MAX_ANSWERS, parts.settings.rows)},
        model_name=snapshot.model.name,
        calculator=replies.has_calculator,
        ready=snapshot.state == "ready",
        state=chat["state"] if chat and snapshot.state == "ready" else "idle" if snapshot.state == "ready" else state)
