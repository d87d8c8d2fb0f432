"""An organisation's connection to the upstream, with what only the service itself may know of it."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import OrganisationTable
from storage.statement import Query, table

ORGANISATION = table(OrganisationTable)


class UpstreamRow(NamedTuple):
    """`own_token` is sealed; `service_own` marks the organisation whose account is the service's."""

    mode: str | None
    account_id: int | None
    own_token: str | None
    service_own: int


FIND = Query(
    UpstreamRow,
    sa.select(ORGANISATION.c.mode, ORGANISATION.c.account_id, ORGANISATION.c.own_token, ORGANISATION.c.service_own).where(
        ORGANISATION.c.id == sa.bindparam("organisation")
    ),
)


def find_connection(connection: Connection, *, organisation: str) -> UpstreamRow | None:
    """How an organisation reaches the upstream."""
    return connection.first(FIND, organisation=organisation)
