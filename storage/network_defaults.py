"""Which networks an organisation's new assignments are to use: its one stored choice."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import BigInt, StatementBuild, TableDescription, first_row, upsert, writes


class NetworkDefaultTable(TableDescription, table=True):
    """Which networks an organisation's new assignments use: cheapest_available, all, or custom with a steering list."""

    organisation: str = Field(primary_key=True)
    mode: str
    list_id: BigInt | None
    updated: BigInt


NETWORK_DEFAULT = NetworkDefaultTable.table


class NetworkDefault(NamedTuple):
    """The mode, and the steering list of the mode custom."""

    mode: str
    list_id: int | None


@writes
def put_network_default(*, organisation: str, mode: str, list_id: int | None, now: Annotated[float, int]) -> StatementBuild:
    """Replace the organisation's choice. `now`: Unix seconds."""
    return upsert(NETWORK_DEFAULT, key=["organisation"], organisation=organisation, mode=mode, list_id=list_id, updated=now)


@first_row(NetworkDefault)
def find_network_default(*, organisation: str) -> sa.Executable:
    """The organisation's choice, or None when none was ever made."""
    return sa.select(NETWORK_DEFAULT.c.mode, NETWORK_DEFAULT.c.list_id).where(NETWORK_DEFAULT.c.organisation == organisation)
