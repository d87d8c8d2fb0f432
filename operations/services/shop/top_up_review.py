"""Looking for a top-up whose outcome is unknown, on the line that it was sent for; what is found is judged in top_up_evidence.py."""

from collections.abc import Sequence

from clients.ocs.wire.package import Package
from operations.deps import Deps
from operations.services.issuing.evidence import LATEST, id_of
from operations.services.issuing.purpose import MANUAL, UNKNOWN
from operations.services.network.lines import find_line
from operations.services.network.upstream import reach_for
from operations.services.shop.order_letters import tell_failed, tell_ready
from operations.services.shop.top_up import ADD
from operations.services.shop.top_up_evidence import Sent, Verdict, judge, read_sent, written
from registry.errors import Refusal, StoreUnavailable
from registry.ports import Line
from storage.calls.audit import append_line
from storage.connection import Connection
from storage.issuing.issuance import find_issuance
from storage.issuing.placed import keep_placed, placed_among
from storage.shop.order_queue import fail_order
from storage.shop.orders import OrderRow, find_order
from storage.shop.top_ups import added_to, hold_top_up, look_again, rivals_of, settle_ready

CLEAR_SECONDS = LATEST.total_seconds()
PATIENCE_SECONDS = 24 * 3600
SOON_SECONDS, LATER_SECONDS = 30, 300
NOT_ADDED = "package_not_added"


async def look_into(deps: Deps, row: OrderRow) -> None:
    """One look at the line of a top-up that needs review, under its lease. Afterwards it is settled, or due again, or a person's."""
    at = deps.clock.now()
    packages: Sequence[Package] = ()
    try:
        packages = await packages_of_order(deps, row)
    except StoreUnavailable:
        raise
    except Refusal:  # the line went away, or cannot be read: nothing is seen, and that proves nothing
        pass
    await deps.store.write(apply, deps=deps, row=row, packages=packages, at=at, now=deps.clock.now())
    deps.post()


async def packages_of_order(deps: Deps, row: OrderRow) -> Sequence[Package]:
    """All that is on the order's own line."""
    order = await deps.store.read(find_order, order=row.top_up_of or "")
    upstream = await reach_for(deps, row.organisation)
    line = await find_line(upstream, (order and order.iccid) or "")
    return (await upstream.ocs.packages.list_packages(line.subscriber_id)).get("packages", [])


def apply(connection: Connection, *, deps: Deps, row: OrderRow, packages: Sequence[Package], at: float, now: float) -> None:
    """What the reading says, in one transaction with what else explains it, and with the check that the row is still this worker's."""
    if not hold_top_up(connection, top_up=row.id, lease=row.lease or "", status="needs_review"):
        return
    if row.before is None:
        look_again(connection, top_up=row.id, lease=row.lease or "", until=None, code=MANUAL, before=None, now=now)
        return
    sent = read_sent(row.before)
    verdict = judge(packages, sent, row.template_id, explained_by_us(connection, row, packages))
    if settled(connection, deps, row, sent, verdict, at, now):
        return
    since = (sent.clear_since or at) if verdict.kind == "clear" else None
    late = now - sent.at >= PATIENCE_SECONDS and verdict.kind != "clear"
    pause = SOON_SECONDS if now - sent.at < 2 * CLEAR_SECONDS else LATER_SECONDS
    look_again(
        connection,
        top_up=row.id,
        lease=row.lease or "",
        until=None if late else now + pause,
        code=MANUAL if late else UNKNOWN,
        before=written(sent._replace(clear_since=since, seen=verdict.package)),
        now=now,
    )


def settled(connection: Connection, deps: Deps, row: OrderRow, sent: Sent, verdict: Verdict, at: float, now: float) -> bool:
    """Whether it is decided.

    A package has to be seen twice, half a minute apart: an operation of ours that is putting it there at this moment has said so by
    then. That nothing was added takes a quarter of an hour without any: so long may the call that was sent still take effect.
    """
    package = verdict.package
    if package is not None and package == sent.seen and not has_rivals(connection, row):
        return settle_found(connection, deps, row, package, now)
    if verdict.kind == "clear" and sent.clear_since is not None and at - sent.clear_since >= CLEAR_SECONDS:
        fail_order(connection, order=row.id, code=NOT_ADDED, now=now)
        tell_failed(connection, deps, row.id)
        append_line(connection, audit_of(deps, row, "reconciled_failed", now))
        return True
    return False


def settle_found(connection: Connection, deps: Deps, row: OrderRow, package: int, now: float) -> bool:
    """It was added after all."""
    if not settle_ready(connection, top_up=row.id, package=package, now=now):
        return False
    keep_placed(connection, package_id=package, now=now)
    tell_ready(connection, deps, row.id)
    append_line(connection, audit_of(deps, row, "reconciled_ready", now))
    return True


def has_rivals(connection: Connection, row: OrderRow) -> bool:
    """Whether the package may be another top-up's, sent at about the same time: which of them it is nobody can see."""
    return bool(rivals_of(connection, order=row.top_up_of or "", top_up=row.id, template_id=row.template_id))


def explained_by_us(connection: Connection, row: OrderRow, packages: Sequence[Package]) -> frozenset[int]:
    """The packages that are known to be something else's: other top-ups', the order's own, those of operations on the line."""
    ids = [id for package in packages if (id := id_of(package)) is not None]
    drawn = find_issuance(connection, organisation=row.organisation, key=row.top_up_of or "")
    own = frozenset[int]() if drawn is None or drawn.package_id is None else frozenset({drawn.package_id})
    return own | added_to(connection, order=row.top_up_of or "", top_up=row.id) | placed_among(connection, packages=ids)


def audit_of(deps: Deps, row: OrderRow, outcome: str, now: float) -> Line:
    """The audit row of a settlement by evidence."""
    return Line(now, row.organisation, "worker", ADD, "reconciliation", "", outcome, 200, 0.0, deps.ids.new("req_"))
