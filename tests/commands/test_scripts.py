"""app/start, tests/run and .ci/run, with a stand-in for Python: what they call, and what they say when it fails."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ("app/start", "tests/run", ".ci/run")
TOOLS = ("sh", "cat", "chmod", "cmp", "cp", "dirname", "echo", "ls", "mkdir", "pwd", "rm", "tr")

# Writes down what it is called with, makes a .venv of copies of itself, and fails at whatever $FAILS names.
STAND_IN = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
    *"$FAILS"*) [ -n "$FAILS" ] && { echo "as bad as it was told to be" >&2; exit 1; } ;;
esac
case "$*" in
    --version) echo "Python ${VERSION:-3.12.0}" ;;
    "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
esac
exit 0
"""


@pytest.fixture
def clone(tmp_path):
    """A folder with the scripts and lists of requirements, and a PATH with a stand-in Python and a few tools."""
    folder = tmp_path / "a clone"
    for name in (*SCRIPTS, "app/environment.sh", "requirements.txt", "tests/requirements.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in TOOLS:
        if path := shutil.which(tool):
            (programs / tool).symlink_to(path)
    (programs / "python3").write_text(STAND_IN)
    (programs / "python3").chmod(0o755)
    return folder


def run(clone, script, *arguments, **environment):
    """-> the finished process and what Python was called with in it."""
    calls = clone.parent / "calls"
    calls.write_text("")
    process = subprocess.run([str(clone / script), *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd="/",
                             env={"PATH": str(clone.parent / "bin"), "CALLS": str(calls), "FAILS": "", **environment}, timeout=300)
    return process, calls.read_text().splitlines()


def installs(calls):
    return [call for call in calls if "pip install" in call]


@pytest.mark.parametrize("script", (*SCRIPTS, "app/environment.sh"))
def test_the_shell_can_read_the_script(script):
    for shell in ("sh", "bash"):
        assert subprocess.run([shell, "-n", str(ROOT / script)], capture_output=True).stderr == b""


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_script_may_be_executed(script):
    assert os.access(ROOT / script, os.X_OK)


def test_the_first_start_installs_and_passes_arguments_on(clone):
    process, calls = run(clone, "app/start", "--port", "9000", "--system", "two words")
    assert process.returncode == 0, process.stderr
    assert any(call.startswith("-m venv") for call in calls)
    assert len(installs(calls)) == 1 and installs(calls)[0].endswith("--requirement requirements.txt")
    assert calls[-1] == "-m app serve --port 9000 --system two words"


def test_a_second_start_installs_nothing(clone):
    run(clone, "app/start")
    process, calls = run(clone, "app/start")
    assert process.returncode == 0 and not installs(calls) and not any("venv" in call for call in calls)
    assert process.stderr == ""


def test_changed_requirements_are_installed(clone):
    run(clone, "app/start")
    with (clone / "requirements.txt").open("a") as requirements:
        requirements.write("another==1.0\n")
    assert len(installs(run(clone, "app/start")[1])) == 1
    assert len(installs(run(clone, "app/start")[1])) == 0


def test_an_installation_that_failed_is_said_so_and_tried_again(clone):
    process, calls = run(clone, "app/start", FAILS="pip install")
    assert process.returncode == 1 and "-m app" not in calls[-1]
    assert process.stderr.endswith("mend that and start again: what is there already is kept.\n")
    process, calls = run(clone, "app/start")
    assert process.returncode == 0 and len(installs(calls)) == 1


def test_a_python_that_is_too_old_is_named_with_what_is_needed(clone):
    process, calls = run(clone, "app/start", FAILS="version_info", VERSION="3.8.10")
    assert process.returncode == 1
    assert process.stderr.startswith("glasschat: Python 3.11 to 3.14 is needed, and this is Python 3.8.10.")
    assert len(process.stderr.splitlines()) == 1


def test_no_python_at_all_is_said_so(clone):
    (clone.parent / "bin/python3").unlink()
    process, _ = run(clone, "app/start")
    assert process.returncode == 1
    assert "Python 3.11 to 3.14 is needed, and this is no Python." in process.stderr


def test_another_python_can_be_named(clone):
    shutil.move(clone.parent / "bin/python3", clone.parent / "bin/my-python")
    process, calls = run(clone, "app/start", PYTHON="my-python")
    assert process.returncode == 0 and calls[-1] == "-m app serve"


def test_a_missing_venv_module_is_said_with_what_to_install(clone):
    process, _ = run(clone, "app/start", FAILS="import ensurepip, venv")
    assert process.returncode == 1
    assert process.stderr == ("glasschat: Python 3.12.0 has no venv module. Install it "
                              "(on Debian and Ubuntu: apt install python3-venv) and start again.\n")


def test_a_folder_that_cannot_be_written_to_is_said_so(clone):
    process, _ = run(clone, "app/start", FAILS="-m venv")
    assert process.returncode == 1
    assert f"no environment could be made in {clone}" in process.stderr


def test_an_environment_whose_python_is_gone_is_made_anew(clone):
    run(clone, "app/start")
    (clone / ".venv/bin/python").unlink()
    process, calls = run(clone, "app/start")
    assert process.returncode == 0 and any(call.startswith("-m venv --clear") for call in calls)


@pytest.mark.parametrize("script", ("tests/run", ".ci/run"))
def test_the_tests_get_their_requirements_a_browser_and_the_arguments(clone, script):
    process, calls = run(clone, script, "tests/engine", "-k", "cut or copy")
    assert process.returncode == 0, process.stderr
    assert installs(calls)[0].endswith("--requirement tests/requirements.txt")
    assert calls[-2:] == ["-m tests.find_browser", "-m pytest tests/engine -k cut or copy"]


def test_without_a_browser_no_test_is_run(clone):
    process, calls = run(clone, "tests/run", FAILS="tests.find_browser")
    assert process.returncode == 1 and calls[-1] == "-m tests.find_browser"
