"""How the service connects to PostgreSQL: what is added to its address, and what a database must be like."""

import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from storage.engine.postgres_errors import UTF8, NotUtf8

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


def conninfo(url: str, **given: str | int) -> str:
    """The connection string of an address. What the address itself says wins; `given` wins over the service's defaults."""
    return make_conninfo(url, **{**CONNECTION_DEFAULTS, **given, **address_options(url), "client_encoding": UTF8})


def address_options(url: str) -> dict[str, str | int]:
    """Which of the defaults the address sets itself."""
    return {name: value for name, value in conninfo_to_dict(url).items() if name in CONNECTION_DEFAULTS and value is not None}


def require_utf8(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Close a connection to a database of another encoding, and raise NotUtf8; the server has told it while connecting."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding is not None and encoding != UTF8:
        connection.close()
        raise NotUtf8(encoding)


@contextmanager
def brief_connection(url: str) -> Generator[psycopg.Connection[tuple[object, ...]]]:
    """A connection for a few questions at a start, which breaks when they are not answered in 10 s."""
    with psycopg.connect(conninfo(url, **START_OPTIONS)) as connection:
        require_utf8(connection)
        wire = socket.socket(fileno=os.dup(connection.fileno()))
        timer = threading.Timer(START_SECONDS, cut_socket, [wire])
        timer.start()
        try:
            yield connection
        finally:
            timer.cancel()
            wire.close()


def cut_socket(wire: socket.socket) -> None:
    """Break a connection from outside; whoever waits for an answer on it hears of it."""
    with suppress(OSError):  # it is closed, or has broken by itself
        wire.shutdown(socket.SHUT_RDWR)
