"""Why a PostgreSQL server cannot be reached, as a class: its own text names hosts, users and databases, and is not repeated.

For the person at the terminal. Answers of the API say only that the database is unavailable.
"""

import re

from registry.errors import StoreUnavailable

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
