"""Loads the model that the settings name, for the commands that compute in this process."""

from __future__ import annotations

import sys
import logging
from pathlib import Path

from app.commands import CommandError
from app.settings import Settings, SettingsError

RANDOM = "random:nanochat-d12"  # for measuring: nanochat's depth-12 model with weights that were drawn


class ContextTooLongError(SettingsError):
    """More context was asked for than the model has; `largest` is what it has, in tokens."""

    def __init__(self, context: int, largest: int):
        self.largest = largest
        super().__init__("--context", context, f"at most {largest} with this model")


def load(settings: Settings):
    """-> (model, tokenizer), for the calling thread to compute with.

    To be called on the thread that computes afterwards, and on no other before: a second thread that has
    computed leaves helpers of its own behind, and where there are more of them than processors, all of them
    wait for one another asleep, which costs a quarter of the speed.
    """
    check_model_path(settings)
    import torch

    from app.models.errors import ModelError

    if settings.threads:
        torch.set_num_threads(settings.threads)
    try:
        model, tokenizer = _load(settings)
    except ModelError as error:
        raise CommandError(str(error)) from None
    check_context(settings, model)
    if hasattr(model, "description"):
        print(model.description, file=sys.stderr)
    return model, tokenizer


def _load(settings: Settings):
    from app.models.registry import choose_device, choose_dtype, load_model

    if settings.model == RANDOM:
        from app.models.random_weights import random_depth_12

        device = choose_device(settings.device)
        return random_depth_12(device, choose_dtype(settings.dtype, device))
    return load_model(settings.model, device=settings.device, dtype=settings.dtype, context=settings.asked_context,
                      adapter=settings.chosen_adapter)


def check_model_path(settings: Settings) -> None:
    """Refuse a path at which there is nothing, before anything is loaded. `TREE:stage/tag@step` begins with a path."""
    name = settings.model
    places = (Path(name).expanduser(), Path(name.split(":")[0]).expanduser())
    if name not in ("default", RANDOM) and not any(place.exists() for place in places):
        raise SettingsError("--model", name, '"default" or the path of a model; there is nothing at this path')


def check_context(settings: Settings, model) -> None:
    """Refuse a context that was asked for and that the model does not have; the default gives way by itself."""
    largest = getattr(model, "max_context", None) or model.config.sequence_len
    if settings.asked_context and settings.context > largest:
        raise ContextTooLongError(settings.context, largest)


def quiet_about_sentences() -> None:
    """What a person is told in a sentence is not logged as a fault of the engine thread's, with a traceback."""
    from app.engine.worker import CacheTooSmallError
    from app.models.errors import ModelError

    told = (CommandError, ModelError, SettingsError, CacheTooSmallError)
    logging.getLogger("app.engine.worker").addFilter(
        lambda record: not (record.exc_info and isinstance(record.exc_info[1], told)))
