"""Under a path prefix, behind a proxy, with TLS outside.

A proxy may cut the prefix off or leave it on, may name it in `X-Forwarded-Prefix` or leave that to the
option: everything that the application sends out begins with it in any case. Host and scheme are taken
from `X-Forwarded-Host` and `X-Forwarded-Proto`. No page of another site can make a browser send these
headers, so whether a request came from the own page can be told with them.
"""

from __future__ import annotations

import re

from werkzeug.middleware.proxy_fix import ProxyFix

_PREFIX = re.compile(r"(/[0-9A-Za-z._~-]+)+")


class UnderPrefix:
    """WSGI middleware: sets SCRIPT_NAME, and takes the prefix off the path where it stands there."""

    def __init__(self, application, prefix: str):
        self._application, self._prefix = application, prefix

    def __call__(self, environ, start_response):
        named = environ.get("HTTP_X_FORWARDED_PREFIX", "").rstrip("/")
        prefix = self._prefix or (named if _PREFIX.fullmatch(named) else "")
        if prefix:
            path = environ.get("PATH_INFO", "")
            environ["SCRIPT_NAME"] = prefix
            if path == prefix or path.startswith(prefix + "/"):
                environ["PATH_INFO"] = path[len(prefix):]
        return self._application(environ, start_response)


def init_proxy(app, prefix: str) -> None:
    app.wsgi_app = UnderPrefix(ProxyFix(app.wsgi_app, x_for=0, x_proto=1, x_host=1), prefix)
