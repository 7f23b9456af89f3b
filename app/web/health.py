"""For whoever watches the server: does it live, can it answer."""

from __future__ import annotations

from flask import Blueprint, current_app

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
def healthz():
    """200 while the process and its engine thread live. Loading is living; a model that failed to load is not."""
    parts = current_app.extensions["glasschat"]
    if not parts.worker.alive:
        return {"state": "failed", "text": parts.worker.snapshot().failure or "The engine thread has ended."}, 503
    if not parts.replies.publisher.alive:
        return {"state": "failed", "text": "The publisher thread has ended."}, 503
    return {"state": "alive"}


@blueprint.get("/readyz")
def readyz():
    """200 once the model is loaded and warm."""
    worker = current_app.extensions["glasschat"].worker
    snapshot = worker.snapshot()
    if snapshot.state == "ready" and worker.alive:
        return {"state": "ready"}
    if snapshot.state == "loading" and worker.alive:
        return {"state": "loading", "text": "The model is being loaded."}, 503
    return {"state": "failed", "text": snapshot.failure or "The engine has stopped."}, 503
