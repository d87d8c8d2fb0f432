"""What organisations created on a reseller they share: only its creator may change it."""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import BigInt, Command, Connection, StatementBuild, TableDescription, all_rows, first_row, insert_once, writes


class UpstreamObjectTable(TableDescription, table=True):
    """What an organisation created on a shared reseller: only its creator may change it. `kind` is template or zone.

    The kinds recurring_template and single_template say what the charging system answered last to a change of a template, since its list
    does not say which ones are recurring.
    """

    kind: str = Field(primary_key=True)
    id: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})
    organisation: str
    created: BigInt


UPSTREAM_OBJECT = UpstreamObjectTable.table

UpstreamObjectKind = Literal["template", "zone"]
RecurrenceKind = Literal["recurring_template", "single_template"]
RECURRENCE_KINDS: Mapping[bool, RecurrenceKind] = {True: "recurring_template", False: "single_template"}
FORGET_RECURRENCE = Command(
    lambda _: sa.delete(UPSTREAM_OBJECT).where(UPSTREAM_OBJECT.c.kind == sa.bindparam("former"), UPSTREAM_OBJECT.c.id == sa.bindparam("id"))
)
NOTE_RECURRENCE = Command(insert_once(UPSTREAM_OBJECT, ["kind", "id", "organisation", "created"], key=["kind", "id"]))


class TemplateRecurrence(NamedTuple):
    """Whether a template is recurring, as its `kind`."""

    id: int
    kind: str


@writes
def add_upstream_object(*, kind: UpstreamObjectKind, id: int, organisation: str, now: Annotated[float, int]) -> StatementBuild:
    """Remember that `organisation` created a template or a zone. `now`: Unix seconds."""
    return insert_once(UPSTREAM_OBJECT, key=["kind", "id"], kind=kind, id=id, organisation=organisation, created=now)


@first_row(str)
def object_creator(*, kind: UpstreamObjectKind, id: int) -> sa.Executable:
    """The organisation that created the object through us; None for what was made elsewhere."""
    return sa.select(UPSTREAM_OBJECT.c.organisation).where(UPSTREAM_OBJECT.c.kind == kind, UPSTREAM_OBJECT.c.id == id)


def note_recurrence(connection: Connection, *, template_id: int, recurring: bool, organisation: str, now: float) -> None:
    """Remember whether a template is recurring, as the charging system answered a change of it. `now`: Unix seconds."""
    connection.run(FORGET_RECURRENCE, former=RECURRENCE_KINDS[not recurring], id=template_id)
    connection.run(NOTE_RECURRENCE, kind=RECURRENCE_KINDS[recurring], id=template_id, organisation=organisation, created=int(now))


def template_recurrences(connection: Connection) -> dict[int, bool]:
    """Whether templates are recurring, by their numbers, of those that were made or changed through us."""
    return {row.id: row.kind == RECURRENCE_KINDS[True] for row in list_recurrences(connection)}


@all_rows(TemplateRecurrence)
def list_recurrences() -> sa.Executable:
    return sa.select(UPSTREAM_OBJECT.c.id, UPSTREAM_OBJECT.c.kind).where(UPSTREAM_OBJECT.c.kind.in_(list(RECURRENCE_KINDS.values())))
