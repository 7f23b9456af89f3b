"""Static files under an address that changes when they do, so that a browser asks for each of them only once.

`url_for("static", filename=…)` gives `/static/v-<version>/…`. The version is a hash over all the files, and stands before
the path: modules and stylesheets that name each other by relative addresses thereby name it too. The plain `/static/…`, and
a version that is no longer, are answered with what is there now, which a browser asks for anew each time.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from flask import Flask, send_from_directory

YEAR_S = 365 * 24 * 3600


def init_static_files(app: Flask) -> None:
    current = version_of(Path(app.static_folder))

    def static(filename: str, version: str | None = None):
        if version != current:
            return app.send_static_file(filename)
        response = send_from_directory(app.static_folder, filename, max_age=YEAR_S)
        response.cache_control.immutable = True
        return response

    app.view_functions["static"] = static
    app.add_url_rule(f"{app.static_url_path}/v-<version>/<path:filename>", endpoint="static")

    @app.url_defaults
    def name_version(endpoint: str, values: dict) -> None:
        if endpoint == "static":
            values.setdefault("version", current)


def version_of(folder: Path) -> str:
    """The same for the same files, wherever they lie."""
    seen = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        seen.update(f"{path.relative_to(folder).as_posix()} {len(content)} ".encode() + content)
    return seen.hexdigest()[:12]
