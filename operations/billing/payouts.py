"""Payouts to the account's bank: those that were made, one by hand (once per key), and when the balance is paid out by itself."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from clients.payments.records import Payout, PayoutInterval, PayoutTiming, Weekday
from operations.billing.charges import PaymentRecordPage, read_payment_records
from operations.deps import Ctx, Deps
from operations.ledger.payment_accounts import own_payment_account, payments_not_connected, require_payment_account
from operations.ledger.payment_attempts import begin_payment_attempt, correct_unknown_answer, send_payment_once
from operations.ledger.payment_records import PayoutRecord, load_payment_record, payment_amount_text
from operations.vocabulary import ListOf, list_page, render_fields
from registry.caller import Money
from registry.challenge import Challenge, describe_loss
from registry.errors import BadRequest, Conflict, PaymentsError, PaymentsRefused
from registry.operation import Due, Example, FieldRule, Input, Nothing, Once, Scope, SpendKind, operation
from storage.connect_accounts import ConnectAccount
from storage.engine.sql import Connection
from storage.payment_records import AttemptKind, PaymentAttempt, lock_payment_account

PAYOUT_EXAMPLE: PayoutRecord = {
    "id": "po_1QxAbCdEfGhIjKlM",
    "object": "payout",
    "amount": 25000,
    "currency": "EUR",
    "status": "pending",
    "automatic": False,
    "arrival_date": 1795428000,
    "failure_code": None,
    "created": 1795341600,
}


@operation(
    "GET",
    "/v1/operator-billing/payouts",
    title="List payouts",
    raises=[BadRequest],
    examples=[Example("What was paid out to our bank?", {"limit": 20}, {"object": "list", "data": [PAYOUT_EXAMPLE], "has_more": False})],
)
async def operator_billing_list_payouts(ctx: Ctx, params: PaymentRecordPage) -> ListOf[PayoutRecord]:
    """List payouts to your bank, newest first.

    Amounts are minor units. A paid payout may still come back as failed: see `failure_code`.

    Scheduled payouts (`automatic`) and manual ones are both there. Empty while no account is connected.
    """
    return list_page([load_payment_record(row, PayoutRecord) for row in await read_payment_records(ctx, "payout", params)], params.limit)


PAYOUT_CENTS_LIMIT = 999_999_999_999
LIVE_PAYOUT_HINT = "operator_billing_balance shows what is available; pending money becomes available later. Use a new key"
TEST_PAYOUT_HINT = (
    "operator_billing_balance shows nothing in test mode. Paid money becomes available some days later, that of the test card "
    "4000 0000 0000 0077 at once. Use a new key"
)
SHORT_BALANCE_CODES = frozenset({"balance_insufficient", "insufficient_funds"})


class NewPayout(Input):
    """What is to be paid out."""

    amount: Annotated[int, Field(ge=1, le=PAYOUT_CENTS_LIMIT, description="Minor units (cents), at most the available balance.")]
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$", description="ISO 4217 in upper case, as EUR; one that the balance has.")]


async def require_active_payment_account(ctx: Ctx, _params: NewPayout) -> ConnectAccount:
    account = await require_payment_account(ctx)
    ctx.stage()
    await correct_unknown_answer(ctx, "payout")
    if account.status != "active":
        raise Conflict(
            f"Your account at the payment processor is {account.status}: its owner has not told the processor everything it needs; "
            "nothing was done",
            code="payments_not_active",
            hint="operator_billing_connect_status says what is missing, and POST /v1/operator-billing/connect/begin leads its owner there",
        )
    return account


@dataclass(slots=True)
class PayoutSending:
    deps: Deps
    account: ConnectAccount
    wanted: NewPayout
    claim_key: str | None
    id: str
    kind: AttemptKind = "payout"

    def begin(self, connection: Connection, *, now: float) -> PaymentAttempt:
        account, wanted = self.account, self.wanted
        if lock_payment_account(connection, account=account.account) != account.organisation:
            raise payments_not_connected()
        return begin_payment_attempt(
            connection,
            self.id,
            self.kind,
            organisation=account.organisation,
            account=account.account,
            amount=wanted.amount,
            currency=wanted.currency,
            now=now,
            claim_key=self.claim_key,
        )

    async def send(self, attempt: PaymentAttempt) -> Payout:
        try:
            return await self.deps.payments.pay_out(
                attempt.account,
                amount=attempt.amount,
                currency=attempt.currency,
                key=attempt.processor_key,
                metadata={"attempt": attempt.id},
            )
        except PaymentsRefused as refusal:
            if refusal.processor_code in SHORT_BALANCE_CODES:
                raise PaymentsRefused(
                    f"amount: {attempt.amount} {attempt.currency} in minor units is more than the account's available balance; "
                    "nothing was paid out",
                    processor_code=refusal.processor_code,
                    param="amount",
                    hint=LIVE_PAYOUT_HINT if self.deps.payments.live else TEST_PAYOUT_HINT,
                ) from None
            raise


async def name_payout(_ctx: Ctx, params: NewPayout, account: ConnectAccount) -> Challenge:
    """The amount and where it goes."""
    amount = payment_amount_text(params.amount, params.currency)
    loss = describe_loss("money", amount, payee="the bank account of your connected account", account=account.account)
    return Challenge(
        f"This will pay {amount} out to the bank account of your connected account {account.account}. It cannot be taken back.", (loss,)
    )


async def due_of_payout(_ctx: Ctx, params: NewPayout, _account: ConnectAccount) -> Due:
    """The amount."""
    return Due((Money(params.amount, params.currency),))


@operation(
    "POST",
    "/v1/operator-billing/payouts/manual",
    spends=due_of_payout,
    irreversible=True,
    scope=Scope.WRITE,
    once=Once(forever=True, shown=True),
    processor=True,
    moves=True,
    status=201,
    access=require_active_payment_account,
    challenge=name_payout,
    title="Pay out balance",
    raises=[Conflict, PaymentsRefused, PaymentsError],
    examples=[Example("Pay 250 euros out to our bank", {"amount": 25000, "currency": "EUR"}, PAYOUT_EXAMPLE)],
)
async def operator_billing_create_manual_payout(ctx: Ctx, params: NewPayout, account: ConnectAccount) -> PayoutRecord:
    """Pay out some of your available balance to your bank.

    Moves money. Send an idempotency key: repeated without one it is a second payout. After OUTCOME_UNKNOWN repeat it with the same key.

    It goes to the bank account that the connected account has at the processor, beside what its schedule pays out. The key is passed on
    to the processor and never expires. An unknown outcome is settled by the processor's events, or `reseller payments sync`, and the same
    key answers it then.
    """
    sending = PayoutSending(ctx.deps, account, params, ctx.call.idempotency_key, ctx.deps.ids.new("att_"))
    return (await send_payment_once(ctx, sending)).body


class NewSchedule(Input):
    """When to pay out."""

    interval: Annotated[PayoutInterval, Field(description="manual: only when you ask for a payout.")]
    weekday: Annotated[Weekday | None, Field(description="Day of weekly payouts; required with weekly, refused otherwise.")] = None
    month_day: Annotated[
        int | None,
        Field(ge=1, le=31, description="Day of monthly payouts, 1-31; a shorter month pays out on its last. With monthly only."),
    ] = None

    @model_validator(mode="after")
    def check(self) -> "NewSchedule":
        days = (("weekday", "weekly", self.weekday, '"friday"'), ("month_day", "monthly", self.month_day, "1"))
        for name, interval, value, such in days:
            if self.interval == interval and value is None:
                text = f"{name}: missing; it is required when interval is {interval}"
                raise FieldRule(text, param=name, hint=f'Such as {{"interval": "{interval}", "{name}": {such}}}')
            if self.interval != interval and value is not None:
                text = f"{name}: goes with the interval {interval} alone, and interval is {self.interval}; leave it out"
                raise FieldRule(text, param=name, hint=f'Leave {name} out, or send {{"interval": "{interval}"}} with it')
        return self


class PayoutSchedule(TypedDict):
    """`weekday` is null unless weekly, `month_day` unless monthly."""

    object: Literal["payout_schedule"]
    interval: PayoutInterval
    weekday: Weekday | None
    month_day: int | None
    delay_days: Annotated[int | None, Field(description="Days that money rests first, by the processor's rule; null where not told")]


PAYOUT_SCHEDULE_EXAMPLE: PayoutSchedule = {
    "object": "payout_schedule",
    "interval": "weekly",
    "weekday": "friday",
    "month_day": None,
    "delay_days": 7,
}


@operation(
    "GET",
    "/v1/operator-billing/payouts/schedule",
    processor=True,
    title="Get payout schedule",
    access=own_payment_account,
    raises=[Conflict],
    examples=[Example("When are we paid?", {}, PAYOUT_SCHEDULE_EXAMPLE)],
)
async def operator_billing_get_payout_schedule(ctx: Ctx, _params: Nothing, account: ConnectAccount) -> PayoutSchedule:
    """Get when your payment account is paid out by itself.

    Without an account there is none: 409.
    """
    ctx.reached_upstream = True
    return render_fields(await ctx.deps.payments.schedule_of(account.account), PayoutSchedule, object="payout_schedule")


@operation(
    "PATCH",
    "/v1/operator-billing/payouts/schedule",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    processor=True,
    title="Update payout schedule",
    access=own_payment_account,
    raises=[Conflict],
    examples=[Example("Pay us every Friday", {"interval": "weekly", "weekday": "friday"}, PAYOUT_SCHEDULE_EXAMPLE)],
)
async def operator_billing_update_payout_schedule(ctx: Ctx, params: NewSchedule, account: ConnectAccount) -> PayoutSchedule:
    """Set when your payment account is paid out: by hand, daily, weekly, monthly.

    weekly needs `weekday`, monthly needs `month_day`. What is already on its way is not changed.

    With manual nothing is paid out until operator_billing_create_manual_payout asks for it.
    """
    wanted = PayoutTiming(params.interval, params.weekday, params.month_day)
    ctx.reached_upstream = True
    found = await ctx.deps.payments.set_schedule(account.account, wanted, key=ctx.call.request_id)
    return render_fields(found, PayoutSchedule, object="payout_schedule")
