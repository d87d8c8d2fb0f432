"""What organisations created on a reseller they share: only its creator may change it."""

from typing import Literal, NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import UpstreamObjectTable
from storage.statement import Command, Query, table

OBJECT = table(UpstreamObjectTable)
Kind = Literal["template", "zone"]


class Creator(NamedTuple):
    """Whose it is."""

    organisation: str


INSERT = Command(
    lambda dialect: (
        dialect.insert(OBJECT)
        .values({name: sa.bindparam(name) for name in ("kind", "id", "organisation", "created")})
        .on_conflict_do_nothing(index_elements=["kind", "id"])
    )
)
FIND = Query(Creator, sa.select(OBJECT.c.organisation).where(OBJECT.c.kind == sa.bindparam("kind"), OBJECT.c.id == sa.bindparam("id")))


def add_upstream_object(connection: Connection, *, kind: Kind, id: int, organisation: str, now: float) -> None:
    """Remember who created it."""
    connection.run(INSERT, kind=kind, id=id, organisation=organisation, created=int(now))


def creator_of(connection: Connection, *, kind: Kind, id: int) -> str | None:
    """The organisation that created it through us; nothing for what was there before, or made elsewhere."""
    found = connection.first(FIND, kind=kind, id=id)
    return None if found is None else found.organisation
