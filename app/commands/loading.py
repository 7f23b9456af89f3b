"""Loads the model that the settings name, for the commands that compute in this process."""

from __future__ import annotations

from app.commands import CommandError
from app.settings import Settings, SettingsError


def load(settings: Settings):
    """-> (model, tokenizer). Sets the number of threads for the calling thread's computing."""
    import torch

    from app.models import load_model
    from app.models.errors import ModelError

    if settings.threads:
        torch.set_num_threads(settings.threads)
    try:
        model, tokenizer = load_model(settings.model, device=settings.device, dtype=settings.dtype, context=settings.context)
    except ModelError as error:
        raise CommandError(str(error)) from None
    check_context(settings, model)
    return model, tokenizer


def check_context(settings: Settings, model) -> None:
    """Refuse a context that was asked for and that the model does not have; the default gives way by itself."""
    largest = getattr(model, "max_context", None) or model.config.sequence_len
    if settings.context > largest and settings.context != Settings.context:
        raise SettingsError("--context", settings.context, f"at most {largest} with this model")
