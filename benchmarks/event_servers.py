"""Servers and workers of this revision, and of the one before the log, each on a database of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.contestant import ROOT, Contestant, await_health, environment, free_port, printed_key
from benchmarks.fleet_sync import KEYS
from benchmarks.names import BEFORE_LOG, WITH_LOG

UPGRADE = "import sys; from storage.engine.migrate import upgrade_database; upgrade_database(sys.argv[1])"
STOP_SECONDS = 30


class Revision(NamedTuple):
    """A checkout and its name in the tables."""

    name: str
    root: Path


class EventServer(NamedTuple):
    """A server, the key of its organisation, and the process of its worker if that is one of its own."""

    contestant: Contestant
    key: str
    organisation: str
    worker: int | None


def revisions(before: Path | None) -> list[Revision]:
    """This one, and the one that it is compared with."""
    return [Revision(WITH_LOG, ROOT), *([] if before is None else [Revision(BEFORE_LOG, before)])]


def environment_of(root: Path, url: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a server of that checkout; with an address, on PostgreSQL."""
    told = {} if url.startswith("sqlite") else {"SERVICE_DATABASE_URL": url, "SERVICE_SECRET_KEYS": KEYS, "SERVICE_DEMO": "true"}
    given = {**environment(), "PYTHONPATH": str(root), **told, **settings}
    if root != ROOT:
        del given["SERVICE_DEMO_LIFE"]  # a setting that an older checkout may not know
    return given


def upgrade(root: Path, url: str) -> None:
    """The tables of that checkout in a new database."""
    subprocess.run([sys.executable, "-P", "-c", UPGRADE, url], cwd=root, env=environment_of(root, url, {}), check=True, timeout=120)


def answer_of(root: Path, words: Sequence[str], asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a program over that checkout prints."""
    command = [sys.executable, "-P", *words, json.dumps(asked)]
    done = subprocess.run(command, cwd=root, env=environment_of(root, "sqlite", {}), stdout=subprocess.PIPE, check=True, timeout=300)
    return json.loads(done.stdout)


@contextmanager
def serving(
    name: str, root: Path, folder: Path, url: str, *, worker: bool, key: str = "", settings: Mapping[str, str] | None = None
) -> Generator[EventServer]:
    """A server of that checkout. `worker`: in a process of its own; else in the server's."""
    port, told = free_port(), environment_of(root, url, {"SERVICE_WORKER": "false" if worker else "true", **(settings or {})})
    command = [sys.executable, "-m", "transports.cli"]
    with (folder / "log").open("ab") as log, (folder / "out").open("wb") as out:
        words = [*command, "serve", "--port", str(port), "--data", str(folder), "--json"]
        process = subprocess.Popen(words, cwd=folder, env=told, stdout=out, stderr=log)
        beside: subprocess.Popen[bytes] | None = None
        try:
            await_health(port, process, folder)
            shown = printed_key(folder / "out")
            organisation = printed_organisation(folder / "out")
            if worker:
                beside = subprocess.Popen(
                    [*command, "worker", "--data", str(folder)], cwd=folder, env=told, stdout=subprocess.DEVNULL, stderr=log
                )
            yield EventServer(Contestant(name, port, process.pid, folder), key or shown, organisation, beside.pid if beside else None)
        finally:
            for each in (beside, process):
                if each is not None:
                    stop(each)


def printed_organisation(out: Path) -> str:
    """The organisation in the line that the service prints."""
    return str(json.loads(out.read_text())["org_id"])


def stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def load_now() -> float:
    """The load of the machine in the last minute, what is measured included."""
    return round(os.getloadavg()[0], 2)
