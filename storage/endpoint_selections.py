"""What webhook endpoints have chosen: the types of events, the tags of lines, and whose rights they hold.

An endpoint that has chosen no types gets the three that every endpoint was promised. One that has chosen gets what the credential that
chose may read; when that ends, the endpoint gets nothing more until somebody else chooses.
"""

from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import BigInt, Command, Connection, Key, TableDescription, all_rows, first_row, insert_once, row_exists, writes


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

# The counts of test sends stay.
INSERT_SELECTION = Command(insert_once(ENDPOINT_SELECTION, EndpointSelection._fields, key=["endpoint"], test_minute=0, test_count=0))

UPDATE_SELECTION = Command(
    sa.update(ENDPOINT_SELECTION)
    .where(ENDPOINT_SELECTION.c.endpoint == sa.bindparam("of"))
    .values({name: sa.bindparam(name) for name in EndpointSelection._fields if name not in ("endpoint", "organisation")})
)


def put_selection(connection: Connection, *, row: EndpointSelection) -> None:
    """Keep what an endpoint has chosen."""
    values = row._asdict()
    if connection.run(INSERT_SELECTION, **values) == 0:
        del values["endpoint"], values["organisation"]
        connection.run(UPDATE_SELECTION, of=row.endpoint, **values)


@writes
def forget_selection(*, endpoint: str) -> sa.Executable:
    """The endpoint is gone."""
    return sa.delete(ENDPOINT_SELECTION).where(ENDPOINT_SELECTION.c.endpoint == endpoint)


@all_rows(EndpointSelection)
def list_selections(*, organisation: str) -> sa.Executable:
    """What the endpoints of an organisation have chosen."""
    # In the order in which endpoints are judged: who disables several at once takes them as whoever else does.
    return sa.select(*SELECTION_COLUMNS).where(ENDPOINT_SELECTION.c.organisation == organisation).order_by(ENDPOINT_SELECTION.c.endpoint)


@first_row(EndpointSelection)
def find_selection(*, endpoint: str) -> sa.Executable:
    """What an endpoint has chosen, if anything was ever said of it."""
    return sa.select(*SELECTION_COLUMNS).where(ENDPOINT_SELECTION.c.endpoint == endpoint)


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
    connection.run(INSERT_SELECTION, **EndpointSelection(endpoint, organisation, None, None, "", "", "", "", 0)._asdict())
    return count_test(connection, endpoint=endpoint, minute=minute, most=most)
