"""Refunds: what went back to payers, and giving money back: taken of what is left of the charge first, sent once."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from clients.payments.records import Refund
from operations.billing.charges import PaymentRecordPage, read_payment_records
from operations.deps import Ctx, Deps
from operations.ledger.payment_accounts import ProcessorId, payments_not_connected, require_payment_account
from operations.ledger.payment_attempts import begin_payment_attempt, correct_unknown_answer, send_payment_once, send_refund_attempt
from operations.ledger.payment_records import (
    ChargeRecord,
    RefundRecord,
    load_payment_record,
    payment_amount_text,
    payment_record_of,
    refundable_amount,
    reserve_refund,
)
from operations.vocabulary import ListOf, list_page
from registry.caller import Money
from registry.challenge import Challenge, describe_loss
from registry.errors import BadRequest, Conflict, NotFound, PaymentsError, PaymentsRefused
from registry.operation import Due, Example, Input, Once, Scope, operation
from storage.connect_accounts import ConnectAccount
from storage.engine.sql import Connection
from storage.payment_records import (
    AttemptKind,
    PaymentAttempt,
    PaymentRecord,
    find_payment_record,
    lock_payment_account,
    put_payment_record,
)

REFUND_EXAMPLE: RefundRecord = {
    "id": "re_3QxAbCdEfGhIjKlM",
    "object": "refund",
    "amount": 500,
    "currency": "EUR",
    "status": "succeeded",
    "charge": "ch_3QxAbCdEfGhIjKlM",
    "payment_intent": "pi_3QxAbCdEfGhIjKlM",
    "reason": "requested_by_customer",
    "failure_reason": None,
    "created": 1795341600,
}


@operation(
    "GET",
    "/v1/operator-billing/refunds",
    title="List refunds",
    raises=[BadRequest],
    examples=[Example("What did we give back?", {"limit": 20}, {"object": "list", "data": [REFUND_EXAMPLE], "has_more": False})],
)
async def operator_billing_list_refunds(ctx: Ctx, params: PaymentRecordPage) -> ListOf[RefundRecord]:
    """List refunds of your connected account's charges, newest first.

    Amounts are minor units. A failed refund gave nothing back: see `failure_reason`.

    Refunds made through this service and at the processor's own pages are both there. Empty while no account is connected.
    """
    return list_page([load_payment_record(row, RefundRecord) for row in await read_payment_records(ctx, "refund", params)], params.limit)


REFUND_CENTS_LIMIT = 999_999_999_999
RefundAmount = Annotated[
    int | None, Field(ge=1, le=REFUND_CENTS_LIMIT, description="Minor units (cents), from 1 to what is left. Absent: all of it.")
]
RefundCurrency = Annotated[
    str | None, Field(pattern=r"^[A-Z]{3}$", description="The charge's, ISO 4217 in upper case, as EUR; anything else is refused.")
]


class NewRefund(Input):
    """What is to be given back."""

    charge: Annotated[ProcessorId, Field(description="Charge id, ch_...")]
    amount: RefundAmount = None
    currency: RefundCurrency = None
    reason: Annotated[
        Literal["duplicate", "fraudulent", "requested_by_customer"] | None, Field(description="Why, for the payer's bank.")
    ] = None


@dataclass(frozen=True, slots=True)
class OwnCharge:
    """The caller's account, and the charge where it is not among our records yet."""

    account: ConnectAccount
    asked: PaymentRecord | None


async def own_charge(ctx: Ctx, params: NewRefund) -> OwnCharge:
    """The charge is in the caller's own account: by our records, else by the processor's."""
    account = await require_payment_account(ctx)
    ctx.stage()
    await correct_unknown_answer(ctx, "refund")
    known = await ctx.deps.store.read(find_payment_record, account=account.account, kind="charge", id=params.charge)
    if known is not None:
        return OwnCharge(account, None)
    ctx.reached_upstream = True
    try:
        charge = await ctx.deps.payments.find_charge(account.account, params.charge)
    except NotFound:
        raise no_such_charge() from None
    asked = payment_record_of(charge, account=account.account, organisation=account.organisation, as_of=int(ctx.now))
    return OwnCharge(account, asked)


def no_such_charge() -> NotFound:
    return NotFound("Your account has no charge with this id", param="charge", hint="operator_billing_list_charges names yours")


@dataclass(slots=True)
class RefundSending:
    deps: Deps
    own: OwnCharge
    wanted: NewRefund
    claim_key: str | None
    id: str
    kind: AttemptKind = "refund"

    def begin(self, connection: Connection, *, now: float) -> PaymentAttempt:
        account = self.own.account
        if lock_payment_account(connection, account=account.account) != account.organisation:
            raise payments_not_connected()
        if self.own.asked is not None:
            put_payment_record(connection, record=self.own.asked)
        charge = find_payment_record(connection, account=account.account, kind="charge", id=self.wanted.charge)
        if charge is None:
            raise no_such_charge()
        known = load_payment_record(charge, ChargeRecord)
        require_refundable_charge(known, self.wanted)
        left = refundable_amount(connection, account=account.account, charge=charge.id)
        amount = self.wanted.amount or left
        if not 1 <= amount <= left or not reserve_refund(connection, account=account.account, charge=charge, amount=amount, now=now):
            raise refund_too_large(known, self.wanted.amount, left)
        return begin_payment_attempt(
            connection,
            self.id,
            self.kind,
            organisation=account.organisation,
            account=account.account,
            charge=charge.id,
            amount=amount,
            currency=known["currency"],
            now=now,
            claim_key=self.claim_key,
        )

    async def send(self, attempt: PaymentAttempt) -> Refund:
        return await send_refund_attempt(self.deps, attempt, reason=self.wanted.reason)


def require_refundable_charge(charge: ChargeRecord, wanted: NewRefund) -> None:
    if charge["status"] != "succeeded":
        raise Conflict(
            f"The charge is {charge['status']}, so there is nothing to give back; nothing was done",
            code="charge_not_refundable",
            hint="Only a succeeded charge can be refunded; operator_billing_list_charges shows the status",
        )
    if wanted.currency is not None and wanted.currency != charge["currency"]:
        raise BadRequest(
            f"currency: {wanted.currency} is not the charge's, which is {charge['currency']}; nothing was done",
            param="currency",
            hint=f"Send {charge['currency']}, or leave currency out",
        )


def refund_too_large(charge: ChargeRecord, amount: int | None, left: int) -> BadRequest:
    """More than is left. What other refunds have taken is taken, those under way and those of unknown outcome as well."""
    of, currency = charge["amount"], charge["currency"]
    if left == 0:
        return BadRequest(
            f"charge: nothing is left to refund of its {of} {currency} in minor units; nothing was done",
            code="refund_too_large",
            param="charge" if amount is None else "amount",
            hint="operator_billing_list_refunds shows what was refunded; a refund whose outcome is unknown counts until it is settled",
        )
    return BadRequest(
        f"amount: {amount} is more than what is left to refund, {left} of {of} {currency} in minor units; nothing was done",
        code="refund_too_large",
        param="amount",
        hint=f"Send 1 to {left}, or leave amount out for all that is left",
    )


async def name_refund(ctx: Ctx, params: NewRefund, own: OwnCharge) -> Challenge:
    """The amount that goes back, and to whom: the payer of the charge."""
    account = own.account.account
    known = own.asked or await ctx.deps.store.read(find_payment_record, account=account, kind="charge", id=params.charge)
    if known is None:
        raise no_such_charge()
    charge = load_payment_record(known, ChargeRecord)
    left = charge["amount"] - charge["amount_refunded"]
    if own.asked is None:
        left = await ctx.deps.store.read(refundable_amount, account=account, charge=params.charge)
    amount, whole = (payment_amount_text(each, charge["currency"]) for each in (params.amount or left, charge["amount"]))
    payee = f"the payer of the order {charge['order']}" if charge["order"] else "the payer of this charge"
    loss = describe_loss("money", amount, payee=payee, charge=charge["id"], charged=whole, invoice=charge["invoice"], reason=params.reason)
    return Challenge(f"This will refund {amount} of the charge {charge['id']} ({whole}) to {payee}. It cannot be taken back.", (loss,))


async def due_of_refund(ctx: Ctx, params: NewRefund, own: OwnCharge) -> Due:
    """The amount; without one, the whole charge, since what is left of it may grow until the refund is reserved."""
    known = own.asked
    if known is None:
        known = await ctx.deps.store.read(find_payment_record, account=own.account.account, kind="charge", id=params.charge)
    if known is None:
        raise no_such_charge()
    charge = load_payment_record(known, ChargeRecord)
    return Due((Money(params.amount or charge["amount"], charge["currency"]),))


@operation(
    "POST",
    "/v1/operator-billing/refunds",
    spends=due_of_refund,
    irreversible=True,
    scope=Scope.WRITE,
    once=Once(forever=True, shown=True),
    processor=True,
    moves=True,
    status=201,
    access=own_charge,
    challenge=name_refund,
    title="Refund charge",
    raises=[NotFound, Conflict, PaymentsRefused, PaymentsError],
    examples=[
        Example(
            "Give five euros of a charge back",
            {"charge": "ch_3QxAbCdEfGhIjKlM", "amount": 500, "currency": "EUR", "reason": "requested_by_customer"},
            REFUND_EXAMPLE,
        )
    ],
)
async def operator_billing_create_refund(ctx: Ctx, params: NewRefund, own: OwnCharge) -> RefundRecord:
    """Refund a charge of your connected account, in whole or in part.

    Moves money. Send an idempotency key: repeated without one it is a second refund. After OUTCOME_UNKNOWN repeat it with the same key.

    The amount is taken of what is left of the charge before the processor is asked, so refunds at the same time never give back more than
    was paid. The key is passed on to the processor and never expires. An unknown outcome keeps the amount taken until the processor's
    events, or `reseller payments sync`, tell what came of it; the same key answers it then. The platform fee goes back in proportion.
    """
    sending = RefundSending(ctx.deps, own, params, ctx.call.idempotency_key, ctx.deps.ids.new("att_"))
    return (await send_payment_once(ctx, sending)).body
