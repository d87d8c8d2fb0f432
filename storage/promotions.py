"""Promotions: codes that buyers may use, each once per organisation."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.connection import Connection
from storage.engine.statement import Command, Query
from storage.engine.table import TableDescription, table_of


class PromotionTable(TableDescription, table=True):
    """A code that buyers may use. `processor_promotion` is the processor's id for it, where the organisation has an account there."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    code: str = Field(sa_type=sa.Text)
    percent_off_bps: int | None = None
    amount_off: int | None = Field(default=None, sa_type=sa.BigInteger)
    currency: str | None = Field(default=None, sa_type=sa.Text)
    max_redemptions: int | None = None
    expires_at: int | None = Field(default=None, sa_type=sa.BigInteger)
    active: int = 1
    processor_promotion: str | None = Field(default=None, sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("promotion_code", "organisation", "code", unique=True),)


PROMOTION = table_of(PromotionTable)

# Sorts behind every id: z is the last character of their alphabet.
LAST_PROMOTION_ID = "pro_" + "z" * 27


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


class PromotionId(NamedTuple):
    """A row was written."""

    id: str


PROMOTION_COLUMNS = tuple(PROMOTION.c[name] for name in PromotionRow._fields)

OWN_PROMOTION = PROMOTION.c.organisation == sa.bindparam("organisation")

INSERT_PROMOTION = Query(
    PromotionId,
    lambda dialect: (
        dialect.insert(PROMOTION)
        .values({name: sa.bindparam(name) for name in PromotionRow._fields})
        .on_conflict_do_nothing(index_elements=["organisation", "code"])
        .returning(PROMOTION.c.id)
    ),
)

NAME_PROMOTION = Command(
    sa.update(PROMOTION).where(PROMOTION.c.id == sa.bindparam("promotion")).values(processor_promotion=sa.bindparam("processor_promotion"))
)

REMOVE_PROMOTIONS = Command(
    sa.delete(PROMOTION).where(PROMOTION.c.id == sa.bindparam("promotion"), PROMOTION.c.processor_promotion.is_(None))
)

LIST_PROMOTIONS = Query(
    PromotionRow,
    sa.select(*PROMOTION_COLUMNS)
    .where(OWN_PROMOTION, PROMOTION.c.id < sa.bindparam("after"))
    .order_by(PROMOTION.c.id.desc())
    .limit(sa.bindparam("most")),
)


def insert_promotion(connection: Connection, *, row: PromotionRow) -> bool:
    """Keep it. False: the organisation has this code already."""
    return connection.first(INSERT_PROMOTION, **row._asdict()) is not None


def name_promotion(connection: Connection, *, promotion: str, processor_promotion: str) -> None:
    """The processor has it, under this id."""
    connection.run(NAME_PROMOTION, promotion=promotion, processor_promotion=processor_promotion)


def remove_promotion(connection: Connection, *, promotion: str) -> None:
    """The processor surely made none: the code is free again."""
    connection.run(REMOVE_PROMOTIONS, promotion=promotion)


def list_promotions(connection: Connection, *, organisation: str, after: str | None, most: int) -> list[PromotionRow]:
    """Newest first."""
    return connection.all(LIST_PROMOTIONS, organisation=organisation, after=after or LAST_PROMOTION_ID, most=most)
