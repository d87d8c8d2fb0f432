"""The run's own PostgreSQL server, standing still: its processes are stopped, and go on when the block ends."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest


class PostgresProcesses:
    """The server of an address, which this run has started."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as admin:
            row = admin.execute("show data_directory").fetchone()
        assert row is not None
        self._postmaster = int((Path(row[0]) / "postmaster.pid").read_text().split()[0])
        self._stopped: list[int] = []

    def stop(self) -> None:
        """From here on it answers nobody. Connections are taken by the system, and nothing comes of them."""
        os.kill(self._postmaster, signal.SIGSTOP)  # first, so that it makes no more children
        self._stopped = [self._postmaster, *children(self._postmaster)]
        for pid in self._stopped[1:]:
            os.kill(pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """It answers again, what it was asked meanwhile first."""
        for pid in reversed(self._stopped):
            os.kill(pid, signal.SIGCONT)
        self._stopped.clear()


def children(parent: int) -> list[int]:
    """The processes that a process has made."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


@contextmanager
def stoppable(url: str) -> Generator[PostgresProcesses]:
    """The server's processes; it goes on however the block ends."""
    if os.environ.get("TEST_PG_URL"):
        pytest.skip("TEST_PG_URL names a server that is not ours to stop")
    processes = PostgresProcesses(url)
    try:
        yield processes
    finally:
        processes.go_on()
