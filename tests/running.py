"""A real server in a process of its own, as a user starts it; its imports were done before."""

import json
import os
import signal
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.databases import migrated_sqlite
from tests.nursery import reseller

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Running:
    """Where it listens, and what it printed."""

    process: subprocess.Popen[bytes]
    base_url: str
    mcp_url: str
    api_key: str | None
    organisation: str


def start(
    data: Path, environment: Mapping[str, str] | None = None, *, bare: bool = False, port: int = 0, program: Sequence[str] = ()
) -> Running:
    """`reseller serve --json`, on a free port unless one is given; returns once it listens. Its log goes beside the data directory.

    A new data directory gets a database at HEAD with nothing in it, as `reseller db upgrade` leaves it, unless it is to stay bare.
    `program`: another `reseller` than this one's.
    """
    if not (bare or data.exists()) and "SERVICE_DATABASE_URL" not in (environment or {}):
        data.mkdir(parents=True)
        migrated_sqlite(data)
    log = data.with_name(f"{data.name}.log").open("ab")
    process = subprocess.Popen(
        [*(program or [reseller()]), "serve", "--port", str(port), "--data", str(data), "--json"],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=log,
    )
    log.close()
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, data.with_name(f"{data.name}.log").read_text()
    said = json.loads(line)
    return Running(process, said["base_url"], said["mcp_url"], said["api_key"], said["org_id"])


def stop(server: Running, how: signal.Signals = signal.SIGTERM) -> int:
    """End it and say with which code it ended."""
    server.process.send_signal(how)
    try:
        return server.process.wait(60)
    finally:
        if server.process.stdout is not None:
            server.process.stdout.close()


@contextmanager
def running(data: Path, environment: Mapping[str, str] | None = None, *, port: int = 0, program: Sequence[str] = ()) -> Generator[Running]:
    """A server for the length of a block."""
    server = start(data, environment, port=port, program=program)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            stop(server)
