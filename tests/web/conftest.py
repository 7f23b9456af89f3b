import logging
from contextlib import ExitStack

import pytest

from tests.web.table import DrawingModel, Table
from tests.web.talk import Browser, RunningServer


@pytest.fixture
def serve(tmp_path):
    """`serve(model, **settings)` -> RunningServer, stopped at the end."""
    with ExitStack() as at_the_end:
        def start(model=None, tokenizer=None, **settings):
            server = RunningServer(tmp_path / "data", model, tokenizer, **settings)
            at_the_end.callback(server.stop)
            return server
        yield start


@pytest.fixture
def server(serve):
    """One that says hello."""
    return serve()


@pytest.fixture
def browser(server):
    return Browser(server)


@pytest.fixture
def table(serve):
    """A browser at a chat whose answers differ by their seeds."""
    return Table(serve(DrawingModel("-one", "-two", "-three")))


logging.getLogger("werkzeug").setLevel(logging.WARNING)  # a line for each request says nothing in a test
