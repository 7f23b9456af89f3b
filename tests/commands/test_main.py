"""The command line as a whole: which command runs, and how mistakes are told."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app import __version__
from app.__main__ import COMMANDS, main
from app.commands import gunicorn_settings, serve
from app.settings import Settings

ROOT = Path(__file__).parents[2]


def told(capsys, *arguments):
    """-> exit status and what is on standard error; nothing is on standard output."""
    status = main(list(arguments))
    captured = capsys.readouterr()
    assert captured.out == ""
    return status, captured.err


def test_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"glasschat {__version__}\n"


def test_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    assert all(f"\n  {name} " in overview for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0 and "usage: python -m app " + command in capsys.readouterr().out


@pytest.mark.parametrize("arguments, beginning", [
    (["frob"], 'glasschat: there is no command "frob"; allowed: serve, ask, bench, fetch'),
    (["--port", "x"], 'glasschat: --port is "x"; allowed: a whole number from 1 to 65535'),
    (["serve", "--port", "x"], 'glasschat: --port is "x"; allowed: a whole number from 1 to 65535'),
    (["ask", "Hello", "--temperature", "hot"], 'glasschat: --temperature is "hot"; allowed: a number from 0 to 100'),
    (["bench", "--lengths", "32,many"], 'glasschat: --lengths is "32,many"; allowed: a whole number from 1 to'),
    (["bench", "--rounds", "0"], 'glasschat: --rounds is "0"; allowed: a whole number from 1 to'),
    (["serve", "--nope"], "glasschat: serve does not take --nope; see python -m app serve --help"),
    (["serve", "--por", "9000"], "glasschat: serve does not take --por; see python -m app serve --help"),
    (["serve", "--port"], "glasschat: argument --port: expected one argument; see python -m app serve --help"),
    (["ask", "--rows", "1024", "--top-k=1", "hi"], "glasschat: ask does not take --rows; see python -m app ask --help"),
    (["fetch", "--port", "1"], "glasschat: fetch does not take --port; see python -m app fetch --help"),
    (["ask"], "glasschat: "),
    (["ask", ""], "glasschat: "),
    (["ask", " \n"], "glasschat: "),
    (["ask", "two", "questions"], "glasschat: "),
])
def test_a_mistake_is_told_in_one_line_with_status_2(arguments, beginning, capsys):
    status, line = told(capsys, *arguments)
    assert status == 2
    assert line.startswith(beginning) and line.count("\n") == 1


def test_a_wrong_variable_is_told_in_one_line_with_status_2(capsys, monkeypatch):
    monkeypatch.setenv("CHAT_DTYPE", "int3")
    status, line = told(capsys, "serve")
    assert status == 2
    assert line == 'glasschat: CHAT_DTYPE (--dtype) is "int3"; allowed: auto, float32, bfloat16 or float16\n'


def test_a_mistake_costs_no_import_of_torch():
    code = "import sys; from app.__main__ import main; main(['serve', '--port', 'x']); main(['--version']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=300).returncode == 0


# --- serve, before it starts

def test_a_taken_port_is_told_with_another_to_try(capsys, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        status, line = told(capsys, "serve", "--port", str(port), "--data", str(tmp_path))
    assert status == 2
    assert line.startswith(f"glasschat: port {port} is taken by another program;") and line.count("\n") == 1


def test_an_address_that_is_not_this_machines_is_told(capsys, tmp_path):
    status, line = told(capsys, "serve", "--host", "192.0.2.1", "--data", str(tmp_path))
    assert status == 2
    assert line.startswith('glasschat: --host is "192.0.2.1"; allowed: an address of this machine') and line.count("\n") == 1


@pytest.mark.parametrize("host, expected", [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("localhost", True),
                                            ("0.0.0.0", False), ("::", False), ("192.0.2.1", False), ("localhost.example", False)])
def test_loopback_addresses_are_told_from_others(host, expected):
    assert serve.is_loopback(host) is expected


@pytest.mark.parametrize("settings, address", [
    (Settings(), "http://127.0.0.1:8000/"),
    (Settings(host="0.0.0.0", port=80), "http://127.0.0.1:80/"),
    (Settings(host="::1", prefix="/chat"), "http://[::1]:8000/chat/"),
])
def test_the_address_can_be_typed_into_a_browser(settings, address):
    assert serve.address_of(settings) == address


def test_the_procfile_serves_as_the_command_does():
    line = (ROOT / "Procfile").read_text()
    for name in ("workers", "worker_class", "threads"):
        assert f"--{name.replace('_', '-')} {getattr(gunicorn_settings, name)} " in line
    assert f"--config python:{gunicorn_settings.__name__} " in line
    assert "--preload" not in line and "${PORT" in line and "app:create_app()" in line


def test_a_wrong_variable_is_told_in_one_line_under_the_procfile_too():
    command = [sys.executable, "-m", "gunicorn", "--config", f"python:{gunicorn_settings.__name__}", "app:create_app()"]
    process = subprocess.run(command, cwd=ROOT, env={**os.environ, "CHAT_DTYPE": "int3"}, capture_output=True, text=True, timeout=300)
    assert process.returncode == 2
    assert process.stderr.splitlines()[-1] == 'glasschat: CHAT_DTYPE (--dtype) is "int3"; allowed: auto, float32, bfloat16 or float16'
