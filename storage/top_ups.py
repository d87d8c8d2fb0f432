"""Top-ups of orders' eSIMs: the conditional moves of their rows, from paid to what became of them.

paid -> provisioning -> ready | failed | needs_review -> ready | failed; provisioning -> paid where it surely never left.
What fails goes by way of the refund (operations/storefronts/sales/order_fulfilment.py); here is what holds a row still for that.
"""

import math
from typing import Annotated, NamedTuple

import sqlalchemy as sa

from storage.engine.sql import ARGUMENT, Connection, Query, all_rows, changes_one, row_exists
from storage.issuance import ISSUANCE
from storage.orders import STOREFRONT_ORDER, OrderState
from storage.replicas import REPLICA, REPLICA_LEASE_SECONDS


class RivalTopUp(NamedTuple):
    """Another top-up of the same order and template whose package may be any."""

    id: str
    status: str


TOP_UP_UNDER_WAY = ("provisioning", "needs_review")
THIS_TOP_UP: sa.ColumnElement[bool] = STOREFRONT_ORDER.c.id == sa.bindparam("top_up")
MY_TOP_UP: sa.ColumnElement[bool] = THIS_TOP_UP & (STOREFRONT_ORDER.c.lease == sa.bindparam("lease" + ARGUMENT))
TOP_UP_OF_ORDER: sa.ColumnElement[bool] = STOREFRONT_ORDER.c.top_up_of == sa.bindparam("order")
OTHER_OF_ORDER: sa.ColumnElement[bool] = TOP_UP_OF_ORDER & (STOREFRONT_ORDER.c.id != sa.bindparam("top_up"))
OTHER_TOP_UP = STOREFRONT_ORDER.alias("other")
LOST_VALUES: dict[str, object] = {
    "status": "needs_review",
    "code": sa.bindparam("code"),
    "owner": None,
    "lease": None,
    "due_ms": sa.bindparam("due_ms"),
    "updated": sa.bindparam("now"),
}
# As in orphans.py: its owner has no lease any more, and the row is older than one.
TOP_UP_IS_ORPHANED = STOREFRONT_ORDER.c.owner.not_in(
    sa.select(REPLICA.c.id).where(
        (REPLICA.c.expires_at >= sa.bindparam("now")) | (STOREFRONT_ORDER.c.updated >= sa.bindparam("before_then"))
    )
)
ORPHANED_TOP_UPS = (STOREFRONT_ORDER.c.status == "provisioning", STOREFRONT_ORDER.c.top_up_of.is_not(None), TOP_UP_IS_ORPHANED)
LOSE_ORPHANED_TOP_UPS = Query(
    str,
    lambda _: sa.update(STOREFRONT_ORDER).where(*ORPHANED_TOP_UPS).values(LOST_VALUES).returning(STOREFRONT_ORDER.c.id),
)
LIST_ADDED_PACKAGES = Query(int, sa.select(STOREFRONT_ORDER.c.package_id).where(OTHER_OF_ORDER, STOREFRONT_ORDER.c.package_id.is_not(None)))


@row_exists
def takes_top_ups(*, order: str, paid_at: float | None = None) -> sa.Executable:
    """Whether the order's eSIM is the buyer's and the order not cancelled, or not before `paid_at`; it stays so until the commit."""
    # Locked until the transaction ends: a cancel or a roll-back that comes at the same moment is before it, or after it.
    return (
        sa.select(STOREFRONT_ORDER.c.id)
        .select_from(
            STOREFRONT_ORDER.join(
                ISSUANCE, (ISSUANCE.c.organisation == STOREFRONT_ORDER.c.organisation) & (ISSUANCE.c.key == STOREFRONT_ORDER.c.id)
            )
        )
        .where(
            STOREFRONT_ORDER.c.id == order,
            STOREFRONT_ORDER.c.top_up_of.is_(None),
            STOREFRONT_ORDER.c.status == "ready",
            STOREFRONT_ORDER.c.cancelled_at.is_(None) | (STOREFRONT_ORDER.c.cancelled_at > sa.bindparam("paid_at", type_=sa.Double)),
            ISSUANCE.c.state == "issued",
            ISSUANCE.c.held == STOREFRONT_ORDER.c.iccid,
        )
        .with_for_update()
    )


@changes_one
def begin_top_up(*, top_up: str, lease: str, owner: str, before: str, now: float) -> sa.Executable:
    """The process `owner` sends the top-up now; False where it is not leased to `lease`. `now`: Unix seconds."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(MY_TOP_UP, STOREFRONT_ORDER.c.status == "paid")
        .values(status="provisioning", owner=owner, before=before, due_ms=None, updated=now)
    )


@changes_one
def unsend_top_up(*, top_up: str, lease: str, now: Annotated[float, "due_ms"]) -> sa.Executable:
    """It surely never left: it is paid as before, and still its worker's. `now`: Unix seconds."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(MY_TOP_UP, STOREFRONT_ORDER.c.status == "provisioning")
        .values(status="paid", owner=None, before=None, due_ms=sa.bindparam("due_ms"), updated=now)
    )


def first_millisecond(moment: float | None) -> int | None:
    """The first whole millisecond that is not before `moment` (Unix seconds)."""
    return None if moment is None else math.ceil(moment * 1000)


@changes_one
def postpone_top_up(
    *, top_up: str, lease: str, until: Annotated[float, first_millisecond], now: float, tried: Annotated[bool, int]
) -> sa.Executable:
    """It is taken up again later; `tried` counts. `until`, `now`: Unix seconds."""
    tries = STOREFRONT_ORDER.c.tries + sa.bindparam("tried", type_=sa.Integer)
    is_paid = STOREFRONT_ORDER.c.status == "paid"
    return sa.update(STOREFRONT_ORDER).where(MY_TOP_UP, is_paid).values(lease=None, due_ms=until, tries=tries, updated=now)


@changes_one
def complete_top_up(*, top_up: str, package: int, now: float) -> sa.Executable:
    """The package is on the line; False where the row was settled otherwise, or another top-up has this very package."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(
            THIS_TOP_UP,
            STOREFRONT_ORDER.c.status.in_(TOP_UP_UNDER_WAY),
            ~sa.exists().where(OTHER_TOP_UP.c.top_up_of == STOREFRONT_ORDER.c.top_up_of, OTHER_TOP_UP.c.package_id == package),
        )
        .values(
            status="ready",
            code=None,
            package_id=package,
            ready_at=now,
            owner=None,
            lease=None,
            due_ms=None,
            updated=now,
        )
    )


@changes_one
def note_late_package(*, top_up: str, package: int, now: float) -> sa.Executable:
    """Keep the package of a top-up that was settled as failed, for a person to see. `now`: Unix seconds."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(THIS_TOP_UP, STOREFRONT_ORDER.c.status == "failed", STOREFRONT_ORDER.c.package_id.is_(None))
        .values(package_id=package, updated=now)
    )


@changes_one
def lose_top_up(*, top_up: str, code: str, now: Annotated[float, "due_ms"]) -> sa.Executable:
    """Nobody knows whether it was added; it is looked for from now on. False where it is not under way any more. `now`: Unix seconds."""
    return sa.update(STOREFRONT_ORDER).where(THIS_TOP_UP, STOREFRONT_ORDER.c.status == "provisioning").values(LOST_VALUES)


@changes_one
def hold_back_top_up(*, top_up: str, code: str, before: str, until: Annotated[float, first_millisecond], now: float) -> sa.Executable:
    """The package is on the line and not as it was sold; somebody looks `until` then. False where it is not under way any more."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(THIS_TOP_UP, STOREFRONT_ORDER.c.status == "provisioning")
        .values(status="needs_review", code=code, owner=None, lease=None, before=before, due_ms=until, updated=now)
    )


def lose_orphaned_top_ups(connection: Connection, *, code: str, now: float) -> list[str]:
    """Marks top-ups as lost whose process ended after committing the send; returns their ids. `now`: Unix seconds."""
    before = math.ceil(now - REPLICA_LEASE_SECONDS)
    rows = connection.all(LOSE_ORPHANED_TOP_UPS, now=now, before_then=before, code=code, due_ms=int(now * 1000))
    return sorted(rows)


@row_exists
def hold_top_up(*, top_up: str, lease: str, status: OrderState) -> sa.Executable:
    """Whether the row is still leased to `lease` and in this `status`; it stays so until the commit."""
    return sa.select(STOREFRONT_ORDER.c.id).where(MY_TOP_UP, STOREFRONT_ORDER.c.status == status).with_for_update()


@changes_one
def review_top_up_later(
    *, top_up: str, lease: str, until: Annotated[float | None, first_millisecond], code: str, before: str | None, now: float
) -> sa.Executable:
    """What was seen is kept, and the line looked at later; where `until` is None a person has to. `until`, `now`: Unix seconds."""
    return (
        sa.update(STOREFRONT_ORDER)
        .where(MY_TOP_UP, STOREFRONT_ORDER.c.status == "needs_review")
        .values(lease=None, code=code, due_ms=until, before=before, updated=now)
    )


@all_rows(RivalTopUp)
def rival_top_ups(*, order: str, top_up: str, template_id: int) -> sa.Executable:
    """Other top-ups of the same order and template of which nothing is known either."""
    return sa.select(STOREFRONT_ORDER.c.id, STOREFRONT_ORDER.c.status).where(
        OTHER_OF_ORDER, STOREFRONT_ORDER.c.template_id == template_id, STOREFRONT_ORDER.c.status.in_(TOP_UP_UNDER_WAY)
    )


def packages_added_to(connection: Connection, *, order: str, top_up: str = "") -> frozenset[int]:
    """The packages that top-ups put on the order's line, all of them or all but one."""
    return frozenset(connection.all(LIST_ADDED_PACKAGES, order=order, top_up=top_up))


@row_exists
def has_top_up_under_way(*, order: str) -> sa.Executable:
    """Whether a package may still come onto the order's line by itself."""
    return (
        sa.select(STOREFRONT_ORDER.c.id)
        .where(
            TOP_UP_OF_ORDER,
            (STOREFRONT_ORDER.c.status == "provisioning")
            | ((STOREFRONT_ORDER.c.status == "needs_review") & STOREFRONT_ORDER.c.due_ms.is_not(None)),
        )
        .limit(1)
    )
