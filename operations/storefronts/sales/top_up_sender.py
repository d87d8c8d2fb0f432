"""Putting a paid top-up on its order's own line, once: what is sent for it, and how it is told later whether it came.

Rows are taken by the fulfilment loop (order_fulfilment.py), which holds their lease. A top-up whose outcome is unknown is looked for on
the line that it was sent for, and nothing is ever sent again. Why a package is believed to be the top-up's, all of it together: it was
not on the line before the call was sent (`TopUpDispatch.packages`, read right before the commit), it is of the template that was asked
for, no series made it, it was assigned when the call may have taken effect, and nothing else explains it: no other top-up of the order,
not the order itself, no operation of ours that put it there (`placed_among`). It must be the only one, and no other top-up of the
template may be unknown at the same time.

A plan with `adapt` promises data and days of its own: the top-up is ready once its package has them, and is looked at until then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Literal, NamedTuple, NotRequired

import anyio
import orjson
from typing_extensions import TypedDict

from clients.ocs.packages import Affected, Package
from operations.deps import Deps
from operations.ledger.evidence import DRAW_CLOCK_SKEW, EFFECT_WINDOW, DrawMatch, id_of_package, parse_package_moment, template_of_package
from operations.ledger.issuance import (
    ADAPTATION_PATIENCE_SECONDS,
    MANUAL_RECONCILIATION,
    OUTCOME_UNKNOWN,
    PACKAGE_ADAPTING,
    PACKAGE_NOT_ADAPTED,
    is_unproven,
    no_network_to_draw_from,
    require_draw_in_time,
    try_package_terms,
)
from operations.ledger.orders import (
    announce_order_failed,
    announce_order_ready,
    announce_order_review,
    announce_order_unadapted,
    mail_late_delivery,
)
from operations.ledger.send_once import UNKNOWN, BackgroundDispatch, DeferredWrites, SendOutcome, audit_settlement, send_once
from operations.ledger.stock_snapshot import is_sim_in_stock
from operations.storefronts.sales.checkout import sold_terms
from operations.upstream.connection import Upstream, upstream_of_organisation
from operations.upstream.lines import Line, find_line, package_start
from operations.upstream.package_terms import has_terms
from operations.upstream.resellers import find_template
from registry.errors import EndOfLife, NotFound, OcsError, Refusal, StoreUnavailable
from registry.ports import Conclusion
from storage.engine.sql import Connection
from storage.fleet_lines import mark_lines
from storage.issuance import find_issuance
from storage.order_queue import fail_order, reopen_order
from storage.orders import OrderRow, find_order, order_status_of
from storage.placed_packages import insert_placed_package, placed_packages_among
from storage.top_ups import (
    begin_top_up,
    complete_top_up,
    hold_back_top_up,
    hold_top_up,
    lose_top_up,
    note_late_package,
    packages_added_to,
    postpone_top_up,
    review_top_up_later,
    rival_top_ups,
    takes_top_ups,
    unsend_top_up,
)


class TopUpDispatch(NamedTuple):
    """What was noted when a top-up was sent, and what was seen since.

    `clear_since`: when the line was first read without a package that could be it. `seen`: the one package that may be it. `named`: the
    package that the answer named, which is it.
    """

    at: float
    packages: frozenset[int]
    clear_since: float | None = None
    seen: int | None = None
    named: int | None = None


class TopUpVerdict(NamedTuple):
    """`found`: one package is it. `clear`: none can be. `unclear`: it cannot be told from this reading."""

    kind: Literal["found", "clear", "unclear"]
    package: int | None = None


class TopUpDispatchJson(TypedDict):
    """A `TopUpDispatch` as the row keeps it."""

    at: float
    packages: list[int]
    clear_since: float | None
    seen: int | None
    named: NotRequired[int]


TOP_UP_UNCLEAR = TopUpVerdict("unclear")


def write_top_up_dispatch(sent: TopUpDispatch) -> str:
    noted: TopUpDispatchJson = {"at": sent.at, "packages": sorted(sent.packages), "clear_since": sent.clear_since, "seen": sent.seen}
    if sent.named is not None:
        noted["named"] = sent.named
    return orjson.dumps(noted).decode()


def read_top_up_dispatch(text: str) -> TopUpDispatch:
    """The dispatch that a row stores as JSON."""
    noted: TopUpDispatchJson = orjson.loads(text)
    return TopUpDispatch(noted["at"], frozenset(noted["packages"]), noted["clear_since"], noted["seen"], noted.get("named"))


def decide_top_up(packages: Sequence[Package], sent: TopUpDispatch, template_id: int, explained: frozenset[int]) -> TopUpVerdict:
    """What one reading of the line says.

    An empty list proves nothing: the charging system answers one where it is in trouble as well, and a line that was topped up had the
    order's package. So a reading counts only where it still shows something that was there before.
    """
    ids = {id_of_package(package) for package in packages}
    if not ids & sent.packages:
        return TOP_UP_UNCLEAR
    news = [package for package in packages if id_of_package(package) not in sent.packages | explained]
    fits = [(match_top_up_package(package, sent, template_id), id_of_package(package)) for package in news]
    shows = [id for fitted, id in fits if fitted == "shows"]
    kinds = {fitted for fitted, _ in fits}
    if len(shows) == 1 and "unreadable" not in kinds:
        return TopUpVerdict("found", shows[0])
    return TOP_UP_UNCLEAR if kinds & {"shows", "similar", "unreadable"} else TopUpVerdict("clear")


def match_top_up_package(package: Package, sent: TopUpDispatch, template_id: int) -> DrawMatch:
    template = template_of_package(package)
    if template is None or id_of_package(package) is None:
        return "unreadable"
    if template != template_id:
        return "other"
    if package.get("recurringPackage") is not None:
        return "similar"  # a series made it, and top-ups begin none
    assigned, start = parse_package_moment(package.get("tsassigned")), package_start(package)
    if assigned is not None and not may_be_top_up_time(assigned, sent):
        return "similar"
    # What was sent waits for its first use, which on a line that is online may be the very second.
    return "similar" if start is not None and assigned is not None and start < assigned else "shows"


def may_be_top_up_time(moment: datetime, sent: TopUpDispatch) -> bool:
    """Whether the call may have taken effect then, by the charging system's clock."""
    at = datetime.fromtimestamp(sent.at, UTC)
    return at - DRAW_CLOCK_SKEW <= moment <= at + EFFECT_WINDOW + DRAW_CLOCK_SKEW


ADD_TOP_UP = "add_top_up"
TOP_UP_PATIENCE_SECONDS = 3600
"""Choice: how long after the payment what surely never left is tried again, before the money goes back."""
TOP_UP_PAUSES = (5, 10, 20, 40, 80, 160, 300)
TOP_UP_ORDER_CLOSED, TOP_UP_NO_LINE, TOP_UP_NO_TEMPLATE, TOP_UP_UNREACHED, TOP_UP_REFUSED, TOP_UP_LATE = (
    "order_closed",
    "line_not_found",
    "template_not_visible",
    "provider_unreachable",
    "package_refused",
    "answered_late",
)
TOP_UP_DONE = 200


class TopUpImpossible(Exception):
    """It surely cannot be added: the money goes back."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class TopUpNotOurs(Exception):
    """Another worker has the row now; nothing was sent by this one."""


class TopUpTarget(NamedTuple):
    """Where a package goes, and what is there already."""

    upstream: Upstream
    line: Line
    packages: frozenset[int]


async def add_top_up_package(deps: Deps, deferred: DeferredWrites, row: OrderRow) -> None:
    """One try of the paid top-up `row`, under its lease; the row says then what came of it. Waits for the network."""
    full = await deps.rate_limiter.take_upstream(row.organisation)
    if full is not None:
        now = deps.clock.now()
        await deps.store.write(postpone_top_up, top_up=row.id, lease=row.lease or "", until=now + full, now=now, tried=False)
        return
    try:
        target = await prepare_top_up(deps, row)
        dispatch = BackgroundDispatch(deps, deferred, organisation=row.organisation, operation_id=ADD_TOP_UP)
        await dispatch.run(partial(send_once, dispatch, TopUpSending(deps, row, target)))
    except TopUpImpossible as unfit:
        await deps.store.write(fail_unsent_top_up, deps=deps, row=row, code=unfit.code, now=deps.clock.now())
    except TopUpNotOurs:
        return
    except StoreUnavailable:
        raise
    except Refusal:  # whatever it is, it came before anything was sent
        await deps.store.write(retry_top_up_later, deps=deps, row=row, now=deps.clock.now())
    deps.post()


async def prepare_top_up(deps: Deps, row: OrderRow) -> TopUpTarget:
    """The line as it is now, in the owner's account; nothing has been sent. Its account is our own row's, never a request's."""
    if not deps.draws:
        raise no_network_to_draw_from()
    order = await order_of_top_up(deps, row)
    upstream = await upstream_of_organisation(deps, row.organisation)
    try:
        await find_template(upstream, row.template_id, "plan")
    except NotFound:
        raise TopUpImpossible(TOP_UP_NO_TEMPLATE) from None
    try:
        line = await find_line(upstream, order.iccid or "")
    except (NotFound, EndOfLife):
        raise TopUpImpossible(TOP_UP_NO_LINE) from None
    if is_sim_in_stock(line.row):  # somebody freed it at the charging system: the next draw may take it
        raise TopUpImpossible(TOP_UP_NO_LINE)
    held = await upstream.ocs.packages.list_packages(line.subscriber_id)
    ids = frozenset(id for package in held.get("packages", []) if (id := id_of_package(package)) is not None)
    await require_buyers_line(deps, order, row, ids)
    return TopUpTarget(upstream, line, ids)


async def order_of_top_up(deps: Deps, row: OrderRow) -> OrderRow:
    order = await deps.store.read(find_order, order=row.top_up_of or "")
    if order is None or order.iccid is None or order_status_of(order) != "ready":
        raise TopUpImpossible(TOP_UP_ORDER_CLOSED)
    return order


async def require_buyers_line(deps: Deps, order: OrderRow, row: OrderRow, ids: frozenset[int]) -> None:
    """Refuse a line that has none of the order's packages: somebody freed its SIM, and another order may have drawn it since.

    An empty list proves nothing, as ever: a charging system in trouble answers one as well.
    """
    ours = await deps.store.read(packages_added_to, order=order.id, top_up=row.id) | {order.package_id} - {None}
    if not ids:
        await order_of_top_up(deps, row)  # unless it is being given back at this moment
        raise OcsError("The charging system shows no package of a line that was given some; nothing was sent", before_execution=True)
    if ours and not ids & ours:
        raise TopUpImpossible(TOP_UP_NO_LINE)


@dataclass(slots=True)
class TopUpSending:
    """The sending of the top-up `row`, under its lease. `adaptation`: what came of setting its package to what was sold."""

    deps: Deps
    row: OrderRow
    target: TopUpTarget
    adaptation: SendOutcome[None] = None

    @property
    def lost_answer(self) -> tuple[int, object]:
        return TOP_UP_DONE, self.row.id

    def begin(self, connection: Connection, *, now: float) -> None:
        """It goes, if the order's eSIM is the buyer's still.

        Choice: what was paid before a cancel is delivered after it; what was paid after it is not accepted, and goes back.
        """
        row = self.row
        if not takes_top_ups(connection, order=row.top_up_of or "", paid_at=row.paid_at):
            raise TopUpImpossible(TOP_UP_ORDER_CLOSED)
        before = write_top_up_dispatch(TopUpDispatch(now, self.target.packages))
        if not begin_top_up(connection, top_up=row.id, lease=row.lease or "", owner=self.deps.replica, before=before, now=now):
            raise TopUpNotOurs

    async def send(self, waited: float) -> SendOutcome[Affected]:
        """Put the package on the line. The traffic limit is raised: it paces, and fails nothing."""
        try:
            require_draw_in_time(self.deps, waited)
            made = await self.target.upstream.ocs.packages.affect_to_subscriber(self.row.template_id, self.target.line.subscriber_id)
        except OcsError as refusal:
            if refusal.before_execution:
                raise
            return UNKNOWN if is_unproven(refusal) else refusal
        except Refusal as refusal:
            return refusal
        terms = sold_terms(self.row)
        if terms is not None and self.believes(made):
            self.adaptation = UNKNOWN
            with anyio.move_on_after(ADAPTATION_PATIENCE_SECONDS):
                self.adaptation = await try_package_terms(self.target.upstream.ocs, made.get("subsPackageId", 0), terms)
        return made

    def believes(self, made: Affected) -> bool:
        """An answer that names another line, or a package that was there, is not believed."""
        line = self.target.line
        named = made.get("iccid") == line.iccid or made.get("subscriberId") == line.subscriber_id
        return named and made.get("subsPackageId", 0) not in self.target.packages

    def settle(self, connection: Connection, *, outcome: SendOutcome[Affected], now: float) -> Conclusion:
        mark_lines(connection, iccids=[self.target.line.iccid], now=now, by=self.row.organisation)
        if outcome is UNKNOWN:
            return record_top_up_unknown(connection, self.deps, self.row, now)
        if isinstance(outcome, Refusal):
            if fail_order(connection, order=self.row.id, code=TOP_UP_REFUSED, now=now):
                announce_order_failed(connection, self.deps, self.row.id)
            return Conclusion(TOP_UP_DONE, self.row.id, False, TOP_UP_REFUSED)
        package = outcome.get("subsPackageId", 0)
        if not self.believes(outcome):
            return record_top_up_unknown(connection, self.deps, self.row, now)
        insert_placed_package(connection, package_id=package, now=now)
        if self.adaptation is not None:
            sent = TopUpDispatch(now, self.target.packages, named=package)
            return hold_back_unadapted_top_up(connection, self.deps, self.row, sent, self.adaptation, now)
        if complete_top_up(connection, top_up=self.row.id, package=package, now=now):
            announce_order_ready(connection, self.deps, self.row.id)
            return Conclusion(TOP_UP_DONE, self.row.id, False, "ok")
        return record_late_top_up(connection, self.deps, self.row, package, now)

    def unsend(self, connection: Connection, *, now: float) -> None:
        unsend_top_up(connection, top_up=self.row.id, lease=self.row.lease or "", now=now)


def record_late_top_up(connection: Connection, deps: Deps, row: OrderRow, package: int, now: float) -> Conclusion:
    """Somebody else has settled it meanwhile.

    Choice: one that was given up is taken back while its refund has not been begun; afterwards the package is kept on record, no more.
    """
    reopened = reopen_order(connection, order=row.id, code=TOP_UP_LATE, now=now)
    if reopened and complete_top_up(connection, top_up=row.id, package=package, now=now):
        announce_order_ready(connection, deps, row.id)
        return Conclusion(TOP_UP_DONE, row.id, False, TOP_UP_LATE)
    if reopened:  # the package was believed to be another top-up's
        announce_order_review(connection, deps, row.id)
        return Conclusion(TOP_UP_DONE, row.id, True, TOP_UP_LATE)
    if note_late_package(connection, top_up=row.id, package=package, now=now):
        mail_late_delivery(connection, deps, row.id)
        return Conclusion(TOP_UP_DONE, row.id, False, TOP_UP_LATE)
    return record_top_up_unknown(connection, deps, row, now)


def hold_back_unadapted_top_up(
    connection: Connection, deps: Deps, row: OrderRow, sent: TopUpDispatch, adaptation: SendOutcome[None], now: float
) -> Conclusion:
    """The package is there, and the buyer is told once it is as it was sold; the operator learns of a refusal, once."""
    code = PACKAGE_NOT_ADAPTED if isinstance(adaptation, Refusal) else PACKAGE_ADAPTING
    before = write_top_up_dispatch(sent)
    if not hold_back_top_up(connection, top_up=row.id, code=code, before=before, until=now + TOP_UP_ADAPTED_SECONDS, now=now):
        return record_top_up_unknown(connection, deps, row, now)
    if code == PACKAGE_NOT_ADAPTED:
        announce_order_unadapted(connection, deps, row.id)
    return Conclusion(TOP_UP_DONE, row.id, True, code)


def record_top_up_unknown(connection: Connection, deps: Deps, row: OrderRow, now: float) -> Conclusion:
    """From now on only evidence tells what came of it, or a person; the operator learns of it once."""
    if lose_top_up(connection, top_up=row.id, code=OUTCOME_UNKNOWN, now=now):
        announce_order_review(connection, deps, row.id)
    return Conclusion(TOP_UP_DONE, row.id, True, OUTCOME_UNKNOWN)


def fail_unsent_top_up(connection: Connection, *, deps: Deps, row: OrderRow, code: str, now: float) -> None:
    if hold_top_up(connection, top_up=row.id, lease=row.lease or "", status="paid"):
        fail_order(connection, order=row.id, code=code, now=now)
        announce_order_failed(connection, deps, row.id)


def retry_pause(pauses: Sequence[int], tries: int) -> int:
    """Seconds to wait after `tries` tries: `pauses` in their order, the last of them from then on."""
    return pauses[min(tries, len(pauses) - 1)]


def retry_top_up_later(connection: Connection, *, deps: Deps, row: OrderRow, now: float) -> None:
    if now - (row.paid_at or row.updated) > TOP_UP_PATIENCE_SECONDS:
        fail_unsent_top_up(connection, deps=deps, row=row, code=TOP_UP_UNREACHED, now=now)
        return
    postpone_top_up(
        connection, top_up=row.id, lease=row.lease or "", until=now + retry_pause(TOP_UP_PAUSES, row.tries), now=now, tried=True
    )


TOP_UP_CLEAR_SECONDS = EFFECT_WINDOW.total_seconds()
TOP_UP_REVIEW_SECONDS = 24 * 3600
TOP_UP_SOON_SECONDS, TOP_UP_LATER_SECONDS = 30, 300
TOP_UP_ADAPTED_SECONDS = 5
TOP_UP_NOT_ADDED = "package_not_added"


class TopUpReading(NamedTuple):
    """The packages of a top-up's line. `adapted`: the one that is as it was sold now; `refusal`: what was said to making it so."""

    packages: Sequence[Package]
    adapted: int | None = None
    refusal: Refusal | None = None


async def look_into_top_up(deps: Deps, row: OrderRow) -> None:
    """One look at the line of the top-up `row` that needs review, under its lease. Waits for the network."""
    at = deps.clock.now()
    reading = TopUpReading(())
    try:
        reading = await adapt_top_up(deps, row, await read_order_packages(deps, row))
    except StoreUnavailable:
        raise
    except Refusal:  # the line went away, or cannot be read: nothing is seen, and that proves nothing
        pass
    await deps.store.write(apply_top_up_reading, deps=deps, row=row, reading=reading, at=at, now=deps.clock.now())
    deps.post()


async def adapt_top_up(deps: Deps, row: OrderRow, packages: Sequence[Package]) -> TopUpReading:
    """Sets the package of the top-up to what was sold, where it is known which one it is and it is not so. Waits for the network."""
    terms = sold_terms(row)
    package = None if terms is None else await deps.store.read(find_own_package, row=row, packages=packages)
    if terms is None or package is None:
        return TopUpReading(packages)
    id = id_of_package(package)
    if has_terms(package, terms):
        return TopUpReading(packages, id)
    if await deps.rate_limiter.take_upstream(row.organisation) is not None:
        return TopUpReading(packages)
    upstream = await upstream_of_organisation(deps, row.organisation)
    outcome = await try_package_terms(upstream.ocs, id or 0, terms, package)
    return TopUpReading(packages, id if outcome is None else None, outcome if isinstance(outcome, Refusal) else None)


def find_own_package(connection: Connection, *, row: OrderRow, packages: Sequence[Package]) -> Package | None:
    """The package of `packages` that the next decision takes for the top-up's; None where none is known to be."""
    if row.before is None:
        return None
    sent = read_top_up_dispatch(row.before)
    id = sent.named or known_package(connection, row, sent, judge_top_up(connection, row, sent, packages))
    return next((package for package in packages if id is not None and id_of_package(package) == id), None)


async def read_order_packages(deps: Deps, row: OrderRow) -> Sequence[Package]:
    order = await deps.store.read(find_order, order=row.top_up_of or "")
    upstream = await upstream_of_organisation(deps, row.organisation)
    line = await find_line(upstream, (order and order.iccid) or "")
    return (await upstream.ocs.packages.list_packages(line.subscriber_id)).get("packages", [])


def judge_top_up(connection: Connection, row: OrderRow, sent: TopUpDispatch, packages: Sequence[Package]) -> TopUpVerdict:
    """What the packages of the line say; a package that the answer named is the top-up's, as long as it is there."""
    if sent.named is not None:
        there = any(id_of_package(package) == sent.named for package in packages)
        return TopUpVerdict("found", sent.named) if there else TOP_UP_UNCLEAR
    return decide_top_up(packages, sent, row.template_id, explained_packages(connection, row, packages))


def known_package(connection: Connection, row: OrderRow, sent: TopUpDispatch, verdict: TopUpVerdict) -> int | None:
    """The top-up's package: named by the answer, or seen twice, half a minute apart; None where it is not known.

    An operation of ours that was putting it there has said so by then. With another top-up of the template sent at about the same time,
    nobody can see which of them the package is.
    """
    if verdict.package is None or verdict.package == sent.named:
        return verdict.package
    if verdict.package != sent.seen:
        return None
    rivals = rival_top_ups(connection, order=row.top_up_of or "", top_up=row.id, template_id=row.template_id)
    return None if rivals else verdict.package


def apply_top_up_reading(connection: Connection, *, deps: Deps, row: OrderRow, reading: TopUpReading, at: float, now: float) -> None:
    """What the reading says, in one transaction with what else explains it, and with the check that the row is still this worker's."""
    if not hold_top_up(connection, top_up=row.id, lease=row.lease or "", status="needs_review"):
        return
    if row.before is None:
        review_top_up_later(connection, top_up=row.id, lease=row.lease or "", until=None, code=MANUAL_RECONCILIATION, before=None, now=now)
        return
    sent = read_top_up_dispatch(row.before)
    verdict = judge_top_up(connection, row, sent, reading.packages)
    if is_top_up_decided(connection, deps, row, sent, verdict, reading, at, now):
        return
    since = (sent.clear_since or at) if verdict.kind == "clear" else None
    late = now - sent.at >= TOP_UP_REVIEW_SECONDS and verdict.kind != "clear" and sent.named is None
    pause = TOP_UP_SOON_SECONDS if now - sent.at < 2 * TOP_UP_CLEAR_SECONDS else TOP_UP_LATER_SECONDS
    review_top_up_later(
        connection,
        top_up=row.id,
        lease=row.lease or "",
        until=None if late else now + pause,
        code=MANUAL_RECONCILIATION if late else open_top_up_code(row, sent, reading),
        before=write_top_up_dispatch(sent._replace(clear_since=since, seen=verdict.package)),
        now=now,
    )
    if reading.refusal is not None and row.code != PACKAGE_NOT_ADAPTED:
        announce_order_unadapted(connection, deps, row.id, reviewed=row.code != PACKAGE_ADAPTING)


def open_top_up_code(row: OrderRow, sent: TopUpDispatch, reading: TopUpReading) -> str:
    """Why a top-up is not ready: its outcome is unknown, or its package is there and not as it was sold."""
    if reading.refusal is not None or row.code == PACKAGE_NOT_ADAPTED:
        return PACKAGE_NOT_ADAPTED
    return OUTCOME_UNKNOWN if sent.named is None else PACKAGE_ADAPTING


def is_top_up_decided(
    connection: Connection,
    deps: Deps,
    row: OrderRow,
    sent: TopUpDispatch,
    verdict: TopUpVerdict,
    reading: TopUpReading,
    at: float,
    now: float,
) -> bool:
    """Whether it is decided.

    That nothing was added takes a quarter of an hour without any package: so long may the call that was sent still take effect.
    """
    package = known_package(connection, row, sent, verdict)
    if package is not None:
        sold = sold_terms(row) is None or package == reading.adapted
        return sold and record_found_top_up(connection, deps, row, package, now)
    if verdict.kind == "clear" and sent.clear_since is not None and at - sent.clear_since >= TOP_UP_CLEAR_SECONDS:
        fail_order(connection, order=row.id, code=TOP_UP_NOT_ADDED, now=now)
        announce_order_failed(connection, deps, row.id)
        audit_settlement(connection, deps, row.organisation, ADD_TOP_UP, "reconciled_failed", now=now)
        return True
    return False


def record_found_top_up(connection: Connection, deps: Deps, row: OrderRow, package: int, now: float) -> bool:
    if not complete_top_up(connection, top_up=row.id, package=package, now=now):
        return False
    insert_placed_package(connection, package_id=package, now=now)
    announce_order_ready(connection, deps, row.id)
    audit_settlement(connection, deps, row.organisation, ADD_TOP_UP, "reconciled_ready", now=now)
    return True


async def read_top_up_verdict(deps: Deps, row: OrderRow) -> TopUpVerdict:
    """What the line shows now of the top-up `row`; `unclear` where it may be another's, or is gone. Waits for the network."""
    try:
        packages = await read_order_packages(deps, row)
    except NotFound:
        return TOP_UP_UNCLEAR
    return await deps.store.read(judge_top_up_alone, row=row, packages=packages)


def judge_top_up_alone(connection: Connection, *, row: OrderRow, packages: Sequence[Package]) -> TopUpVerdict:
    """What the packages say where no other top-up of the order may have got the one that is seen."""
    if row.before is None:
        return TOP_UP_UNCLEAR
    sent = read_top_up_dispatch(row.before)
    verdict = judge_top_up(connection, row, sent, packages)
    known = known_package(connection, row, sent._replace(seen=verdict.package), verdict)
    return TOP_UP_UNCLEAR if verdict.package is not None and known is None else verdict


def explained_packages(connection: Connection, row: OrderRow, packages: Sequence[Package]) -> frozenset[int]:
    """The packages that are known to be something else's: other top-ups', the order's own, those of operations on the line."""
    ids = [id for package in packages if (id := id_of_package(package)) is not None]
    drawn = find_issuance(connection, organisation=row.organisation, key=row.top_up_of or "")
    own = frozenset[int]() if drawn is None or drawn.package_id is None else frozenset({drawn.package_id})
    return own | packages_added_to(connection, order=row.top_up_of or "", top_up=row.id) | placed_packages_among(connection, packages=ids)
