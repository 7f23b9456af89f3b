"""Glasschat: a chat with a small language model in which one can watch the model remember."""

__version__ = "0.1.0"


def create_app(settings=None, *, model=None, tokenizer=None):
    """Wire the parts and start the engine thread -> Flask.

    `settings` is a `Settings`, from the environment unless given. `model` and `tokenizer`, given together,
    stand in for the one that the settings name: anything that keeps to the contract works.
    The engine starts here, so this must run after a server's fork, never before it (gunicorn without
    preload). The parts are in `flask_app.extensions["glasschat"]`.
    """
    # Imported here, so that the commands which need no model answer at once.
    from pathlib import Path

    from flask import Flask

    from app import web
    from app.chat.races import Races
    from app.chat.replies import Replies
    from app.chat.store import Store
    from app.engine import EngineWorker
    from app.settings import Settings

    assert (model is None) == (tokenizer is None), "a model and its tokenizer are given together or not at all"
    settings = settings or Settings.from_env()
    root = Path(__file__).parent.parent
    flask_app = Flask(__name__, template_folder=str(root / "templates"), static_folder=str(root / "static"))
    worker = EngineWorker(lambda: (model, tokenizer) if model is not None else _load(settings),
                          rows=settings.rows, cache_bytes=settings.cache_memory, context=settings.context,
                          warm_up=model is None)
    store = Store(settings.data)
    replies = Replies(worker, store, settings)
    flask_app.extensions["glasschat"] = Parts(settings, worker, store, replies, Races(worker, replies))
    web.register(flask_app)
    worker.start()
    return flask_app


class Parts:
    """What the factory wired, for whoever holds the Flask app."""

    def __init__(self, settings, worker, store, replies, races):
        self.settings, self.worker, self.store, self.replies, self.races = settings, worker, store, replies, races

    def forget_everything(self, owner: str) -> None:
        """All chats and races of a browser session are gone, and all memory of them."""
        self.replies.chats.forget_everything(owner)  # first: a full disk refuses it
        self.races.forget(owner)

    def close(self) -> None:
        """End the engine thread, tell the open replies so, and close the database."""
        self.worker.stop()
        self.replies.close()
        self.store.close()


def _load(settings):
    """Runs on the engine thread: the number of threads that torch computes with is set per thread."""
    import sys

    import torch

    from app.models import load_model

    if settings.threads:
        torch.set_num_threads(settings.threads)
    model, tokenizer = load_model(settings.model, device=settings.device, dtype=settings.dtype, context=settings.asked_context,
                                  adapter=settings.chosen_adapter)
    if hasattr(model, "description"):
        print(model.description, file=sys.stderr, flush=True)
    return model, tokenizer
