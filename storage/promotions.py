"""Promotions: codes that buyers may use, each once per organisation."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa

from storage.engine.sql import BigInt, Key, StatementBuild, TableDescription, all_rows, changes_one, insert_once, or_last, writes


class PromotionRow(NamedTuple):
    """A promotion; either `percent_off_bps` (hundredths of a per cent) or `amount_off` in minor units of `currency`."""

    id: Key
    organisation: str
    code: str
    percent_off_bps: int | None
    amount_off: BigInt | None
    currency: str | None
    max_redemptions: int | None
    expires_at: BigInt | None
    active: int
    processor_promotion: str | None
    created: BigInt


class PromotionTable(TableDescription, row=PromotionRow, table=True):
    """A code that buyers may use. `processor_promotion` is the processor's id for it, where the organisation has an account there."""

    __table_args__ = (sa.Index("promotion_code", "organisation", "code", unique=True),)


PROMOTION = PromotionTable.table

PROMOTION_COLUMNS = tuple(PROMOTION.c[name] for name in PromotionRow._fields)

OWN_PROMOTION = PROMOTION.c.organisation == sa.bindparam("organisation")


@changes_one
def insert_promotion(*, row: PromotionRow) -> StatementBuild:
    """Insert a promotion; False: the organisation has this code already."""
    return insert_once(PROMOTION, key=["organisation", "code"], **row._asdict())


@writes
def name_promotion(*, promotion: str, processor_promotion: str) -> sa.Executable:
    """Store the processor's id of a promotion."""
    return sa.update(PROMOTION).where(PROMOTION.c.id == promotion).values(processor_promotion=processor_promotion)


@writes
def remove_promotion(*, promotion: str) -> sa.Executable:
    """Delete a promotion that the processor surely has not made: its code is free again."""
    return sa.delete(PROMOTION).where(PROMOTION.c.id == promotion, PROMOTION.c.processor_promotion.is_(None))


@all_rows(PromotionRow)
def list_promotions(*, organisation: str, after: Annotated[str | None, or_last("pro_")], most: int) -> sa.Executable:
    """At most `most` promotions behind the id `after`, newest first."""
    return sa.select(*PROMOTION_COLUMNS).where(OWN_PROMOTION, PROMOTION.c.id < after).order_by(PROMOTION.c.id.desc()).limit(most)
