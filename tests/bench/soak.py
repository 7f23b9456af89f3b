"""Many people for a long time: N browsers act at random on one real server, and then everything must add up.

    .venv/bin/python -m tests.bench.soak [--minutes 10] [--people 16] [--seed 1] [--compare N]
                                         [--port 8000] [--context 512] [--rows 8] [--model, --dtype, ... as for serve]

They send, stop, edit, ask again, pick one of several answers, delete, reload, and break their connection without a
word, always at temperature 0. When the time is over and all is at rest, it is checked that
- every message that was acknowledged is stored and shown once, in its order, and nobody's in another's chat;
- every answer has the ids that a freshly loaded model writes to the same prompt, alone (in float32, and in a
  16-bit type where the processor does not multiply in it; elsewhere what is remembered rounds differently); of one that was
  stopped, its beginning;
- no row of the cache is lost, and threads, open files, memory and database have not grown (`soak_checks` says by how
  much they may). Linux only: what the server's process holds is read from /proc.
Prints a table; exit status 1 where anything was at fault.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

from app.chat.store import FILE_NAME
from app.settings import Settings, add_options
from tests.bench.soak_checks import (MORE_MEMORY_BYTES, Gauges, database_faults, growth_faults, memory_faults,
                                     message_faults, rest_of)
from tests.bench.soak_person import Person
from tests.bench.soak_records import Records
from tests.bench.streaming import serving
from tests.web.talk import Browser

WARM_SHARE = 0.5  # when memory is first measured: after so much of the time every row of the cache has been full once


@dataclass
class Soaked:
    """How it went."""
    people: list[Person]
    records: Records
    faults: list[str]
    gauges: list[Gauges] = field(default_factory=list)  # empty, warm, at the end
    database_bytes: int = 0


def soak(server, pid: int, database: Path, people: int, seconds: float, seed: int, max_tokens: int = 16,
         more_memory_bytes: int = MORE_MEMORY_BYTES) -> Soaked:
    """Let so many people act on `server`, which has a port and a host and runs in process `pid`."""
    watcher, records = Browser(server), Records(database)
    empty = Gauges.of(pid)
    until = time.monotonic() + seconds
    crowd = [Person(number, server, seed, until, records, max_tokens) for number in range(people)]
    for person in crowd:
        person.others = [other.secret for other in crowd if other is not person]
    for person in crowd:
        person.start()
    faults = watch(watcher, until - (1 - WARM_SHARE) * seconds)
    warm = Gauges.of(pid)
    faults += watch(watcher, until)
    for person in crowd:
        person.join()
    faults += [fault for person in crowd for fault in person.all_faults()]
    faults += message_faults(crowd, database) + memory_faults(crowd, watcher)
    faults += database_faults(database, sum(person.asked for person in crowd))
    end = rest_of(lambda: Gauges.of(pid), lambda end: not growth_faults(empty, warm, end, people, more_memory_bytes))
    faults += growth_faults(empty, warm, end, people, more_memory_bytes)
    return Soaked(crowd, records, faults, [empty, warm, end], database.stat().st_size)


def watch(browser: Browser, until: float) -> list[str]:
    """What the numbers of the cache must be at every moment."""
    faults: list[str] = []
    while time.monotonic() < until:
        cache = browser.cache()
        pool, bytes_per_token = cache["pool"], cache["model"]["bytes_per_token"]
        if pool["bytes_used"] != pool["tokens"] * bytes_per_token or pool["bytes_used"] > pool["bytes_reserved"]:
            faults.append(f"the numbers of the cache do not agree: {pool}")
        if not 0 <= pool["rows_used"] <= pool["rows"]:
            faults.append(f"{pool['rows_used']} rows of {pool['rows']} were in use")
        if browser.get("/healthz").status != 200:
            faults.append("the server was not healthy")
        time.sleep(min(1.0, max(0.0, until - time.monotonic())))
    return faults[:5]


def worker_of(server_pid: int) -> int:
    """The process that has the engine: the one child of the server."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if stat.read_text().rpartition(")")[2].split()[1] == str(server_pid):
                return int(stat.parent.name)
        except OSError:  # ended meanwhile
            pass
    raise SystemExit("the server has no process with an engine")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, "model", "device", "dtype", "threads", "port", "context", "rows", "seed")
    parser.set_defaults(context="512", seed="1")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--people", "--clients", type=int, default=16)
    parser.add_argument("--compare", type=int, default=None, help="compare so many answers at most, drawn at random")
    args = parser.parse_args()
    settings = Settings.from_args(args)
    with tempfile.TemporaryDirectory() as data:
        with serving(settings, settings.port, data) as process:
            server = SimpleNamespace(port=settings.port, host=f"127.0.0.1:{settings.port}")
            soaked = soak(server, worker_of(process.pid), Path(data) / FILE_NAME, args.people, args.minutes * 60,
                          settings.seed)
    soaked.faults += compare(soaked.records, settings, args.compare, settings.seed)
    report(soaked, args.minutes)
    return 1 if soaked.faults else 0


def compare(records: Records, settings: Settings, at_most: int | None, seed: int) -> list[str]:
    """With a model that is loaded for this alone."""
    from app import _load

    model, tokenizer = _load(replace(settings, context=Settings.context))
    made = list(records.made.items())
    random.Random(seed).shuffle(made)
    records.made = Counter(dict(made))

    def tell(number: int, of: int) -> None:
        if number % 100 == 0:
            print(f"compared {number} of {of} answers", file=sys.stderr, flush=True)

    return records.compare(model, tokenizer, at_most, tell)


def report(soaked: Soaked, minutes: float) -> None:
    acts = sum((person.acts for person in soaked.people), Counter())
    refusals = sum((person.refusals for person in soaked.people), Counter())
    print(f"{len(soaked.people)} people, {minutes:g} minutes")
    for title, counts in (("acts", acts), ("refused", refusals), ("answers ended", Counter(soaked.records.reasons))):
        print(f"{title:16}" + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
    print(f"{'different ones':16}{len(soaked.records.made)}")
    print(f"{'near ties':16}{soaked.records.near_ties}")
    print(f"{'':16}{'empty':>12}{'warm':>12}{'at the end':>12}")
    for name in ("threads", "files", "memory_bytes"):
        print(f"{name:16}" + "".join(f"{getattr(gauges, name):12,}" for gauges in soaked.gauges))
    print(f"{'database':16}{soaked.database_bytes:,} bytes")
    print(f"{'faults':16}{len(soaked.faults)}")
    for fault in soaked.faults[:20]:
        print(f"  {fault}")


if __name__ == "__main__":
    sys.exit(main())
