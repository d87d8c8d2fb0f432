"""Drawing an eSIM from stock, once per key for ever: look at the stock, commit what is sent, send it, commit what came of it."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from clients.ocs.failure import OcsNotFound
from clients.ocs.outcome import LATER
from clients.ocs.token_places import issuing
from clients.ocs.wire.package import Period
from operations.deps import Deps
from operations.services.issuing.drawn_esim import DrawnEsim, answered_esim
from operations.services.issuing.errand import Errand
from operations.services.issuing.purpose import MANUAL, NOT_ISSUED, UNKNOWN, Purpose, no_inventory, nothing_drawn
from operations.services.network.reached import Upstream
from registry.errors import OcsError, Refusal, StoreUnavailable
from registry.ports import Conclusion
from storage.calls.claims import reopen_claim
from storage.calls.replicas import LEASE_SECONDS
from storage.connection import Connection
from storage.issuing.intents import end_intent
from storage.issuing.issuance import (
    IssuanceRow,
    NewIssuance,
    begin_issuance,
    dispute,
    fail,
    find_issuance,
    holder_of,
    issue,
    lose,
    release_holder,
    unresolved_like,
    unsend,
)
from storage.issuing.stock import was_returned

DAY = 86_400
# Choice: with these codes the charging system itself does not vouch for having done nothing (3 server fault, 5 and 7 its database).
NO_PROOF = frozenset({3, 5, 7})
NOT_IN_THIS_STATE, TRAFFIC_LIMIT = 14, 100
BACK_IN_STOCK = (
    '{"code":"released","message":"This eSIM was returned to stock at the charging system, and belongs to another issuance now"}'
)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be drawn. `period` is the wire's dates; without either window the package runs from its first use.

    `patient`: whoever sends it tries again by itself, so that a traffic limit frees the key instead of using it up.
    """

    key: str
    account_id: int
    template_id: int
    intent: str | None = None
    validity_days: int | None = None
    period: Period | None = None
    patient: bool = False


@contextmanager
def before_draw() -> Generator[None]:
    """Reads of the charging system before an eSIM is drawn: where one fails, its error says that none was."""
    with issuing():
        try:
            yield
        except OcsError as refusal:
            if type(refusal) is not OcsError or refusal.hint is not None:  # what the caller has to change, or what says it all
                raise
            raise OcsError(
                f"{refusal.message.removesuffix('.')}. No eSIM was drawn",
                ocs_code=refusal.ocs_code,
                code=refusal.error_code,
                hint="Repeat the call with the same key",
                before_execution=refusal.before_execution,
                details=refusal.details,
                retry_after=int(refusal.headers.get("Retry-After", LATER)),
            ) from None


async def draw(ctx: Errand, upstream: Upstream, order: Order, purpose: Purpose) -> Conclusion:
    """The one dispatch of a key, and what came of it. Raises what surely came before it; the key is free then."""
    with issuing():
        return await dispatch_once(ctx, upstream, order, purpose)


async def dispatch_once(ctx: Errand, upstream: Upstream, order: Order, purpose: Purpose) -> Conclusion:
    """The look at the stock, the commit before the call, the call, and the commit after it."""
    deps = ctx.deps
    if not deps.draws:
        raise no_network()
    with before_draw():
        look = await deps.stock.look(upstream, order.account_id)
    row = NewIssuance(
        organisation=ctx.organisation,
        key=order.key,
        operation=ctx.operation_id,
        claim_key=ctx.claim_key,
        principal=ctx.principal,
        account_id=order.account_id,
        template_id=order.template_id,
        validity_days=order.validity_days,
        period=None if order.period is None else f"{order.period['start']}/{order.period['end']}",
        intent=order.intent,
        owner=deps.replica,
        lease=ctx.request_id,
        stock=look.id,
    )
    named = {"organisation": ctx.organisation, "key": order.key}
    ctx.if_unsent(take_back, row=row, purpose=purpose)
    began = deps.clock.monotonic()
    await ctx.dispatch(purpose.sent(), begin, row=row, purpose=purpose, now=deps.clock.now())
    ctx.if_lost(settle_unknown, purpose=purpose, **named, now=deps.clock.now())
    try:
        require_in_time(deps, began)
        made = await upstream.ocs.packages.affect_from_account(
            order.template_id, order.account_id, active_period=order.period, validity_days=order.validity_days
        )
    except Refusal as refusal:
        return await refused(ctx, order, purpose, refusal)
    esim = answered_esim(made)
    believed = deps.stock.is_first_to_name(esim.iccid, row)
    return await ctx.conclude(settle_issued, purpose=purpose, **named, esim=esim, now=deps.clock.now(), believed=believed)


async def refused(ctx: Errand, order: Order, purpose: Purpose, refusal: Refusal) -> Conclusion:
    """No eSIM in the answer: it never left, nothing was done, or nobody knows."""
    named = {"organisation": ctx.organisation, "key": order.key}
    now = ctx.deps.clock.now()
    if isinstance(refusal, OcsError):
        if refusal.before_execution and (refusal.ocs_code is None or order.patient):
            if not await was_taken_over(ctx, order):
                raise refusal
            return await ctx.conclude(settle_failed, purpose=purpose, **named, refusal=nothing_drawn(), now=now, note="never sent")
        if refusal.outcome_unknown or refusal.ocs_code in NO_PROOF:
            return await ctx.conclude(settle_unknown, purpose=purpose, **named, now=now)
        # A template that was there a moment ago: so it is the eSIM that is missing.
        refusal = no_inventory(order.account_id) if isinstance(refusal, OcsNotFound) else not_issued(refusal)
    return await ctx.conclude(settle_failed, purpose=purpose, **named, refusal=refusal, now=now)


def not_issued(refusal: OcsError) -> OcsError:
    """The charging system's refusal in the words of a draw: the general ones speak of a resource to read, and of calling again."""
    text, hint = f"{refusal.message} No eSIM was drawn", "Use a new key to try again; this one stays used"
    if refusal.ocs_code == NOT_IN_THIS_STATE:
        text = "The charging system cannot put a package of this template on an eSIM of this account; no eSIM was drawn"
        hint = "Use a new key to draw with another template: this one is probably of another sponsor than the account's stock, or recurring"
    elif refusal.ocs_code == TRAFFIC_LIMIT:
        text = "The traffic limit of the charging system refused the draw; no eSIM was drawn"
        hint = "Use a new key to try again after a pause; this one stays used"
    return refusal.retold(text, code=NOT_ISSUED, hint=hint)


def require_in_time(deps: Deps, began: float) -> None:
    """A process that stood still may have lost its row to recovery, and recovery may have settled it: a call that late stays here.

    Choice: it has to be over before a lease that was renewed right before the dispatch ends. What stands still after this is sent
    all the same, and told by its answer (see `disputed`).
    """
    if deps.clock.monotonic() - began > LEASE_SECONDS - deps.ocs.total_seconds:
        raise OcsError(
            "The server stood still when it was about to send the call, so it was not sent; nothing was drawn",
            hint="Repeat the call with the same key",
            retry_after=1,
            before_execution=True,
        )


async def was_taken_over(ctx: Errand, order: Order) -> bool:
    """Whether recovery has the row of a call that never left: its key is not free then, and answers that nothing was drawn."""
    try:
        row = await ctx.deps.store.read(find_issuance, organisation=ctx.organisation, key=order.key)
    except StoreUnavailable:
        return False  # the release is owed, and frees what is this call's still
    return row is not None and row.state != "dispatching"


def no_network() -> OcsError:
    """This process has no network to draw from."""
    return OcsError(
        "The charging system is simulated inside the running server, and this process is another one; nothing was drawn",
        hint="Call the running server: --url and --key",
        before_execution=True,
    )


def begin(connection: Connection, *, row: NewIssuance, purpose: Purpose, now: float) -> None:
    """The row and what it is for; another unknown key of the same kind is noted, and blocks nothing (abuse case 4)."""
    purpose.begin(connection)
    begin_issuance(connection, row=row, now=now)
    purpose.warning = unresolved_like(
        connection,
        organisation=row.organisation,
        principal=row.principal,
        account_id=row.account_id,
        template_id=row.template_id,
        since=now - DAY,
        key=row.key,
    )


def take_back(connection: Connection, *, row: NewIssuance, purpose: Purpose) -> None:
    """Nothing was sent."""
    if unsend(connection, organisation=row.organisation, key=row.key, lease=row.lease):
        purpose.undo(connection)


def settle_issued(
    connection: Connection,
    *,
    purpose: Purpose,
    organisation: str,
    key: str,
    esim: DrawnEsim,
    now: float,
    note: str | None = None,
    believed: bool = True,
) -> Conclusion:
    """The eSIM becomes this key's, unless another key has it: an answer that says so is not believed."""
    found = find_issuance(connection, organisation=organisation, key=key)
    if found is None:
        raise RuntimeError(f"there is no issuance {key}")
    if found.state == "failed":
        return disputed(connection, purpose, found, esim.iccid, now)
    if found.state != "issued" and not free_to_take(connection, stock=found.stock, iccid=esim.iccid, now=now, believed=believed):
        return settle_unknown(connection, purpose=purpose, organisation=organisation, key=key, now=now, replied=esim.iccid)
    row = issue(connection, organisation=organisation, key=key, drawn=esim.drawn, now=now, note=note)
    if row is None:
        if found.state != "issued" or found.iccid != esim.iccid:
            return contradicted(connection, purpose, organisation, key)
        row = found  # reconciliation was faster
    return purpose.issued(connection, row, esim, now)


def free_to_take(connection: Connection, *, stock: str, iccid: str, now: float, believed: bool) -> bool:
    """Nobody has the ICCID, or whoever has it had lost it before this draw: it was in stock again."""
    holder = holder_of(connection, iccid=iccid)
    if holder is None:
        return believed
    if not was_returned(connection, stock=stock, holder=holder):
        return False
    release_holder(connection, holder=holder, now=now, note="seen in stock, and drawn again")
    if holder.intent is not None:
        end_intent(connection, intent=holder.intent, organisation=holder.organisation, error=BACK_IN_STOCK)
    return True


def disputed(connection: Connection, purpose: Purpose, row: IssuanceRow, iccid: str, now: float) -> Conclusion:
    """It was settled that nothing was drawn, and now an answer names an eSIM: a person has to look, and the key says so."""
    opened = dispute(connection, organisation=row.organisation, key=row.key, replied=iccid, now=now)
    if opened is None:
        return contradicted(connection, purpose, row.organisation, row.key)
    if row.claim_key is not None:
        reopen_claim(connection, organisation=row.organisation, operation=row.operation, key=row.claim_key)
    purpose.reopen(connection)
    return purpose.unknown(connection, opened, MANUAL)


def settle_failed(
    connection: Connection, *, purpose: Purpose, organisation: str, key: str, refusal: Refusal, now: float, note: str | None = None
) -> Conclusion:
    """Nothing was drawn."""
    row = fail(connection, organisation=organisation, key=key, now=now, note=note or refusal.error_code)
    return contradicted(connection, purpose, organisation, key) if row is None else purpose.failed(connection, row, refusal)


def settle_unknown(
    connection: Connection, *, purpose: Purpose, organisation: str, key: str, now: float, replied: str | None = None
) -> Conclusion:
    """From now on only evidence, or a person, tells what came of it."""
    row = lose(connection, organisation=organisation, key=key, now=now, replied=replied)
    return contradicted(connection, purpose, organisation, key) if row is None else purpose.unknown(connection, row, UNKNOWN)


def contradicted(connection: Connection, purpose: Purpose, organisation: str, key: str) -> Conclusion:
    """The row was settled otherwise while this process was away; what it says stands."""
    row = find_issuance(connection, organisation=organisation, key=key)
    if row is None:
        raise RuntimeError(f"there is no issuance {key}")
    return purpose.unknown(connection, row, MANUAL)
