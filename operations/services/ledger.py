"""Drawing an eSIM from stock, once per key for ever: look at the stock, commit what is sent, send it, commit what came of it."""

from dataclasses import dataclass

from clients.ocs.failure import OcsNotFound
from clients.ocs.wire.package import Period
from operations.deps import Ctx
from operations.services.drawn_esim import DrawnEsim, answered_esim
from operations.services.purpose import MANUAL, NOT_ISSUED, UNKNOWN, Purpose, no_inventory
from operations.services.reached import Upstream
from registry.errors import OcsError, Refusal
from registry.ports import Conclusion
from storage.connection import Connection
from storage.intents import end_intent
from storage.issuance import (
    NewIssuance,
    begin_issuance,
    fail,
    find_issuance,
    holder_of,
    issue,
    lose,
    release_holder,
    unresolved_like,
    unsend,
)
from storage.stock import was_returned

DAY = 86_400
# Choice: with these codes the charging system itself does not vouch for having done nothing (3 server fault, 5 and 7 its database).
NO_PROOF = frozenset({3, 5, 7})
BACK_IN_STOCK = (
    '{"code":"released","message":"This eSIM was returned to stock at the charging system, and belongs to another issuance now"}'
)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be drawn. `period` is the wire's dates; without either window the package runs from its first use."""

    key: str
    account_id: int
    template_id: int
    intent: str | None = None
    validity_days: int | None = None
    period: Period | None = None


async def draw(ctx: Ctx, upstream: Upstream, order: Order, purpose: Purpose) -> Conclusion:
    """The one dispatch of a key, and what came of it. Raises what surely came before it; the key is free then."""
    deps = ctx.deps
    if not deps.draws:
        raise no_network()
    look = await deps.stock.look(upstream, order.account_id)
    row = NewIssuance(
        organisation=ctx.organisation,
        key=order.key,
        operation=ctx.call.operation.id,
        claim_key=ctx.call.idempotency_key,
        principal=ctx.caller.principal,
        account_id=order.account_id,
        template_id=order.template_id,
        validity_days=order.validity_days,
        period=None if order.period is None else f"{order.period['start']}/{order.period['end']}",
        intent=order.intent,
        owner=deps.replica,
        lease=ctx.call.request_id,
        stock=look.id,
    )
    named = {"organisation": ctx.organisation, "key": order.key}
    ctx.if_unsent(take_back, row=row, purpose=purpose)
    await ctx.dispatch(purpose.sent(), begin, row=row, purpose=purpose, now=deps.clock.now())
    ctx.if_lost(settle_unknown, purpose=purpose, **named, now=deps.clock.now())
    try:
        made = await upstream.ocs.packages.affect_from_account(
            order.template_id, order.account_id, active_period=order.period, validity_days=order.validity_days
        )
    except Refusal as refusal:
        return await refused(ctx, order, purpose, refusal)
    esim = answered_esim(made)
    believed = deps.stock.is_first_to_name(esim.iccid, row)
    return await ctx.conclude(settle_issued, purpose=purpose, **named, esim=esim, now=deps.clock.now(), believed=believed)


async def refused(ctx: Ctx, order: Order, purpose: Purpose, refusal: Refusal) -> Conclusion:
    """No eSIM in the answer: it never left, nothing was done, or nobody knows."""
    named = {"organisation": ctx.organisation, "key": order.key}
    now = ctx.deps.clock.now()
    if isinstance(refusal, OcsError):
        if refusal.before_execution and refusal.ocs_code is None:
            raise refusal
        if refusal.outcome_unknown or refusal.ocs_code in NO_PROOF:
            return await ctx.conclude(settle_unknown, purpose=purpose, **named, now=now)
        if isinstance(refusal, OcsNotFound):  # the template was there a moment ago
            refusal = no_inventory(order.account_id)
        else:
            text = f"{refusal.message} No eSIM was drawn"
            refusal = OcsError(text, ocs_code=refusal.ocs_code, code=NOT_ISSUED, hint="Use a new key to try again; this one stays used")
    return await ctx.conclude(settle_failed, purpose=purpose, **named, refusal=refusal, now=now)


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
