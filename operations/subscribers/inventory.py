"""Issuing an eSIM from an account's stock, and taking it back."""

from typing import Annotated, NamedTuple

from pydantic import Field

from clients.ocs.places import issuing
from operations.deps import Ctx
from operations.ledger.issuance import IssuanceOrder, IssuanceTakenBack, NoInventory, before_issuance, draw_esim, require_not_given_back
from operations.ledger.issuance_targets import InventoryTarget, IssuedData
from operations.ledger.orders import find_issuance_named
from operations.ledger.rollback import (
    LedgerData,
    LineHasPackages,
    NotIssued,
    find_issued_line,
    issuance_challenge,
    render_ledger_row,
    require_rollbackable,
    roll_back_issuance,
)
from operations.subscribers.package_assignment import INSTALLED_EXAMPLE, PackageWindow
from operations.times import utc_text
from operations.upstream.connection import Upstream, connect_upstream
from operations.upstream.lines import Line
from operations.upstream.resellers import find_template
from operations.upstream.template_costs import due_of_template
from operations.vocabulary import UpstreamId
from registry.challenge import Challenge
from registry.clock import rfc3339_utc
from registry.errors import BadRequest, Conflict, EndOfLife, NotFound, OcsError
from registry.operation import CamelInput, Due, Example, Once, Scope, SpendKind, operation
from registry.policy import KEY_SPELLING_LIMIT
from storage.issuance import IssuanceRow, find_issuance

RESERVED_KEY_PREFIXES = ("onr_", "ord_", "cni_")
EXAMPLE_ISSUANCE_KEY = "order-1042"


class FromInventory(PackageWindow):
    """From which account, with which package, for when."""

    account_id: Annotated[UpstreamId, Field(description="Id of list_reseller_accounts.")]


class IssuanceRef(CamelInput):
    """Which issuance."""

    issuance_key: Annotated[
        str,
        Field(
            min_length=1,
            max_length=KEY_SPELLING_LIMIT,
            pattern=r"^[\x21-\x7e]+$",
            alias="idempotencyKey",
            description="Its idempotency key, an intent's id, or an order's number.",
        ),
    ]


ROLLED_BACK_EXAMPLE = {
    "idempotency_key": EXAMPLE_ISSUANCE_KEY,
    "status": "rolled_back",
    "iccid": "8988303700000100286",
    "package_id": 3300871,
    "account_id": 8101,
    "updated_at": "2026-11-20T09:00:00Z",
}


async def account_to_draw_from(ctx: Ctx, params: FromInventory) -> Upstream:
    """The connection, if the account is the caller's; checked again at every replay. Keys that could be ids of our own are refused."""
    key = ctx.call.idempotency_key or ""
    if key.startswith(RESERVED_KEY_PREFIXES):
        raise BadRequest(
            f"X-Idempotency-Key: begins with {key[:4]}, which is kept for the service's own issuances",
            param="idempotency_key",
            hint="Choose keys that do not begin with onr_, ord_ or cni_, such as a UUID",
        )
    upstream = await connect_upstream(ctx)
    with issuing():
        owned = await upstream.owns_account(params.account_id)
    if not owned:
        raise NotFound("You have no account with this id", param="accountId", hint="list_reseller_accounts names yours")
    require_not_given_back(await ctx.deps.store.read(find_issuance, organisation=ctx.organisation, key=key))
    ctx.stage()
    return upstream


async def due_of_issuance(_ctx: Ctx, params: FromInventory, upstream: Upstream) -> Due | SpendKind:
    """The cost of the template. Waits for the network."""
    with before_issuance():
        return await due_of_template(upstream, params.package_template_id, "packageTemplateId")


@operation(
    "POST",
    "/v1/subscribers/issue-from-inventory",
    spends=due_of_issuance,
    draws=True,
    scope=Scope.WRITE,
    once=Once(required=True, forever=True, alias="X-Idempotency-Key"),
    upstream=True,
    moves=True,
    status=201,
    access=account_to_draw_from,
    title="Issue eSIM from inventory",
    card="install",
    raises=[NotFound, NoInventory, IssuanceTakenBack, EndOfLife, OcsError],
    examples=[
        Example(
            "A free eSIM with a package for 30 days",
            {"accountId": 8101, "packageTemplateId": 55010, "validityPeriod": 30},
            {
                "data": {
                    **INSTALLED_EXAMPLE,
                    "idempotencyKey": EXAMPLE_ISSUANCE_KEY,
                    "status": "issued",
                }
            },
        )
    ],
)
async def issue_esim_from_inventory(ctx: Ctx, params: FromInventory, upstream: Upstream) -> IssuedData:
    """Draw a free eSIM of an account and put a package on it; once per key, for ever.

    Keep the key: after OUTCOME_UNKNOWN the same key tells later what came of it, a new key may draw a second eSIM. After
    issuance_failed take a new key.

    Without a window the package runs from its first use. A key is sent to the charging system at most once, whatever happens: an
    unknown outcome is settled from what the account's stock shows, and never tried again. When that proves nothing for 24 hours, a
    person at the service settles it (MANUAL_RECONCILIATION_REQUIRED). The answer holds what installs the eSIM: keep it as you would
    a password. `esim.issued` goes to your webhook endpoints. Keys may not begin with `onr_`, `ord_` or `cni_`.
    """
    require_period_ahead(params, ctx.now)
    with before_issuance():
        await find_template(upstream, params.package_template_id, "packageTemplateId")
    purpose = InventoryTarget(ctx.call.idempotency_key or "", ctx.call.request_id, ctx.deps.ids)
    order = IssuanceOrder(
        key=purpose.key,
        account_id=params.account_id,
        template_id=params.package_template_id,
        validity_days=params.validity_period,
        period=params.period,
    )
    concluded = await draw_esim(ctx, upstream, order, purpose)
    ctx.deps.wake_worker()
    return concluded.body


def require_period_ahead(params: FromInventory, now: float) -> None:
    """Refuses dates that have ended, since the call would cost an eSIM. Checked after the replay, which answers for ever."""
    dates = params.active_period
    if dates is not None and dates.end.timestamp() <= now:
        raise BadRequest(
            f"activePeriod.end: {utc_text(dates.end)} is over; now it is {rfc3339_utc(now)}",
            param="activePeriod.end",
            hint="Send an end that is still to come, in UTC",
        )


class OwnIssuance(NamedTuple):
    """A row of the caller's. `line` is where its eSIM is now; it is not asked for when nothing can be given back."""

    row: IssuanceRow
    line: Line | None


class AccountIssuance(NamedTuple):
    """A row of the caller's, whose account still is, and the way to that account."""

    row: IssuanceRow
    upstream: Upstream


async def find_own_issuance(ctx: Ctx, params: IssuanceRef) -> AccountIssuance:
    """The issuance that `params` name, if its account still is the caller's. Raises NotFound otherwise. Waits for the network."""
    row = await ctx.deps.store.read(find_issuance_named, organisation=ctx.organisation, named=params.issuance_key)
    if row is None:
        raise issuance_not_found()
    ctx.same_as(params.model_copy(update={"issuance_key": row.key}))
    upstream = await connect_upstream(ctx)
    if not await upstream.owns_account(row.account_id):
        raise issuance_not_found()
    ctx.of_account(row.account_id)
    return AccountIssuance(row, upstream)


async def own_issuance(ctx: Ctx, params: IssuanceRef) -> OwnIssuance:
    """The issuance, if its account and its line still are the caller's. Raises NotFound otherwise."""
    row, upstream = await find_own_issuance(ctx, params)
    line = await find_issued_line(upstream, row) if row.state == "issued" else None
    if row.state == "issued" and line is None:
        raise issuance_not_found()
    ctx.stage()
    return OwnIssuance(row, line)


def issuance_not_found() -> NotFound:
    """The same answer for unknown keys, foreign ones, and those whose line was moved to another account."""
    return NotFound(
        "Your organisation issued nothing under this key",
        param="idempotencyKey",
        hint="Name the key that issue_esim_from_inventory was called with, or the id of an intent",
    )


async def name_issuance(ctx: Ctx, _params: IssuanceRef, issuance: OwnIssuance) -> Challenge:
    """The eSIM with its order, and the package that goes. Waits for the network."""
    return await issuance_challenge(issuance.row, issuance.line, ctx.now)


@operation(
    "DELETE",
    "/v1/subscribers/issue-from-inventory/{idempotencyKey}",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.WRITE,
    confirm=True,
    upstream=True,
    moves=True,
    access=own_issuance,
    challenge=name_issuance,
    title="Roll back eSIM issuance",
    raises=[NotFound, NotIssued, LineHasPackages, Conflict, OcsError],
    examples=[Example("The order was cancelled", {"idempotencyKey": EXAMPLE_ISSUANCE_KEY}, {"data": ROLLED_BACK_EXAMPLE})],
)
async def rollback_esim_issuance(ctx: Ctx, params: IssuanceRef, issuance: OwnIssuance) -> LedgerData:
    """Take an issued eSIM back: remove its package, and return the SIM to stock.

    A downloaded profile does not return to stock. Again: answers as before. MANUAL_RECONCILIATION_REQUIRED: do not repeat.

    A line that has another package is refused (409 `line_has_packages`): remove that first. A line that was moved to another account
    is not found. An intent's issuance is rolled back by the intent's id; the intent becomes failed with `rolled_back`: true. A line that
    was Inactive before its draw is Inactive again. The key stays used: what was rolled back is never issued again under it. An ambiguous
    answer of the charging system leaves the row `rollback_unknown` (502 MANUAL_RECONCILIATION_REQUIRED with the row), and nothing
    further is sent.
    """
    del params
    row, line = issuance
    if row.state in ("rolled_back", "released"):
        return {"data": render_ledger_row(row)}
    concluded = await roll_back_issuance(ctx, require_rollbackable(row, line), row)
    ctx.deps.wake_worker()
    return concluded.body
