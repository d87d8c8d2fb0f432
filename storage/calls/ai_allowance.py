"""How often the language model may be asked for an organisation in a UTC day: reserved before it is, in one conditional statement.

Counted beside the daily quota, in its table, under a name of its own. What was reserved is never given back.
"""

from storage.calls.quota import charge, read_used
from storage.connection import Connection


def counter(owner: str) -> str:
    """The name it is counted under; retention knows it by how it begins."""
    return f"ai:{owner}"


def reserve(connection: Connection, *, owner: str, period: str, limit: int) -> int | None:
    """One more; the new total, or None when there are none left."""
    return charge(connection, organisation=counter(owner), period=period, cost=1, limit=limit)


def reserved(connection: Connection, *, owner: str, period: str) -> int:
    """How many so far."""
    return read_used(connection, organisation=counter(owner), period=period)
