"""Issuing an eSIM from an account's stock, and taking it back."""

from typing import Annotated, NamedTuple

from pydantic import Field

from clients.ocs.moment import wire_time
from clients.ocs.token_places import issuing
from operations.deps import Ctx
from operations.services.issuing.inventory_purpose import InventoryPurpose, IssuedData
from operations.services.issuing.issued_line import LineHasPackages, issued_line
from operations.services.issuing.ledger import Order, before_draw, draw
from operations.services.issuing.purpose import NoInventory, TakenBack, require_kept
from operations.services.issuing.rollback import LedgerData, NotIssued, ledger_row, require_issued, roll_back
from operations.services.network.lines import Line
from operations.services.network.package_window import PackageWindow
from operations.services.network.reached import Upstream
from operations.services.network.templates import find_template
from operations.services.network.upstream import reach
from operations.services.shop.order_opening import issuance_named
from registry.errors import BadRequest, Conflict, EndOfLife, NotFound, OcsError
from registry.idempotency_key import LONGEST
from registry.limits import Scope
from registry.model import CamelInput
from registry.operation import Example, Once, operation
from registry.policy import stamp
from storage.issuing.issuance import IssuanceRow, find_issuance

MOST = 9_007_199_254_740_991
OURS = ("onr_", "ord_", "cni_")
KEY = "order-1042"


class FromInventory(PackageWindow):
    """From which account, with which package, for when."""

    account_id: Annotated[int, Field(ge=1, le=MOST, description="Id of list_reseller_accounts.")]


class IssuanceRef(CamelInput):
    """Which issuance."""

    issuance_key: Annotated[
        str,
        Field(
            min_length=1,
            max_length=LONGEST,
            pattern=r"^[\x21-\x7e]+$",
            alias="idempotencyKey",
            description="Its idempotency key, an intent's id, or an order's number.",
        ),
    ]


ROW = {
    "idempotency_key": KEY,
    "status": "rolled_back",
    "iccid": "8988303700000100286",
    "package_id": 3300871,
    "account_id": 8101,
    "updated_at": "2026-11-20T09:00:00Z",
}


async def own_account(ctx: Ctx, params: FromInventory) -> Upstream:
    """The caller's account, asked again at every replay; keys that our own ids would meet are refused."""
    key = ctx.call.idempotency_key or ""
    if key.startswith(OURS):
        raise BadRequest(
            f"X-Idempotency-Key: begins with {key[:4]}, which is kept for the service's own issuances",
            param="idempotency_key",
            hint="Choose keys that do not begin with onr_, ord_ or cni_, such as a UUID",
        )
    upstream = await reach(ctx)
    with issuing():
        owned = await upstream.owns_account(params.account_id)
    if not owned:
        raise NotFound("You have no account with this id", param="accountId", hint="list_reseller_accounts names yours")
    require_kept(await ctx.deps.store.read(find_issuance, organisation=ctx.organisation, key=key))
    ctx.stage()
    return upstream


@operation(
    "POST",
    "/v1/subscribers/issue-from-inventory",
    scope=Scope.WRITE,
    once=Once(required=True, forever=True, alias="X-Idempotency-Key"),
    upstream=True,
    moves=True,
    status=201,
    access=own_account,
    title="Issue eSIM from inventory",
    raises=[NotFound, NoInventory, TakenBack, EndOfLife, OcsError],
    examples=[
        Example(
            "A free eSIM with a package for 30 days",
            {"accountId": 8101, "packageTemplateId": 55010, "validityPeriod": 30},
            {
                "data": {
                    "iccid": "8988303700000100286",
                    "smdpServer": "smdp.sandbox.invalid",
                    "activationCode": "F7K2-QX9M-41TB",
                    "urlQrCode": "LPA:1$smdp.sandbox.invalid$F7K2-QX9M-41TB",
                    "subscriberId": 910045,
                    "esimId": 760112,
                    "subsPackageId": 3300871,
                    "userSimName": "Fjord_910045",
                    "idempotencyKey": KEY,
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
    require_time_left(params, ctx.now)
    with before_draw():
        await find_template(upstream, params.package_template_id, "packageTemplateId")
    purpose = InventoryPurpose(ctx.call.idempotency_key or "", ctx.call.request_id, ctx.deps.ids)
    order = Order(
        key=purpose.key,
        account_id=params.account_id,
        template_id=params.package_template_id,
        validity_days=params.validity_period,
        period=params.period,
    )
    concluded = await draw(ctx, upstream, order, purpose)
    ctx.deps.wake_worker()
    return concluded.body


def require_time_left(params: FromInventory, now: float) -> None:
    """A package that has ended before it begins would cost an eSIM. Asked after the replay, which is for ever."""
    dates = params.active_period
    if dates is not None and dates.end.timestamp() <= now:
        raise BadRequest(
            f"activePeriod.end: {wire_time(dates.end)} is over; now it is {stamp(now)}",
            param="activePeriod.end",
            hint="Send an end that is still to come, in UTC",
        )


class OwnIssuance(NamedTuple):
    """A row of the caller's. `line` is where its eSIM is now; it is not asked for when nothing can be given back."""

    row: IssuanceRow
    line: Line | None


async def own_issuance(ctx: Ctx, params: IssuanceRef) -> OwnIssuance:
    """The row, of an account that still is the caller's, and of a line that still is there; a foreign one is not found."""
    row = await ctx.deps.store.read(issuance_named, organisation=ctx.organisation, named=params.issuance_key)
    if row is None:
        raise no_such_issuance()
    ctx.same_as(params.model_copy(update={"issuance_key": row.key}))
    upstream = await reach(ctx)
    if not await upstream.owns_account(row.account_id):
        raise no_such_issuance()
    ctx.of_account(row.account_id)
    line = await issued_line(upstream, row) if row.state == "issued" else None
    if row.state == "issued" and line is None:
        raise no_such_issuance()
    ctx.stage()
    return OwnIssuance(row, line)


def no_such_issuance() -> NotFound:
    """Unknown keys, those of others, and those whose line was moved to others are answered alike."""
    return NotFound(
        "Your organisation issued nothing under this key",
        param="idempotencyKey",
        hint="Name the key that issue_esim_from_inventory was called with, or the id of an intent",
    )


@operation(
    "DELETE",
    "/v1/subscribers/issue-from-inventory/{idempotencyKey}",
    scope=Scope.WRITE,
    confirm=True,
    upstream=True,
    moves=True,
    access=own_issuance,
    title="Roll back eSIM issuance",
    raises=[NotFound, NotIssued, LineHasPackages, Conflict, OcsError],
    examples=[Example("The order was cancelled", {"idempotencyKey": KEY}, {"data": ROW})],
)
async def rollback_esim_issuance(ctx: Ctx, params: IssuanceRef, issuance: OwnIssuance) -> LedgerData:
    """Take an issued eSIM back: remove its package, and return the SIM to stock.

    A downloaded profile does not return to stock. Again: answers as before. MANUAL_RECONCILIATION_REQUIRED: do not repeat.

    A line that has another package is refused (409 `line_has_packages`): remove that first. A line that was moved to another account
    is not found. An intent's issuance is rolled back by the intent's id; the intent becomes failed with the code `rolled_back`. The
    key stays used: what was rolled back is never issued again under it. An ambiguous answer of the charging system leaves the row
    `rollback_unknown` (502 MANUAL_RECONCILIATION_REQUIRED with the row), and nothing further is sent.
    """
    del params
    row, line = issuance
    if row.state in ("rolled_back", "released"):
        return {"data": ledger_row(row)}
    concluded = await roll_back(ctx, require_issued(row, line), row)
    ctx.deps.wake_worker()
    return concluded.body
