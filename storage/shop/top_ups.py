"""Top-ups of orders' eSIMs: the conditional moves of their rows, from paid to what became of them.

paid -> provisioning -> ready | failed | needs_review -> ready | failed; provisioning -> paid where it surely never left.
What fails goes by way of the refund (operations/services/shop/order_refund.py); here is what holds a row still for that.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.calls.replicas import LEASE_SECONDS, REPLICA
from storage.connection import Connection
from storage.issuing.issuance import ISSUANCE
from storage.shop.orders import ORDER, Kept
from storage.statement import Command, Query


class TopUp(NamedTuple):
    """A top-up by its id."""

    id: str


class Rival(NamedTuple):
    """Another top-up of the same order and template whose package may be any."""

    id: str
    status: str


class Added(NamedTuple):
    """A package that a top-up of the order put there."""

    package_id: int


UNDER_WAY = ("provisioning", "needs_review")
THIS: sa.ColumnElement[bool] = ORDER.c.id == sa.bindparam("named")
MINE: sa.ColumnElement[bool] = THIS & (ORDER.c.lease == sa.bindparam("mine"))
OF_ORDER: sa.ColumnElement[bool] = ORDER.c.top_up_of == sa.bindparam("order")
OTHERS: sa.ColumnElement[bool] = OF_ORDER & (ORDER.c.id != sa.bindparam("named"))
# Locked until the transaction ends: a cancel or a roll-back that comes at the same moment is before it, or after it.
TAKES = Query(
    TopUp,
    sa.select(ORDER.c.id)
    .select_from(ORDER.join(ISSUANCE, (ISSUANCE.c.organisation == ORDER.c.organisation) & (ISSUANCE.c.key == ORDER.c.id)))
    .where(
        THIS,
        ORDER.c.top_up_of.is_(None),
        ORDER.c.status == "ready",
        ORDER.c.cancelled_at.is_(None) | (ORDER.c.cancelled_at > sa.bindparam("paid_at", type_=sa.Double)),
        ISSUANCE.c.state == "issued",
        ISSUANCE.c.held == ORDER.c.iccid,
    )
    .with_for_update(),
)
SEND = Command(
    sa.update(ORDER)
    .where(MINE, ORDER.c.status == "paid")
    .values(
        status="provisioning",
        owner=sa.bindparam("owner"),
        before=sa.bindparam("before"),
        due_ms=None,
        updated=sa.bindparam("now"),
    )
)
UNSEND = Command(
    sa.update(ORDER)
    .where(MINE, ORDER.c.status == "provisioning")
    .values(status="paid", owner=None, before=None, due_ms=sa.bindparam("due_ms"), updated=sa.bindparam("now"))
)
PUT_OFF = Command(
    sa.update(ORDER)
    .where(MINE, ORDER.c.status == "paid")
    .values(
        lease=None,
        due_ms=sa.bindparam("due_ms"),
        tries=ORDER.c.tries + sa.bindparam("tried", type_=sa.Integer),
        updated=sa.bindparam("now"),
    )
)
OTHER = ORDER.alias("other")
READY = Command(
    sa.update(ORDER)
    .where(
        THIS,
        ORDER.c.status.in_(UNDER_WAY),
        ~sa.exists().where(OTHER.c.top_up_of == ORDER.c.top_up_of, OTHER.c.package_id == sa.bindparam("package")),
    )
    .values(
        status="ready",
        code=None,
        package_id=sa.bindparam("package"),
        ready_at=sa.bindparam("now"),
        owner=None,
        lease=None,
        due_ms=None,
        updated=sa.bindparam("now"),
    )
)
LATE = Command(
    sa.update(ORDER)
    .where(THIS, ORDER.c.status == "failed", ORDER.c.package_id.is_(None))
    .values(package_id=sa.bindparam("package"), updated=sa.bindparam("now"))
)
LOST: dict[str, object] = {
    "status": "needs_review",
    "code": sa.bindparam("code"),
    "owner": None,
    "lease": None,
    "due_ms": sa.bindparam("due_ms"),
    "updated": sa.bindparam("at"),
}
LOSE = Query(TopUp, sa.update(ORDER).where(THIS, ORDER.c.status == "provisioning").values(LOST).returning(ORDER.c.id))
# As in orphans.py: its owner has no lease any more, and the row is older than one.
ORPHANED = ORDER.c.owner.not_in(
    sa.select(REPLICA.c.id).where((REPLICA.c.expires_at >= sa.bindparam("now")) | (ORDER.c.updated >= sa.bindparam("before_then")))
)
ORPHANS = (ORDER.c.status == "provisioning", ORDER.c.top_up_of.is_not(None), ORPHANED)
LOSE_ORPHANS = Query(
    TopUp,
    sa.update(ORDER).where(*ORPHANS).values(LOST).returning(ORDER.c.id),
)
HOLD = Query(TopUp, sa.select(ORDER.c.id).where(MINE, ORDER.c.status == sa.bindparam("state")).with_for_update())
LOOK_LATER = Command(
    sa.update(ORDER)
    .where(MINE, ORDER.c.status == "needs_review")
    .values(
        lease=None, code=sa.bindparam("code"), due_ms=sa.bindparam("due_ms"), before=sa.bindparam("before"), updated=sa.bindparam("now")
    )
)
RIVALS = Query(
    Rival,
    sa.select(ORDER.c.id, ORDER.c.status).where(OTHERS, ORDER.c.template_id == sa.bindparam("template_id"), ORDER.c.status.in_(UNDER_WAY)),
)
ADDED = Query(Added, sa.select(ORDER.c.package_id).where(OTHERS, ORDER.c.package_id.is_not(None)))
BUSY = Query(
    TopUp,
    sa.select(ORDER.c.id)
    .where(OF_ORDER, (ORDER.c.status == "provisioning") | ((ORDER.c.status == "needs_review") & ORDER.c.due_ms.is_not(None)))
    .limit(1),
)


def takes_top_ups(connection: Connection, *, order: str, paid_at: float | None = None) -> bool:
    """Whether the order's eSIM is the buyer's and the order not cancelled, or not before `paid_at`; it stays so until the commit."""
    return connection.first(TAKES, named=order, paid_at=paid_at) is not None


def begin_sending(connection: Connection, *, top_up: str, lease: str, owner: str, before: str, now: float) -> bool:
    """It is sent now, by this process; False where another worker has the row."""
    return connection.run(SEND, named=top_up, mine=lease, owner=owner, before=before, now=now) == 1


def unsend(connection: Connection, *, top_up: str, lease: str, now: float) -> bool:
    """It surely never left: it is paid as before, and still its worker's."""
    return connection.run(UNSEND, named=top_up, mine=lease, due_ms=int(now * 1000), now=now) == 1


def put_off(connection: Connection, *, top_up: str, lease: str, until: float, now: float, tried: bool) -> bool:
    """It is taken up again later; `tried` counts."""
    return connection.run(PUT_OFF, named=top_up, mine=lease, due_ms=math.ceil(until * 1000), tried=int(tried), now=now) == 1


def settle_ready(connection: Connection, *, top_up: str, package: int, now: float) -> bool:
    """The package is on the line; False where the row was settled otherwise, or another top-up has this very package."""
    return connection.run(READY, named=top_up, package=package, now=now) == 1


def note_late_package(connection: Connection, *, top_up: str, package: int, now: float) -> bool:
    """It was settled as failed, and its own answer comes after all: what was added is kept for a person to see."""
    return connection.run(LATE, named=top_up, package=package, now=now) == 1


def lose_top_up(connection: Connection, *, top_up: str, code: str, now: float) -> bool:
    """Nobody knows whether it was added; it is looked for from now on. False where it is not under way any more."""
    return connection.first(LOSE, named=top_up, code=code, due_ms=int(now * 1000), at=now) is not None


def lose_orphans(connection: Connection, *, code: str, now: float) -> list[str]:
    """Those whose process has died since it committed that they go."""
    before = math.ceil(now - LEASE_SECONDS)
    rows = connection.all(LOSE_ORPHANS, now=now, before_then=before, code=code, due_ms=int(now * 1000), at=now)
    return sorted(row.id for row in rows)


def hold_top_up(connection: Connection, *, top_up: str, lease: str, status: Kept) -> bool:
    """Whether the row is this worker's still and in this status; it stays so until the commit."""
    return connection.first(HOLD, named=top_up, mine=lease, state=status) is not None


def look_again(connection: Connection, *, top_up: str, lease: str, until: float | None, code: str, before: str | None, now: float) -> bool:
    """What was seen is kept, and the line looked at later; without a time a person has to."""
    due_ms = None if until is None else math.ceil(until * 1000)
    return connection.run(LOOK_LATER, named=top_up, mine=lease, code=code, due_ms=due_ms, before=before, now=now) == 1


def rivals_of(connection: Connection, *, order: str, top_up: str, template_id: int) -> Sequence[Rival]:
    """Other top-ups of the same order and template of which nothing is known either."""
    return connection.all(RIVALS, order=order, named=top_up, template_id=template_id)


def added_to(connection: Connection, *, order: str, top_up: str = "") -> frozenset[int]:
    """The packages that top-ups put on the order's line, all of them or all but one."""
    return frozenset(row.package_id for row in connection.all(ADDED, order=order, named=top_up))


def has_top_up_under_way(connection: Connection, *, order: str) -> bool:
    """Whether a package may still come onto the order's line by itself."""
    return connection.first(BUSY, order=order) is not None
