"""Whose browser it is: a random number in a signed cookie, and nothing else.

A conversation belongs to the browser session that began it. The cookie stays under the path prefix, is
sent over TLS only where the page came over TLS, and has a name of its own for each data folder, so that two
servers on one machine do not take each other's chats away.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime, timedelta

from flask import Flask, request, session
from flask.sessions import SecureCookieSessionInterface
from itsdangerous import SignatureExpired, TimestampSigner

from app.web.secret_key import load_secret_key

LIFETIME = timedelta(days=400)  # the longest that browsers allow; begins anew with every visit


class ClockProofSigner(TimestampSigner):
    """A cookie of later than now is as good as any: when a computer's clock is set back, nobody is to lose their chats."""

    def unsign(self, signed_value, max_age=None, return_timestamp=False):
        try:
            return super().unsign(signed_value, max_age, return_timestamp)
        except SignatureExpired as error:
            if error.date_signed is None or error.date_signed <= datetime.now(UTC):
                raise
            return super().unsign(signed_value, None, return_timestamp)


class Cookies(SecureCookieSessionInterface):
    def get_signing_serializer(self, app: Flask):
        serializer = super().get_signing_serializer(app)
        if serializer is not None:
            serializer.signer = ClockProofSigner
        return serializer

    def get_cookie_path(self, app: Flask) -> str:
        return (request.script_root or "") + "/"

    def get_cookie_secure(self, app: Flask) -> bool:
        return request.is_secure


def init_sessions(app: Flask, data_folder) -> None:
    app.secret_key = load_secret_key(data_folder)
    app.session_interface = Cookies()
    app.permanent_session_lifetime = LIFETIME
    app.config.update(
        SESSION_COOKIE_NAME="glasschat_" + hashlib.sha256(app.secret_key).hexdigest()[:8],
        SESSION_COOKIE_HTTPONLY=True, SESSION_COOKIE_SAMESITE="Lax", SESSION_REFRESH_EACH_REQUEST=False)


def owner() -> str:
    """The browser session that asks; one that has none begins here, with the answer's cookie."""
    if "owner" not in session:
        begin_session()
    return session["owner"]


def known_owner() -> str | None:
    """The browser session that asks, if it has a cookie."""
    return session.get("owner")


def begin_session() -> None:
    session.clear()
    session["owner"] = secrets.token_urlsafe(16)
    session.permanent = True


def prolong_session() -> None:
    """The cookie's lifetime begins anew."""
    session.modified = True
