"""A real server in a process of its own, as a user starts it; its imports were done before."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import AnyStr

from tests.databases import migrated_sqlite
from tests.harness.fork_server import reseller

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-P", "-m", "transports.cli"]
"""The real command; `reseller()` is a fork of a process that has its imports done."""


def environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without the settings of the machine the tests run on. A demo has nothing but its seed unless a test wants its life, too."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SERVICE_", "RESELLER_"))}
    told = given or {}
    # Over other systems there is none anyway, and what runs there may be an older release, which does not know the setting.
    quiet = {} if told.keys() & {"SERVICE_DATABASE_URL", "SERVICE_OCS_URL"} else {"SERVICE_DEMO_LIFE": "false"}
    return {**inherited, "PYTHONPATH": str(ROOT), **quiet, **told}


LONGEST_STOP, STACKS_SECONDS = 60, 5
LONGEST_LOG = 20_000
"""Characters of a log that a failure shows."""


@dataclass(frozen=True, slots=True)
class Running:
    process: subprocess.Popen[bytes]
    base_url: str
    mcp_url: str
    api_key: str | None
    organisation: str
    log: Path


def start(
    data: Path,
    settings: Mapping[str, str] | None = None,
    *,
    bare: bool = False,
    port: int = 0,
    program: Sequence[str] = (),
    folder: Path = ROOT,
) -> Running:
    """`reseller serve --json`, on a free port unless one is given; returns once it listens. Its log goes beside the data directory.

    A new data directory gets a database at HEAD with nothing in it, as `reseller db upgrade` leaves it, unless it is to stay bare.
    `program`: another `reseller` than this one's; `folder`: where it starts.
    """
    if not (bare or data.exists()) and "SERVICE_DATABASE_URL" not in (settings or {}):
        data.mkdir(parents=True)
        migrated_sqlite(data)
    log = data.with_name(f"{data.name}.log")
    with log.open("ab") as complaints:
        process = subprocess.Popen(
            [*(program or [reseller()]), "serve", "--port", str(port), "--data", str(data), "--json"],
            cwd=folder,
            env=environment(settings),
            stdout=subprocess.PIPE,
            stderr=complaints,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, log.read_text()
    said = json.loads(line)
    return Running(process, said["base_url"], said["mcp_url"], said["api_key"], said["org_id"], log)


def stop(server: Running, how: signal.Signals = signal.SIGTERM) -> int:
    """End it and say with which code it ended. One that stands still is asked where each of its threads is, and killed."""
    server.process.send_signal(how)
    try:
        return server.process.wait(LONGEST_STOP)
    except subprocess.TimeoutExpired:
        server.process.send_signal(signal.SIGQUIT)
        with suppress(subprocess.TimeoutExpired):
            server.process.wait(STACKS_SECONDS)
        server.process.kill()
        server.process.wait()
        last = server.log.read_text(errors="replace")[-LONGEST_LOG:]
        raise AssertionError(f"the server did not end within {LONGEST_STOP} s; its log ends with:\n{last}") from None
    finally:
        if server.process.stdout is not None:
            server.process.stdout.close()


@contextmanager
def running(
    data: Path,
    settings: Mapping[str, str] | None = None,
    *,
    bare: bool = False,
    port: int = 0,
    program: Sequence[str] = (),
    folder: Path = ROOT,
) -> Generator[Running]:
    server = start(data, settings, bare=bare, port=port, program=program, folder=folder)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            stop(server)


class Child(subprocess.Popen[AnyStr]):
    """A program whose block waits for its end, as a `Popen` does, but not when the block failed: what it waits for may never come then."""

    def __exit__(self, exc_type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        if exc_type is not None:
            self.kill()
        super().__exit__(exc_type, value, traceback)


FIRST = 10_000
LAST = 32_000
"""Below those that the system gives to clients: none of another test's connections gets one while its server is away."""
TAKEN = count(os.getpid() * 97)


def free_port() -> int:
    """One on which nobody listens, and that this process has not given yet."""
    while True:
        port = FIRST + next(TAKEN) % (LAST - FIRST)
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
