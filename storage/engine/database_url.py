"""Database addresses: `sqlite:///data/service.db` (four slashes for an absolute path) or `postgresql://user@host/name`.

How the service connects to one of PostgreSQL: the library, what is added to the address, and what the database must be like.
"""

import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from storage.engine.postgres_errors import UTF8, NotUtf8, unreachable

if TYPE_CHECKING:
    import psycopg

SQLITE_SCHEME = "sqlite:///"
POSTGRESQL_SCHEMES = ("postgresql://", "postgres://")


def is_sqlite_url(url: str) -> bool:
    """Whether the address names an SQLite file; refuses what is neither SQLite nor PostgreSQL."""
    if url.startswith(SQLITE_SCHEME) and len(url) > len(SQLITE_SCHEME) and ":memory:" not in url:
        return True
    if url.startswith(POSTGRESQL_SCHEMES):
        return False
    # Only the scheme is shown: the rest may hold a password.
    raise ValueError(
        f"the database address starts with {url.split(':', 1)[0]!r}; it must be sqlite:///path/to/file (a file, not :memory:) "
        "or postgresql://user@host/name"
    )


def sqlite_path(url: str) -> Path:
    """The file an SQLite address names."""
    if not is_sqlite_url(url):
        raise ValueError("this address names PostgreSQL, which is not a file")
    return Path(url.removeprefix(SQLITE_SCHEME))


APPLICATION_NAME = "reseller"
CONNECT_SECONDS = 2
"""For each address of the host; psycopg takes no less."""
CONNECTION_DEFAULTS: dict[str, str | int] = {
    "application_name": APPLICATION_NAME,
    "connect_timeout": CONNECT_SECONDS,
    # A path that is lost is noticed in 16 s where nothing is under way, and in 2.5 s where something was sent.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 2500,
}
START_OPTIONS: dict[str, str | int] = {"application_name": "reseller start", "connect_timeout": 5}
"""What is looked at before there is a store: by a person, or a process that begins."""
START_SECONDS = 10.0
"""For all that is asked then: a server that stands still keeps nobody waiting."""


def load_psycopg():  # noqa: ANN201  # the type checker infers the module
    """The library, imported with the first address of PostgreSQL: it is slow to import, and SQLite does without."""
    import psycopg.conninfo

    return psycopg


def conninfo(url: str, **given: str | int) -> str:
    """The connection string of the address `url`. What the address itself says wins; `given` wins over the service's defaults."""
    library = load_psycopg().conninfo
    own = {name: value for name, value in library.conninfo_to_dict(url).items() if name in CONNECTION_DEFAULTS and value is not None}
    return library.make_conninfo(url, **{**CONNECTION_DEFAULTS, **given, **own, "client_encoding": UTF8})


def require_utf8(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Close a connection to a database of another encoding, and raise NotUtf8; the server has told it while connecting."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding is not None and encoding != UTF8:
        connection.close()
        raise NotUtf8(encoding)


def connect_at_start(url: str) -> "psycopg.Connection[tuple[object, ...]]":
    """A connection to the address `url`, as START_OPTIONS say. Raises StoreUnavailable; waits for the network."""
    psycopg = load_psycopg()
    try:
        connection = psycopg.connect(conninfo(url, **START_OPTIONS))
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise unreachable(error) from error
    require_utf8(connection)
    return connection


@contextmanager
def brief_connection(url: str) -> Generator["psycopg.Connection[tuple[object, ...]]"]:
    """A connection for a few questions at a start, which breaks when they are not answered in 10 s. Raises StoreUnavailable."""
    psycopg = load_psycopg()
    with connect_at_start(url) as connection:
        wire = socket.socket(fileno=os.dup(connection.fileno()))
        timer = threading.Timer(START_SECONDS, cut_socket, [wire])
        timer.start()
        try:
            yield connection
        except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
            raise unreachable(error) from error
        finally:
            timer.cancel()
            wire.close()


def cut_socket(wire: socket.socket) -> None:
    """Break the connection that has the socket `wire`, from another thread: what waits for an answer on it raises."""
    with suppress(OSError):  # it is closed, or has broken by itself
        wire.shutdown(socket.SHUT_RDWR)
