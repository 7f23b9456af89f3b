"""Stands in for pip: `fake_pip.py MODE WHEEL CALLS …pip's arguments…`. Appends a line to CALLS each time."""

import sys
import time
from pathlib import Path

mode, wheel, calls, arguments = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]
target = Path(arguments[arguments.index("--dest") + 1])
with calls.open("a") as log:
    log.write(" ".join(arguments) + "\n")

if mode == "no network":
    print("WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)': /simple/tiny/\n"
          "ERROR: Could not find a version that satisfies the requirement\n"
          "ERROR: No matching distribution found", file=sys.stderr)
    sys.exit(1)
if mode == "not there":
    print("ERROR: No matching distribution found for it", file=sys.stderr)
    sys.exit(1)
if mode == "strange":
    print("ERROR: the moon is full", file=sys.stderr)
    sys.exit(2)
if mode == "nothing":
    sys.exit(0)

contents = wheel.read_bytes()
target.mkdir(parents=True)
if mode == "hangs":
    (target / f"{wheel.name}.part").write_bytes(contents[:len(contents) // 2])
    time.sleep(60)
elif mode == "truncated":
    contents = contents[:len(contents) // 2]
elif mode == "other":
    contents = contents.replace(b"model", b"virus")
elif mode == "slow":
    time.sleep(1)
(target / wheel.name).write_bytes(contents)
