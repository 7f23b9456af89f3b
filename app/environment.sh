# For app/start and tests/run: makes .venv and installs into it what a list of requirements asks for.
# POSIX sh; to be read with `.` in the project's own folder. Does nothing, and needs no network, when all is there.

stop() {
    echo "glasschat: $*" >&2
    exit 1
}

fits() {  # does this Python have a version that all requirements exist for?
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null
}

find_python() {  # the first that fits, in $python; $PYTHON, when given, is the only choice
    for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        fits "$python" && return
    done
    found=$("${PYTHON:-python3}" --version 2>&1) || found="no Python"
    stop "Python 3.11 to 3.14 is needed, and this is $found. Install one of them, or name one you have: PYTHON=/path/to/python3.12 $0"
}

make_venv() {
    if fits .venv/bin/python; then
        return
    fi
    find_python
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        stop "$("$python" --version) has no venv module. Install it (on Debian and Ubuntu: apt install python3-venv) and start again."
    echo "Making a Python environment in .venv ..." >&2
    "$python" -m venv --clear .venv ||
        stop "no environment could be made in $(pwd) (see above). Is the folder yours to write to, and is there room on the disk? A copy in a folder of your own will do."
}

install() {  # install LIST: the requirements in the file LIST
    # A copy of the lists that were installed last tells whether there is anything to do.
    done_mark=".venv/installed-$(echo "$1" | tr / -)"
    if cat requirements.txt "$1" | cmp -s - "$done_mark"; then
        return
    fi
    [ -w .venv ] || stop "the folder $(pwd)/.venv cannot be written to. Make it yours, or delete it, and start again."
    rm -f "$done_mark"
    echo "Installing what $1 lists (once; PyTorch alone is large) ..." >&2
    .venv/bin/python -m pip install --disable-pip-version-check --requirement "$1" >&2 ||
        stop "the packages of $1 could not be installed (see above). If the network or the disk was the trouble, mend that and start again: what is there already is kept."
    cat requirements.txt "$1" > "$done_mark"
}
