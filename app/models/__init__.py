"""Models: weights, tokenizers and chat formats, and how they get here."""

from app.models.errors import ModelError

__all__ = ["ModelError", "load_model"]


def __getattr__(name: str):
    if name == "load_model":  # brings PyTorch along, which whoever only fetches a file need not wait for
        from app.models.registry import load_model
        return load_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
