"""How the service connects to PostgreSQL: what is added to its address, and what a database must be like."""

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from registry.errors import StoreUnavailable

NAME = "reseller"
CONNECT_SECONDS = 2
"""For each address of the host; psycopg takes no less."""
DEFAULTS: dict[str, str | int] = {
    "application_name": NAME,
    "connect_timeout": CONNECT_SECONDS,
    # A path that is lost is noticed in 16 s where nothing is under way, and in 2.5 s where something was sent.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 2500,
}
START: dict[str, str | int] = {"application_name": "reseller start", "connect_timeout": 5}
"""What is looked at before there is a store: by a person, or a process that begins."""
UTF8 = "UTF8"


class NotUtf8(StoreUnavailable):
    """The database stores text in another encoding than UTF-8, so that names of people and plans would not go in."""

    fix = "create database NAME encoding 'UTF8' locale 'C' template template0, name it in SERVICE_DATABASE_URL, then reseller db upgrade"

    def __init__(self, encoding: str) -> None:
        super().__init__(f"the database has the encoding {encoding}, and the service needs {UTF8}: {self.fix}")


def conninfo(url: str, **given: str | int) -> str:
    """The connection string of an address. What the address itself says wins; `given` wins over the service's defaults."""
    return make_conninfo(url, **{**DEFAULTS, **given, **told(url), "client_encoding": UTF8})


def told(url: str) -> dict[str, str | int]:
    """Which of the defaults the address sets itself."""
    return {name: value for name, value in conninfo_to_dict(url).items() if name in DEFAULTS and value is not None}


def require_utf8(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Close a connection to a database of another encoding, and raise NotUtf8; the server has told it while connecting."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding is not None and encoding != UTF8:
        connection.close()
        raise NotUtf8(encoding)
