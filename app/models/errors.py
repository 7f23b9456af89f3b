"""What can be wrong with the files of a model."""


class ModelError(Exception):
    """A model cannot be loaded. The message is one sentence for a person that names the file and the fault."""
