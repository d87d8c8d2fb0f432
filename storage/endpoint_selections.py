"""What webhook endpoints have chosen: the types of events, the tags of lines, and whose rights they hold.

An endpoint that has chosen no types gets the three that every endpoint was promised. One that has chosen gets what the credential that
chose may read; when that ends, the endpoint gets nothing more until somebody else chooses.
"""

from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import BigInt, Command, Connection, Key, Query, TableDescription, all_rows, first_row, row_exists, upsert


class EndpointSelection(NamedTuple):
    """What an endpoint has chosen. `types` and `tags` are JSON lists of texts, `types` of names and globs; null: nothing was chosen.

    `kind`, `principal`, `credential`: who chose, with which key or login. `changed`: when, Unix seconds.
    """

    endpoint: Key
    organisation: str
    types: str | None
    tags: str | None
    description: str
    kind: str
    principal: str
    credential: str
    changed: BigInt


class EndpointSelectionTable(TableDescription, row=EndpointSelection, table=True):
    """What an endpoint has chosen, and how many test sends it had in which minute."""

    test_minute: BigInt
    test_count: int
    __table_args__ = (sa.Index("endpoint_selection_organisation", "organisation"),)


ENDPOINT_SELECTION = EndpointSelectionTable.table

SELECTION_COLUMNS = tuple(ENDPOINT_SELECTION.c[name] for name in EndpointSelection._fields)

PUT_SELECTION = Command(
    lambda dialect: (
        dialect.insert(ENDPOINT_SELECTION)
        .values({name: sa.bindparam(name) for name in EndpointSelection._fields} | {"test_minute": 0, "test_count": 0})
        .on_conflict_do_update(
            index_elements=["endpoint"],
            set_={name: sa.bindparam(name) for name in EndpointSelection._fields if name not in ("endpoint", "organisation")},
        )
    )
)

DELETE_SELECTION = Command(sa.delete(ENDPOINT_SELECTION).where(ENDPOINT_SELECTION.c.endpoint == sa.bindparam("endpoint")))


def put_selection(connection: Connection, *, row: EndpointSelection) -> None:
    """Keep what an endpoint has chosen."""
    connection.run(PUT_SELECTION, **row._asdict())


def forget_selection(connection: Connection, *, endpoint: str) -> None:
    """The endpoint is gone."""
    if connection.has(ENDPOINT_SELECTION):
        connection.run(DELETE_SELECTION, endpoint=endpoint)


@all_rows(EndpointSelection)
def selections_of(*, organisation: str) -> sa.Executable:
    return sa.select(*SELECTION_COLUMNS).where(ENDPOINT_SELECTION.c.organisation == organisation)


def list_selections(connection: Connection, *, organisation: str) -> list[EndpointSelection]:
    """What the endpoints of an organisation have chosen; none on a schema without it."""
    return selections_of(connection, organisation=organisation) if connection.has(ENDPOINT_SELECTION) else []


@first_row(EndpointSelection)
def selection_of(*, endpoint: str) -> sa.Executable:
    return sa.select(*SELECTION_COLUMNS).where(ENDPOINT_SELECTION.c.endpoint == endpoint)


def find_selection(connection: Connection, *, endpoint: str) -> EndpointSelection | None:
    """What an endpoint has chosen, if anything was ever said of it."""
    return selection_of(connection, endpoint=endpoint) if connection.has(ENDPOINT_SELECTION) else None


INSERT_EMPTY_SELECTION = Query(
    str,
    lambda dialect: (
        dialect.insert(ENDPOINT_SELECTION)
        .values(
            {name: sa.bindparam(name) for name in ("endpoint", "organisation")}
            | {name: "" for name in ("description", "kind", "principal", "credential")}
            | {"types": sa.null(), "tags": sa.null(), "changed": 0, "test_minute": 0, "test_count": 0}
        )
        .on_conflict_do_nothing(index_elements=["endpoint"])
        .returning(ENDPOINT_SELECTION.c.endpoint)
    ),
)


@row_exists
def count_test(*, endpoint: str, minute: int, most: int) -> sa.Executable:
    # The limit stands in the statement: two at once cannot both be the tenth.
    same = ENDPOINT_SELECTION.c.test_minute == minute
    return (
        sa.update(ENDPOINT_SELECTION)
        .where(ENDPOINT_SELECTION.c.endpoint == endpoint, sa.not_(same) | (ENDPOINT_SELECTION.c.test_count < most))
        .values(test_minute=minute, test_count=sa.case((same, ENDPOINT_SELECTION.c.test_count + 1), else_=1))
        .returning(ENDPOINT_SELECTION.c.endpoint)
    )


def count_test_send(connection: Connection, *, endpoint: str, organisation: str, minute: int, most: int) -> bool:
    """Count one test send to an endpoint; False when the minute's allowance is used up."""
    connection.first(INSERT_EMPTY_SELECTION, endpoint=endpoint, organisation=organisation)
    return count_test(connection, endpoint=endpoint, minute=minute, most=most)
