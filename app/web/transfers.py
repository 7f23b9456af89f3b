"""Over HTTP: a chat as a file, a file as a chat, and a chat played again."""

from __future__ import annotations

import io
import json
import re

from flask import Blueprint, current_app, render_template, request, send_file, url_for

from app.chat.chats import Caller
from app.chat.errors import ChatError
from app.web.retelling import retold_event
from app.web.sessions import known_owner, owner, prolong_session

blueprint = Blueprint("transfers", __name__)


@blueprint.get("/c/<cid>/export")
def export(cid: str):
    """The whole chat, as `app/chat/exports.py` describes it."""
    document = _transfers().export(Caller(known_owner() or ""), cid)
    text = json.dumps(document, ensure_ascii=False, indent=1)
    name = re.sub(r"[^\w -]+", "", document["title"])[:60].strip() or "chat"
    return send_file(io.BytesIO(text.encode()), "application/json", as_attachment=True, download_name=f"{name}.glasschat.json")


@blueprint.post("/api/import")
def take_in():
    """A file of the same kind -> {"id", "url", "title", "messages"} of a new chat of this browser's."""
    document = request.get_json(force=True, silent=True)
    if document is None:
        raise ChatError("bad_import", "This file is no chat that was exported from here: it cannot be read as JSON.")
    caller = Caller(owner(), root=url_for("pages.index"))
    conversation, messages = _transfers().take_in(caller, document)
    return {"id": conversation.id, "url": caller.url(conversation.id), "title": conversation.title,
            "messages": messages}, 201


@blueprint.get("/c/<cid>/replay")
def replay(cid: str):
    """The chat played again, at the speed at which it was made."""
    recording = _transfers().replay(Caller(known_owner() or ""), cid)
    prolong_session()
    told = [[at, retold_event(what[0])] if len(what) == 1 else [at, *what] for at, *what in recording.script]
    return render_template("replay.html", conversation={"id": cid, "title": recording.conversation.title}, recording=recording,
                           page={"script": told, "tokens": recording.tokens, "conversation": cid})


def _transfers():
    return current_app.extensions["glasschat"].replies.transfers
