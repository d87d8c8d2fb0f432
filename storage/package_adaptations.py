"""Packages that get the limits and the end of what was sold, in place of their template's.

A product or a plan of a shop that says so has its id in `adapted_offer`. When an eSIM is drawn for it, a row of `package_adaptation` is
written beside the ledger's row, in the commit before the call, and it is deleted once the package is as it was sold. It is due once the
eSIM is drawn; of one that was not drawn it is looked at in a week, since a late answer may name an eSIM after all.
"""

from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Key,
    Query,
    TableDescription,
    bound_list,
    changes_one,
    insert_once,
    pack_rows,
    row_exists,
    writes,
)

ADAPTATION_LEASE_MS = 120_000
UNDRAWN_MS = 7 * 86_400_000
"""Choice: how long the terms of what was not drawn are kept."""


class PackageTerms(NamedTuple):
    """What a package is to hold, in bytes, and how many days it is to run from its first use."""

    data_bytes: int
    days: int


class PackageAdaptation(NamedTuple):
    """A package of an issuance that is to get other terms than its template's. `key` is the ledger's; `tries`: how often it was begun."""

    organisation: Key
    key: Key
    data_bytes: BigInt
    days: BigInt
    lease: str | None
    tries: int

    @property
    def terms(self) -> PackageTerms:
        return PackageTerms(self.data_bytes, self.days)


class PackageAdaptationTable(TableDescription, row=PackageAdaptation, table=True):
    """A package that is to get the terms of what was sold. `due_ms`: when somebody looks at it; a lease ends when it is due again."""

    due_ms: BigInt
    __table_args__ = (sa.Index("package_adaptation_due", "due_ms"),)


class AdaptedOfferTable(TableDescription, table=True):
    """The id of a product or of a shop's plan whose packages get its own limits and end."""

    id: str = Field(primary_key=True)


PACKAGE_ADAPTATION = PackageAdaptationTable.table
ADAPTED_OFFER = AdaptedOfferTable.table
THIS_ADAPTATION: sa.ColumnElement[bool] = (PACKAGE_ADAPTATION.c.organisation == sa.bindparam("organisation")) & (
    PACKAGE_ADAPTATION.c.key == sa.bindparam("key")
)
MARK_OFFER = Command(insert_once(ADAPTED_OFFER, ["id"], key=["id"]))
UNMARK_OFFER = Command(lambda _: sa.delete(ADAPTED_OFFER).where(ADAPTED_OFFER.c.id == sa.bindparam("id")))
ADAPTED_AMONG = Query(str, lambda dialect: sa.select(ADAPTED_OFFER.c.id).where(ADAPTED_OFFER.c.id.in_(bound_list(dialect, "ids"))))
INSERT_ADAPTATION = Command(
    insert_once(PACKAGE_ADAPTATION, ["organisation", "key", *PackageTerms._fields, "due_ms"], key=["organisation", "key"], tries=0)
)
PICK_ADAPTATION = (
    sa.select(PACKAGE_ADAPTATION.c.organisation, PACKAGE_ADAPTATION.c.key)
    .where(PACKAGE_ADAPTATION.c.due_ms <= sa.bindparam("now_ms", type_=sa.BigInteger))
    .order_by(PACKAGE_ADAPTATION.c.due_ms)
    .limit(1)
    .with_for_update(skip_locked=True)
)
CLAIM_ADAPTATION = Query(
    PackageAdaptation,
    sa.update(PACKAGE_ADAPTATION)
    .where(sa.tuple_(PACKAGE_ADAPTATION.c.organisation, PACKAGE_ADAPTATION.c.key).in_(PICK_ADAPTATION))
    .values(lease=sa.bindparam("token"), due_ms=sa.bindparam("lease_end"), tries=PACKAGE_ADAPTATION.c.tries + 1),
)


def set_adapted(connection: Connection, *, offer: str, adapt: bool) -> None:
    """Keep whether packages of the product or the plan `offer` get its own terms."""
    connection.run(MARK_OFFER if adapt else UNMARK_OFFER, id=offer)


def adapted_among(connection: Connection, *, offers: Collection[str]) -> frozenset[str]:
    """Those of the products and plans `offers` whose packages get their own terms."""
    if not offers:
        return frozenset()
    return frozenset(connection.all(ADAPTED_AMONG, ids=pack_rows([[id] for id in offers])))


def insert_adaptation(connection: Connection, *, organisation: str, key: str, terms: PackageTerms, now: float) -> None:
    """The package of the issuance `key`, once there is one, is to get these `terms`. `now`: Unix seconds."""
    connection.run(INSERT_ADAPTATION, organisation=organisation, key=key, **terms._asdict(), due_ms=int(now * 1000) + UNDRAWN_MS)


@changes_one
def make_adaptation_due(*, organisation: str, key: str, due_ms: int, lease: str | None = None) -> sa.Executable:
    """The package is there: whoever has `lease` sets its terms now, any worker from `due_ms` on. False: nothing is to be adapted."""
    return sa.update(PACKAGE_ADAPTATION).where(THIS_ADAPTATION).values(due_ms=due_ms, lease=lease)


def claim_adaptation(connection: Connection, *, token: str, now_ms: int) -> PackageAdaptation | None:
    """Take what is due longest for two minutes; then it is due again, whatever became of its worker."""
    return connection.first(CLAIM_ADAPTATION, token=token, now_ms=now_ms, lease_end=now_ms + ADAPTATION_LEASE_MS)


@row_exists
def adaptation_is_due(*, now_ms: int) -> sa.Executable:
    """Whether a package is to be adapted now; a read, so that an idle worker never takes the write lock."""
    return sa.select(PACKAGE_ADAPTATION.c.key).where(PACKAGE_ADAPTATION.c.due_ms <= now_ms).limit(1)


@changes_one
def adapt_later(*, organisation: str, key: str, lease: str, due_ms: int) -> sa.Executable:
    """It is not as it was sold yet, and is looked at again then. False when the lease was lost."""
    return sa.update(PACKAGE_ADAPTATION).where(THIS_ADAPTATION, PACKAGE_ADAPTATION.c.lease == lease).values(lease=None, due_ms=due_ms)


@changes_one
def end_adaptation(*, organisation: str, key: str, lease: str) -> sa.Executable:
    """The package is as it was sold, or is nobody's any more. False when the lease was lost: somebody else says what became of it."""
    return sa.delete(PACKAGE_ADAPTATION).where(THIS_ADAPTATION, PACKAGE_ADAPTATION.c.lease == lease)


@writes
def forget_adaptation(*, organisation: str, key: str) -> sa.Executable:
    """Nothing was drawn, and nothing will be."""
    return sa.delete(PACKAGE_ADAPTATION).where(THIS_ADAPTATION)
