"""Database addresses: `sqlite:///data/service.db` (four slashes for an absolute path) or `postgresql://user@host/name`.

How the service connects to one of PostgreSQL: the library, what is added to the address, and what the database must be like. Why a server
cannot be reached is told as a class, to the person at the terminal: its own text names hosts, users and databases, and is not repeated.
Answers of the API say only that the database is unavailable.
"""

import os
import re
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from registry.errors import StoreUnavailable

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


NO_CONNECTION_LEFT = (
    "the server has no connection left (53300): raise its max_connections, or the limit of the user or the database, "
    "or lower SERVICE_DATABASE_POOL"
)
SERVER_STARTING = "the server is starting or stopping"
UNKNOWN_CAUSE = "the server's log may say why"
FULL_SERVER_WORDS = ("too many clients", "too many connections", "remaining connection slots")
"""What a server says that has no connection left: at all, for the user or the database, or for users without privileges."""
# libpq gives a failed connection no code, so its words decide; in another language, or in new words, the general sentence is left.
# The order matters: a refusal of the server names what was refused, and several addresses may fail for several reasons.
UNREACHABLE_REASONS = (
    ("password authentication failed", "the password or the user was rejected"),
    ("no password supplied", "the server asks for a password, and none is given"),
    ("no pg_hba.conf entry", "the server does not admit this user from this machine, or only with TLS (its pg_hba.conf says whom)"),
    ("authentication failed", "the server rejected the user"),
    ("permission denied for database", "the user may not use the database"),
    ("database system is", SERVER_STARTING),
    *((words, NO_CONNECTION_LEFT) for words in FULL_SERVER_WORDS),
    ("certificate", "TLS failed: the certificate was not accepted"),
    ("does not support ssl", "TLS failed: the server does not offer it"),
    ("ssl", "TLS failed"),
    ("could not translate host name", "its host name is not known"),
    ("failed to resolve host", "its host name is not known"),
    ("name or service not known", "its host name is not known"),
    ("connection refused", "the connection was refused; nothing listens at that host and port"),
    ("no such file or directory", "nothing listens at that socket"),
    ("timeout", "it did not answer in time"),
    ("timed out", "it did not answer in time"),
    ("unreachable", "there is no way to that host"),
)
BAD_ADDRESS = "SERVICE_DATABASE_URL cannot be read: postgresql://user:password@host:port/name, special characters of the password as %XX"
BAD_ADDRESS_WORDS = (
    "invalid percent-encoded",
    "invalid port",
    "invalid uri",
    "invalid connection option",
    "invalid integer value",
    "in uri",
    'missing "="',
)
NO_PRIVILEGE = "42501"
UTF8 = "UTF8"


class NotUtf8(StoreUnavailable):
    """The database stores text in another encoding than UTF-8, so that names of people and plans would not go in."""

    fix = "create database NAME encoding 'UTF8' locale 'C' template template0, name it in SERVICE_DATABASE_URL, then reseller db upgrade"

    def __init__(self, encoding: str) -> None:
        self.state = f"the database has the encoding {encoding}, and the service needs {UTF8}"
        super().__init__(f"{self.state}: {self.fix}")


class TablesInUse(StoreUnavailable):
    """Another transaction uses a table that a migration changes; the migration was undone."""


def has_no_connection_left(text: str) -> bool:
    """Whether the text of a failed connection says so."""
    return any(words in text.lower() for words in FULL_SERVER_WORDS)


def unreachable(error: Exception) -> StoreUnavailable:
    """The refusal for a connection that could not be made, or that may not do what every start does."""
    text = str(error).lower()
    state: object = getattr(error, "sqlstate", None)
    if state is None and any(words in text for words in BAD_ADDRESS_WORDS):
        return StoreUnavailable(BAD_ADDRESS)
    reason = "the user may not read its tables" if state == NO_PRIVILEGE else failure_cause(text)
    return StoreUnavailable(f"the database cannot be reached: {reason}")


def failure_cause(text: str) -> str:
    """The class of a failure, from the lower-case words of libpq and of the server."""
    missing = re.search(r'(database|role) "[^"]*" does not exist', text)
    if missing:
        return "there is no database of that name on the server" if missing[1] == "database" else "the server does not know the user"
    return next((reason for words, reason in UNREACHABLE_REASONS if words in text), UNKNOWN_CAUSE)


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
