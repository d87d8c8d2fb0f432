"""The service's share of an organisation's invoices and sales, where it is not that of all."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import OrganisationTable
from storage.statement import Command, Query, table

ORGANISATION = table(OrganisationTable)


class Rate(NamedTuple):
    """In basis points; nothing: the one of all."""

    platform_fee_bps: int | None


FIND = Query(Rate, sa.select(ORGANISATION.c.platform_fee_bps).where(ORGANISATION.c.id == sa.bindparam("organisation")))
SET = Command(sa.update(ORGANISATION).where(ORGANISATION.c.id == sa.bindparam("organisation")).values(platform_fee_bps=sa.bindparam("bps")))


def own_fee_bps(connection: Connection, *, organisation: str) -> int | None:
    """The organisation's own rate, where it has one."""
    found = connection.first(FIND, organisation=organisation)
    return None if found is None else found.platform_fee_bps


def set_fee_bps(connection: Connection, *, organisation: str, bps: int | None) -> bool:
    """Give it a rate of its own, or take it away; False: there is no such organisation."""
    return connection.run(SET, organisation=organisation, bps=bps) == 1
