"""The command line: `python -m app [serve | ask | bench | fetch]`. Without a command it serves."""

from __future__ import annotations

import importlib
import os
import sys

from app import __version__
from app.commands import FAILED, CommandError, OneLineParser, say
from app.settings import SettingsError

COMMANDS = {
    "serve": "the chat in the browser (also what no command means)",
    "ask": "one answer in the terminal",
    "bench": "how fast this machine reads and writes, with and without the cache",
    "fetch": "get the default model now",
}
OVERVIEW = "usage: python -m app COMMAND [options]\n\n" + "\n".join(
    f"  {name:8}{about}" for name, about in COMMANDS.items()) + "\n\npython -m app COMMAND --help lists the options of a command."


def main(arguments: list[str]) -> int:
    try:
        return run(arguments)
    except CommandError as error:
        say(f"glasschat: {error}")
        return error.status
    except SettingsError as error:
        say(f"glasschat: {error}")
        return 2
    except KeyboardInterrupt:
        say("")
        return 130
    except BrokenPipeError:  # whoever read our output has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def run(arguments: list[str]) -> int:
    name, rest = "serve", arguments
    if arguments and arguments[0] in ("--version", "-V"):
        print(f"glasschat {__version__}")
        return 0
    if arguments and arguments[0] in ("--help", "-h"):
        print(OVERVIEW)
        return 0
    if arguments and not arguments[0].startswith("-"):
        name, rest = arguments[0], arguments[1:]
        if name not in COMMANDS:
            raise CommandError(f"there is no command \"{name}\"; allowed: {', '.join(COMMANDS)}")
    command = importlib.import_module(f"app.commands.{name}")  # only now: some of them need torch
    parser = OneLineParser(prog=f"python -m app {name}", description=COMMANDS[name].capitalize() + ".")
    command.add_arguments(parser)
    return command.run(parser.parse_args(rest))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
