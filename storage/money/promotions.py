"""Promotions: codes that buyers may use, each once per organisation."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.money.money_tables import PromotionTable
from storage.statement import Command, Query, table

PROMOTION = table(PromotionTable)
# Sorts behind every id: z is the last character of their alphabet.
AFTER_ALL = "pro_" + "z" * 27


class PromotionRow(NamedTuple):
    """A promotion; either `percent_off_bps` (hundredths of a per cent) or `amount_off` in minor units of `currency`."""

    id: str
    organisation: str
    code: str
    percent_off_bps: int | None
    amount_off: int | None
    currency: str | None
    max_redemptions: int | None
    expires_at: int | None
    active: int
    processor_promotion: str | None
    created: int


class Kept(NamedTuple):
    """A row was written."""

    id: str


COLUMNS = tuple(PROMOTION.c[name] for name in PromotionRow._fields)
OWN = PROMOTION.c.organisation == sa.bindparam("organisation")
INSERT = Query(
    Kept,
    lambda dialect: (
        dialect.insert(PROMOTION)
        .values({name: sa.bindparam(name) for name in PromotionRow._fields})
        .on_conflict_do_nothing(index_elements=["organisation", "code"])
        .returning(PROMOTION.c.id)
    ),
)
NAME = Command(
    sa.update(PROMOTION).where(PROMOTION.c.id == sa.bindparam("promotion")).values(processor_promotion=sa.bindparam("processor_promotion"))
)
REMOVE = Command(sa.delete(PROMOTION).where(PROMOTION.c.id == sa.bindparam("promotion"), PROMOTION.c.processor_promotion.is_(None)))
LIST = Query(
    PromotionRow,
    sa.select(*COLUMNS).where(OWN, PROMOTION.c.id < sa.bindparam("after")).order_by(PROMOTION.c.id.desc()).limit(sa.bindparam("most")),
)


def insert_promotion(connection: Connection, *, row: PromotionRow) -> bool:
    """Keep it. False: the organisation has this code already."""
    return connection.first(INSERT, **row._asdict()) is not None


def name_promotion(connection: Connection, *, promotion: str, processor_promotion: str) -> None:
    """The processor has it, under this id."""
    connection.run(NAME, promotion=promotion, processor_promotion=processor_promotion)


def remove_promotion(connection: Connection, *, promotion: str) -> None:
    """The processor surely made none: the code is free again."""
    connection.run(REMOVE, promotion=promotion)


def list_promotions(connection: Connection, *, organisation: str, after: str | None, most: int) -> list[PromotionRow]:
    """Newest first."""
    return connection.all(LIST, organisation=organisation, after=after or AFTER_ALL, most=most)
