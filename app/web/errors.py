"""What a person or a program is told when a page cannot be had: a sentence, never a traceback."""

from __future__ import annotations

from flask import Flask, current_app, render_template, request
from werkzeug.exceptions import HTTPException, InternalServerError

from app.chat.errors import CannotStoreError, ChatError, NotFoundError
from app.chat.sentences import sentence
from app.web.languages import translated
from app.web.retelling import error_text

STATUS = {"not_found": 404, "too_long": 413, "not_ready": 503, "failed": 503, "queue_full": 503, "disk_full": 507,
          "cannot_store": 503}
SENTENCES = {
    400: (sentence("Not understood"), sentence("The server cannot make sense of this request.")),
    403: (sentence("Not allowed"), sentence("This cannot be done from where the request comes.")),
    404: (sentence("Not found"), sentence("There is no such page, or it is the chat of another browser. "
                                          "A chat can be seen only in the browser that began it.")),
    405: (sentence("Not possible"), sentence("This address cannot be used that way.")),
    413: (sentence("Too large"), sentence("This is more than the server takes at once.")),
    500: (sentence("Something went wrong"), sentence("The server made a mistake, which is written in its log. "
                                                     "Nothing that was stored is lost.")),
}


def init_errors(app: Flask) -> None:
    app.register_error_handler(ChatError, show_chat_error)
    app.register_error_handler(HTTPException, show_http_error)
    app.register_error_handler(Exception, show_unexpected)


def show_chat_error(error: ChatError):
    status = STATUS.get(error.code, 400)
    if isinstance(error, CannotStoreError):
        current_app.logger.warning("%s %s was refused: %s", request.method, request.path, error.reason)
    if isinstance(error, NotFoundError) and not _is_for_a_program():
        return _page(404, *SENTENCES[404])
    return {**error.figures, "code": error.code, "text": error_text(error)}, status


def show_http_error(error: HTTPException):
    if error.code is None or error.code < 400 or error.response is not None:
        return error
    title, text = SENTENCES.get(error.code, (error.name, error.description or ""))
    if error.description and error.description != type(error).description:  # our own sentence
        text = error.description
    if _is_for_a_program():
        return {"code": error.name.lower().replace(" ", "_"), "text": translated(text)}, error.code
    return _page(error.code, title, text)


def show_unexpected(error: Exception):
    current_app.logger.exception("%s %s failed", request.method, request.path)
    return show_http_error(InternalServerError())


def _is_for_a_program() -> bool:
    return request.path.startswith("/api/") or request.headers.get("Upgrade", "").lower() == "websocket"


def _page(code: int, title: str, text: str):
    return render_template("error.html", code=code, title=translated(title), text=translated(text)), code
