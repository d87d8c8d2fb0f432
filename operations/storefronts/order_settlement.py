"""Settling an order or a top-up that needs review, by an admin of the shop's organisation who has looked what became of it."""

import shlex
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.ledger.reconciliation import ISSUANCE_PATIENCE_SECONDS, IssuanceNotSettled
from operations.ledger.settlements import (
    IssuanceStatement,
    SettlementAgainstEvidence,
    SettlementReason,
    SettlementTooEarly,
    check_issuance_statement,
    is_unresolved,
    redact_settlement_reason,
    settle_as_said,
    settlement_of,
)
from operations.storefronts.orders import ORDER_NUMBER_EXAMPLE, OrderRefundStatus, render_order_refund
from operations.storefronts.sales.order_fulfilment import OrderDecision, OrderNotSettled, fulfil_by_decision
from operations.storefronts.sales.top_up_sender import read_top_up_dispatch, read_top_up_verdict
from operations.upstream.connection import connect_upstream, require_connected
from operations.vocabulary import Iccid
from registry.caller import Role
from registry.challenge import Challenge, describe_loss, quote_name
from registry.clock import rfc3339_utc
from registry.errors import BadRequest, NotFound, OcsError, OrgNotConnected
from registry.operation import Auth, Example, Input, Scope, SpendKind, operation
from storage.engine.sql import Connection
from storage.issuance import IssuanceRow, find_issuance
from storage.orders import OrderRow, OrderStatus, find_order, order_status_of


class OrderOutcome(Input):
    """Which order or top-up, and what became of it."""

    number: Annotated[str, Field(max_length=64, description="The order's number, onr_..., or the top-up's id, tuc_...")]
    outcome: Annotated[
        Literal["delivered", "refund", "failed"],
        Field(
            description="delivered: the order's eSIM was drawn, or the top-up's package is on its line. failed: no eSIM was drawn for the "
            "order. refund: nothing was sent for the order, or the top-up's package is not there. What was paid goes back with both."
        ),
    ]
    iccid: Annotated[Iccid | None, Field(description="The eSIM that was drawn for an order that was delivered. 18-22 digits.")] = None
    reason: SettlementReason


class OrderStatement(NamedTuple):
    """An order, and what was said of its issuance where one decides about it."""

    row: OrderRow
    said: IssuanceStatement | None


def order_command(row: OrderRow) -> str:
    """Who may settle `row` all the same, and by which command."""
    if row.top_up_of is None and row.ledger not in (None, "rolled_back", "released"):
        return (
            f"Whoever runs the service can settle it all the same: reseller issuance settle {shlex.quote(row.id)} --org {row.organisation}"
        )
    return f"Whoever runs the service can settle it all the same: reseller storefront settle {shlex.quote(row.id)}"


async def order_to_settle(ctx: Ctx, params: OrderOutcome) -> OrderStatement:
    """The order with the statement, which is checked as long as it needs review; a replay of one that was settled reads nothing."""
    row = await ctx.deps.store.read(find_order, order=params.number)
    if row is None or row.organisation != ctx.organisation:
        raise NotFound(
            "Your organisation has no order or top-up with this number",
            param="number",
            hint="list_storefront_orders with status needs_review shows those that want you",
        )
    issuance = await ctx.deps.store.read(find_issuance, organisation=ctx.organisation, key=row.top_up_of or row.id)
    ctx.of_account(row.account_id if issuance is None else issuance.account_id)
    ctx.see_state(f"{row.id} {row.status} {row.ledger}")
    if order_status_of(row) != "needs_review":
        return OrderStatement(row, None)
    require_fitting_outcome(row, params)
    if row.top_up_of is not None:
        await check_top_up_statement(ctx, row, params)
    elif issuance is not None and is_unresolved(issuance):
        return OrderStatement(row, await check_order_issuance(ctx, row, issuance, params.iccid))
    else:
        require_patient(ctx, row, row.updated)
    return OrderStatement(row, None)


def require_fitting_outcome(row: OrderRow, params: OrderOutcome) -> None:
    """Raises OrderNotSettled for what cannot be said of this order, and BadRequest where the eSIM is missing or too much."""
    if row.top_up_of is not None:
        fitting: dict[str, str] = {"delivered": "its package is on the line", "refund": "it is not there, and what was paid goes back"}
    elif row.ledger in ("outcome_unknown", "manual_reconciliation_required"):
        fitting = {"delivered": "with iccid, the eSIM that was drawn", "failed": "none was drawn, and what was paid goes back"}
    elif row.ledger in (None, "rolled_back", "released"):
        fitting = {"refund": "nothing was sent for it, and what was paid goes back"}
    else:
        raise OrderNotSettled(
            f"{row.id} needs review, and its issuance is {row.ledger}: whether an eSIM was drawn is known, so there is nothing to say",
            param="outcome",
            hint="Where its package is not as it was sold, modify_package_limits and modify_package_expiry set it by hand",
        )
    if params.outcome not in fitting:
        words = "; ".join(f"{outcome}: {meaning}" for outcome, meaning in fitting.items())
        raise OrderNotSettled(f"{row.id} cannot be settled as {params.outcome}; nothing was settled", param="outcome", hint=f"Say {words}")
    if (params.iccid is None) == (params.outcome == "delivered" and row.top_up_of is None):
        raise BadRequest(
            "iccid: is missing" if params.iccid is None else f"iccid: {params.outcome} names no eSIM here",
            param="iccid",
            hint="Give the eSIM that was drawn with delivered, for an order; leave it out for everything else",
        )


def require_patient(ctx: Ctx, row: OrderRow, since: float) -> None:
    """Raises SettlementTooEarly within 24 hours of `since`, Unix seconds, while it may be found out without a person."""
    ends = since + ISSUANCE_PATIENCE_SECONDS
    if ctx.now < ends:
        raise SettlementTooEarly(
            f"{row.id} needs review since {rfc3339_utc(since)}; it can be settled by you from {rfc3339_utc(ends)} on",
            param="outcome",
            hint=order_command(row),
        )


async def check_order_issuance(ctx: Ctx, row: OrderRow, issuance: IssuanceRow, iccid: str | None) -> IssuanceStatement:
    """What is said of the order's issuance. Raises what `check_issuance_statement` raises. Waits for the network."""
    await require_connected(ctx)
    if not await (await connect_upstream(ctx)).owns_account(issuance.account_id):
        raise OrderNotSettled(
            f"{row.id} was to be drawn from an account that is not yours any more, so it cannot be looked at; nothing was settled",
            param="number",
            hint=order_command(row),
        )
    return IssuanceStatement(issuance, await check_issuance_statement(ctx, issuance, iccid))


async def check_top_up_statement(ctx: Ctx, row: OrderRow, params: OrderOutcome) -> None:
    """Raises SettlementTooEarly, and SettlementAgainstEvidence where the line shows otherwise. Waits for the network."""
    require_patient(ctx, row, row.updated if row.before is None else read_top_up_dispatch(row.before).at)
    await require_connected(ctx)
    await connect_upstream(ctx)
    verdict = await read_top_up_verdict(ctx.deps, row)
    if verdict.kind == ("clear" if params.outcome == "delivered" else "found"):
        shown = "no package that could be its own" if verdict.package is None else f"its package {verdict.package}"
        raise SettlementAgainstEvidence(
            f"This is not what the charging system shows of {row.id}: the line has {shown}; nothing was settled",
            param="outcome",
            hint=order_command(row),
        )


def require_review(row: OrderRow | None) -> OrderRow:
    """The order, if it needs review. Raises OrderNotSettled otherwise."""
    if row is None or order_status_of(row) != "needs_review":
        raise OrderNotSettled(
            "Only what needs review is settled" + ("" if row is None else f", and {row.id} is {order_status_of(row)}"),
            param="number",
            hint="list_storefront_orders with status needs_review shows those that want you. Whoever runs the service has a refund that "
            "failed tried again: reseller storefront settle NUMBER --refund",
        )
    return row


async def name_order_outcome(_ctx: Ctx, params: OrderOutcome, order: OrderStatement) -> Challenge:
    """What becomes of the order, and of what was paid."""
    row = require_review(order.row)
    what, paid = ("order" if row.top_up_of is None else "top-up"), f"{row.paid_amount or 0} {row.currency} in minor units"
    begins = f"This will settle the {what} {quote_name(row.id)}, for good"
    if params.outcome != "delivered":
        return Challenge(
            f"{begins}: nothing was delivered, and what was paid goes back to its buyer ({paid}).",
            (describe_loss("money", paid, order=row.top_up_of or row.id),),
        )
    if params.iccid is None:
        return Challenge(
            f"{begins}: its package is there, and its buyer is told.", (describe_loss("package", row.id, order=row.top_up_of),)
        )
    esim = describe_loss("esim", params.iccid, order=row.id)
    return Challenge(f"{begins}: its buyer gets the eSIM {quote_name(params.iccid)} by mail.", (esim,))


class SettledOrder(TypedDict):
    """What an order or a top-up is from now on. What is owed back is sent by the worker."""

    object: Literal["storefront.settlement"]
    order: Annotated[str, Field(description="The order's number, onr_...")]
    top_up: Annotated[str | None, Field(description="tuc_...; null where the order itself was settled")]
    status: OrderStatus
    refund: Annotated[OrderRefundStatus | None, Field(description="Of what was paid; null where nothing goes back")]


@operation(
    "POST",
    "/v1/storefronts/orders/{number}/settlement",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.ANY,
    role=Role.ADMIN,
    auth=Auth.SESSION,
    confirm=True,
    moves=True,
    access=order_to_settle,
    challenge=name_order_outcome,
    title="Settle storefront order",
    raises=[
        NotFound,
        BadRequest,
        OrderNotSettled,
        IssuanceNotSettled,
        SettlementTooEarly,
        SettlementAgainstEvidence,
        OrgNotConnected,
        OcsError,
    ],
    examples=[
        Example(
            "No eSIM was drawn for a paid order",
            {"number": ORDER_NUMBER_EXAMPLE, "outcome": "failed", "reason": "No line left the stock on 20 November"},
            {"object": "storefront.settlement", "order": ORDER_NUMBER_EXAMPLE, "top_up": None, "status": "failed", "refund": "pending"},
        )
    ],
)
async def settle_order(ctx: Ctx, params: OrderOutcome, order: OrderStatement) -> SettledOrder:
    """Say what became of an order or a top-up that needs review. It is for good.

    For admins who are signed in: no API key settles. Look at the charging system first: the buyer is told, and money goes back.

    Only where nothing was found out for 24 hours (409 `settlement_too_early` before), and nothing that the charging system shows speaks
    against it (409 `settlement_against_evidence`). `delivered` with `iccid` gives the eSIM to the buyer of an order, as settle_issuance
    does for the order's number; `failed` says that none was drawn. A top-up is `delivered` without `iccid`, or gets a `refund`. An order
    for which nothing was sent at all gets a `refund`. What does not fit is 409 `order_not_settled`, which says what does. What is refused
    here, whoever runs the service can settle by `reseller issuance settle` and `reseller storefront settle`. Your name and the reason are
    kept in the audit log.
    """
    row = order.row
    by, surface = ctx.principal, ctx.call.surface
    decision: OrderDecision = "added" if params.outcome == "delivered" else "refund"
    settlement = None if order.said is None else settlement_of(ctx, order.said, params.reason)
    if settlement is None:
        ctx.record_change(f"{row.id}: {row.status} -> {decision} ({redact_settlement_reason(params.reason)})")

    def settle(connection: Connection, *, now: float) -> SettledOrder:
        require_review(row)  # what did not need review when it was looked at was not checked against anything
        require_review(find_order(connection, order=row.id))
        if order.said is not None and settlement is not None:
            settle_as_said(connection, deps=ctx.deps, said=order.said, settlement=settlement, now=now)
        else:
            fulfil_by_decision(connection, deps=ctx.deps, order=row.id, decision=decision, by=by, now=now, surface=surface)
        return render_settled_order(find_order(connection, order=row.id) or row)

    settled = await ctx.settle_result(settle, now=ctx.now)
    ctx.deps.post()
    ctx.deps.wake_worker()
    return settled


def render_settled_order(row: OrderRow) -> SettledOrder:
    refund = render_order_refund(row)
    return {
        "object": "storefront.settlement",
        "order": row.top_up_of or row.id,
        "top_up": None if row.top_up_of is None else row.id,
        "status": order_status_of(row),
        "refund": None if refund is None else refund["status"],
    }
