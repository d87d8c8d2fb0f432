"""Database addresses: `sqlite:///data/service.db` (four slashes for an absolute path) or `postgresql://user@host/name`."""

from pathlib import Path

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
