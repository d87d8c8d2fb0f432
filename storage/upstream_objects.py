"""What organisations created on a reseller they share: only its creator may change it."""

from typing import Annotated, Literal

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import BigInt, StatementBuild, TableDescription, first_row, insert_once, writes


class UpstreamObjectTable(TableDescription, table=True):
    """What an organisation created on a shared reseller: only its creator may change it. `kind` is template or zone."""

    kind: str = Field(primary_key=True)
    id: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})
    organisation: str
    created: BigInt


UPSTREAM_OBJECT = UpstreamObjectTable.table

UpstreamObjectKind = Literal["template", "zone"]


@writes
def add_upstream_object(*, kind: UpstreamObjectKind, id: int, organisation: str, now: Annotated[float, int]) -> StatementBuild:
    """Remember that `organisation` created a template or a zone. `now`: Unix seconds."""
    return insert_once(UPSTREAM_OBJECT, key=["kind", "id"], kind=kind, id=id, organisation=organisation, created=now)


@first_row(str)
def object_creator(*, kind: UpstreamObjectKind, id: int) -> sa.Executable:
    """The organisation that created the object through us; None for what was made elsewhere."""
    return sa.select(UPSTREAM_OBJECT.c.organisation).where(UPSTREAM_OBJECT.c.kind == kind, UPSTREAM_OBJECT.c.id == id)
