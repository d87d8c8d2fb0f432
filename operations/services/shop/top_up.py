"""Putting a paid top-up on its order's own line, once: look at the line, commit that it goes, send it, commit what came of it.

Rows are taken by the fulfilment loop (order_fulfilment.py), which holds their lease. What is not known afterwards is looked for in
top_up_review.py.
"""

from functools import partial
from typing import NamedTuple

from clients.ocs.wire.package import Affected
from operations.deps import Deps
from operations.services.issuing.account_stock import is_free
from operations.services.issuing.errand import Debts, WorkerErrand
from operations.services.issuing.evidence import id_of
from operations.services.issuing.ledger import NO_PROOF, no_network, require_in_time
from operations.services.issuing.purpose import UNKNOWN
from operations.services.network.lines import Line, find_line
from operations.services.network.reached import Upstream
from operations.services.network.templates import find_template
from operations.services.network.upstream import reach_for
from operations.services.pauses import pause
from operations.services.shop.order_letters import tell_failed, tell_late, tell_ready, tell_review
from operations.services.shop.top_up_evidence import Sent, written
from registry.errors import EndOfLife, NotFound, OcsError, Refusal, StoreUnavailable
from registry.ports import Conclusion
from storage.connection import Connection
from storage.issuing.placed import keep_placed
from storage.shop.order_queue import fail_order, reopen_order
from storage.shop.order_status import status_of
from storage.shop.orders import OrderRow, find_order
from storage.shop.top_ups import (
    added_to,
    begin_sending,
    hold_top_up,
    lose_top_up,
    note_late_package,
    put_off,
    settle_ready,
    takes_top_ups,
    unsend,
)

ADD = "add_top_up"
PATIENCE_SECONDS = 3600
"""Choice: how long after the payment what surely never left is tried again, before the money goes back."""
PAUSES = (5, 10, 20, 40, 80, 160, 300)
CLOSED, NO_LINE, NO_TEMPLATE, UNREACHED, REFUSED, LATE = (
    "order_closed",
    "line_not_found",
    "template_not_visible",
    "provider_unreachable",
    "package_refused",
    "answered_late",
)
DONE = 200


class Unfit(Exception):
    """It surely cannot be added: the money goes back."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class TakenOver(Exception):
    """Another worker has the row now; nothing was sent by this one."""


class Parcel(NamedTuple):
    """Where a package goes, and what is there already."""

    upstream: Upstream
    line: Line
    packages: frozenset[int]


async def add_package(deps: Deps, debts: Debts, row: OrderRow) -> None:
    """One try of a top-up that is paid, under its lease. Afterwards the row says what came of it, or when it is tried again."""
    full = await deps.pace.take_upstream(row.organisation)
    if full is not None:
        now = deps.clock.now()
        await deps.store.write(put_off, top_up=row.id, lease=row.lease or "", until=now + full.seconds, now=now, tried=False)
        return
    try:
        parcel = await prepared(deps, row)
        errand = WorkerErrand(deps, debts, organisation=row.organisation, operation_id=ADD)
        await errand.run(partial(send, errand, row, parcel))
    except Unfit as unfit:
        await deps.store.write(give_back, deps=deps, row=row, code=unfit.code, now=deps.clock.now())
    except TakenOver:
        return
    except StoreUnavailable:
        raise
    except Refusal:  # whatever it is, it came before anything was sent
        await deps.store.write(try_later, deps=deps, row=row, now=deps.clock.now())
    deps.post()


async def prepared(deps: Deps, row: OrderRow) -> Parcel:
    """The line as it is now, in the owner's account; nothing has been sent. Its account is our own row's, never a request's."""
    if not deps.draws:
        raise no_network()
    order = await order_of(deps, row)
    upstream = await reach_for(deps, row.organisation)
    try:
        await find_template(upstream, row.template_id, "plan")
    except NotFound:
        raise Unfit(NO_TEMPLATE) from None
    try:
        line = await find_line(upstream, order.iccid or "")
    except (NotFound, EndOfLife):
        raise Unfit(NO_LINE) from None
    if is_free(line.row):  # it was freed past us, and is whoever's draws next
        raise Unfit(NO_LINE)
    held = await upstream.ocs.packages.list_packages(line.subscriber_id)
    ids = frozenset(id for package in held.get("packages", []) if (id := id_of(package)) is not None)
    await require_buyers(deps, order, row, ids)
    return Parcel(upstream, line, ids)


async def order_of(deps: Deps, row: OrderRow) -> OrderRow:
    """The order, whose eSIM is the buyer's."""
    order = await deps.store.read(find_order, order=row.top_up_of or "")
    if order is None or order.iccid is None or status_of(order) != "ready":
        raise Unfit(CLOSED)
    return order


async def require_buyers(deps: Deps, order: OrderRow, row: OrderRow, ids: frozenset[int]) -> None:
    """Something of the order is on the line still: one without was freed past us, and may be whoever's drew the SIM next.

    An empty list proves nothing, as ever: a charging system in trouble answers one as well.
    """
    ours = await deps.store.read(added_to, order=order.id, top_up=row.id) | {order.package_id} - {None}
    if not ids:
        await order_of(deps, row)  # unless it is being given back at this moment
        raise OcsError("The charging system shows no package of a line that was given some; nothing was sent", before_execution=True)
    if ours and not ids & ours:
        raise Unfit(NO_LINE)


async def send(errand: WorkerErrand, row: OrderRow, parcel: Parcel) -> None:
    """The one dispatch, between its two commits. Raises what surely came before it; the row is paid then."""
    deps, began = errand.deps, errand.deps.clock.monotonic()
    errand.if_unsent(unsend, top_up=row.id, lease=row.lease or "", now=errand.now)
    await errand.dispatch((DONE, row.id), begin, deps=deps, row=row, parcel=parcel, now=deps.clock.now())
    errand.if_lost(settle_unknown, deps=deps, row=row, now=deps.clock.now())
    try:
        require_in_time(deps, began)
        made = await parcel.upstream.ocs.packages.affect_to_subscriber(row.template_id, parcel.line.subscriber_id)
    except Refusal as refusal:
        await refused(errand, row, refusal)
        return
    await errand.conclude(settle_added, deps=deps, row=row, parcel=parcel, made=made, now=deps.clock.now())


async def refused(errand: WorkerErrand, row: OrderRow, refusal: Refusal) -> None:
    """It never left, nobody knows, or nothing was done for sure. The traffic limit is of the first kind: it paces, and fails nothing."""
    deps, now = errand.deps, errand.deps.clock.now()
    if isinstance(refusal, OcsError):
        if refusal.before_execution:
            raise refusal
        if refusal.outcome_unknown or refusal.ocs_code in NO_PROOF:
            await errand.conclude(settle_unknown, deps=deps, row=row, now=now)
            return
    await errand.conclude(settle_refused, deps=deps, row=row, now=now)


def begin(connection: Connection, *, deps: Deps, row: OrderRow, parcel: Parcel, now: float) -> None:
    """It goes, if the order's eSIM is the buyer's still.

    Choice: what was paid before a cancel is delivered after it; what was paid after it is not accepted, and goes back.
    """
    if not takes_top_ups(connection, order=row.top_up_of or "", paid_at=row.paid_at):
        raise Unfit(CLOSED)
    before = written(Sent(now, parcel.packages))
    if not begin_sending(connection, top_up=row.id, lease=row.lease or "", owner=deps.replica, before=before, now=now):
        raise TakenOver


def settle_added(connection: Connection, *, deps: Deps, row: OrderRow, parcel: Parcel, made: Affected, now: float) -> Conclusion:
    """The package is on the line. An answer that names another line, or a package that was there, is not believed."""
    package = made.get("subsPackageId", 0)
    named = made.get("iccid") == parcel.line.iccid or made.get("subscriberId") == parcel.line.subscriber_id
    if not named or package in parcel.packages:
        return settle_unknown(connection, deps=deps, row=row, now=now)
    keep_placed(connection, package_id=package, now=now)
    if settle_ready(connection, top_up=row.id, package=package, now=now):
        tell_ready(connection, deps, row.id)
        return Conclusion(DONE, row.id, False, "ok")
    return settle_late(connection, deps, row, package, now)


def settle_late(connection: Connection, deps: Deps, row: OrderRow, package: int, now: float) -> Conclusion:
    """Somebody else has settled it meanwhile.

    Choice: one that was given up is taken back while its refund has not been begun; afterwards the package is kept on record, no more.
    """
    reopened = reopen_order(connection, order=row.id, code=LATE, now=now)
    if reopened and settle_ready(connection, top_up=row.id, package=package, now=now):
        tell_ready(connection, deps, row.id)
        return Conclusion(DONE, row.id, False, LATE)
    if reopened:  # the package was believed to be another top-up's
        tell_review(connection, deps, row.id)
        return Conclusion(DONE, row.id, True, LATE)
    if note_late_package(connection, top_up=row.id, package=package, now=now):
        tell_late(connection, deps, row.id)
        return Conclusion(DONE, row.id, False, LATE)
    return settle_unknown(connection, deps=deps, row=row, now=now)


def settle_refused(connection: Connection, *, deps: Deps, row: OrderRow, now: float) -> Conclusion:
    """Nothing was added."""
    if fail_order(connection, order=row.id, code=REFUSED, now=now):
        tell_failed(connection, deps, row.id)
    return Conclusion(DONE, row.id, False, REFUSED)


def settle_unknown(connection: Connection, *, deps: Deps, row: OrderRow, now: float) -> Conclusion:
    """From now on only evidence tells what came of it, or a person; the operator learns of it once."""
    if lose_top_up(connection, top_up=row.id, code=UNKNOWN, now=now):
        tell_review(connection, deps, row.id)
    return Conclusion(DONE, row.id, True, UNKNOWN)


def give_back(connection: Connection, *, deps: Deps, row: OrderRow, code: str, now: float) -> None:
    """It was not sent and will not be."""
    if hold_top_up(connection, top_up=row.id, lease=row.lease or "", status="paid"):
        fail_order(connection, order=row.id, code=code, now=now)
        tell_failed(connection, deps, row.id)


def try_later(connection: Connection, *, deps: Deps, row: OrderRow, now: float) -> None:
    """It surely never left."""
    if now - (row.paid_at or row.updated) > PATIENCE_SECONDS:
        give_back(connection, deps=deps, row=row, code=UNREACHED, now=now)
        return
    put_off(connection, top_up=row.id, lease=row.lease or "", until=now + pause(PAUSES, row.tries), now=now, tried=True)
