"""What can be wrong with a model's files, or with what is asked of it."""


class ModelError(Exception):
    """A model cannot be loaded. The message is one sentence for a person that names the file and the fault."""


class ContextError(ValueError):
    """More positions than the model can tell apart, or was loaded for. Raised before anything is computed."""
