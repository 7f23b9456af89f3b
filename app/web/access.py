"""Who may come in, and what a browser may do with what it gets.

Only the own page may open the socket or change anything: the Origin of such a request must be exactly this
server's address, before anything is accepted. A program that is no browser sends no Origin and may.
Every answer carries a Content-Security-Policy under which nothing but the own files runs or is loaded.
"""

from __future__ import annotations

import re

from flask import Flask, Response, abort, request

MAX_BODY_BYTES = 8 * 2**20
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_HOST = re.compile(r"[0-9A-Za-z._-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?")


def init_access(app: Flask) -> None:
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.before_request(check_host)
    app.before_request(check_origin)
    app.after_request(add_headers)


def check_host() -> None:
    """The host goes into the policy, so it must be one."""
    if not _HOST.fullmatch(request.host):
        abort(400, "This address is not one that the server can answer to.")


def check_origin() -> None:
    is_socket = request.headers.get("Upgrade", "").lower() == "websocket"
    if (is_socket or request.method not in SAFE_METHODS) and not is_own_origin(request.headers.get("Origin")):
        abort(403, "This request comes from another site's page.")


def is_own_origin(origin: str | None) -> bool:
    """Exactly this server's scheme, host and port; None is a program that is no browser."""
    own = {f"{request.scheme}://{request.host}".lower()}
    if request.host == request.environ.get("SERVER_NAME"):
        # no browser leaves the port out, but some programs do: they mean the one that they connected to
        own.add(f"{request.scheme}://{request.host}:{request.environ.get('SERVER_PORT')}".lower())
    return origin is None or origin in own


def content_security_policy() -> str:
    socket = f"{'wss' if request.is_secure else 'ws'}://{request.host}"  # some browsers do not count it as 'self'
    return ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
            f"connect-src 'self' {socket}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")


def add_headers(response: Response) -> Response:
    headers = response.headers
    is_host = _HOST.fullmatch(request.host)
    headers["Content-Security-Policy"] = content_security_policy() if is_host else "default-src 'none'"
    headers["X-Content-Type-Options"] = "nosniff"
    headers["X-Frame-Options"] = "DENY"
    headers["Referrer-Policy"] = "same-origin"
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    if request.endpoint != "static":
        headers["Cache-Control"] = "no-store"  # nobody's chat stays in a cache, and going back shows what is new
    return response
