"""Sending an account's balance to its bank by hand: once per key."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from clients.payments.records import Payout
from operations.billing.payouts import PAID_OUT
from operations.deps import Ctx, Deps
from operations.services.payments.connect import not_connected, require_account
from operations.services.payments.payment_attempts import mend_answer, new_attempt
from operations.services.payments.payment_dispatch import send_once
from operations.services.payments.payment_records import PayoutRecord
from registry.errors import Conflict
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, Once, operation
from registry.payments_errors import PaymentsError, PaymentsRefused
from storage.connection import Connection
from storage.money.connect import Connected
from storage.money.payment_attempts import AttemptKind, PaymentAttempt, insert_attempt
from storage.money.payment_records import lock_account

MOST = 999_999_999_999
LIVE_HINT = "operator_billing_balance shows what is available; pending money becomes available later. Use a new key"
TEST_HINT = (
    "operator_billing_balance shows nothing in test mode. Paid money becomes available some days later, that of the test card "
    "4000 0000 0000 0077 at once. Use a new key"
)
SHORT = frozenset({"balance_insufficient", "insufficient_funds"})


class NewPayout(Input):
    """What is to be paid out."""

    amount: Annotated[int, Field(ge=1, le=MOST, description="Minor units (cents), at most the available balance.")]
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$", description="ISO 4217 in upper case, as EUR; one that the balance has.")]


async def ready_account(ctx: Ctx, params: NewPayout) -> Connected:
    """The caller's account, when the processor lets it take part."""
    del params
    account = await require_account(ctx)
    ctx.stage()
    await mend_answer(ctx, "payout")
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
    """A payout on its way. `attempt` is there once `begin` has run."""

    deps: Deps
    account: Connected
    wanted: NewPayout
    claim_key: str | None
    id: str
    attempt: PaymentAttempt | None = None
    kind: AttemptKind = "payout"

    def begin(self, connection: Connection, *, now: float) -> PaymentAttempt:
        """The account is still the caller's."""
        account, wanted = self.account, self.wanted
        if lock_account(connection, account=account.account) != account.organisation:
            raise not_connected()
        self.attempt = new_attempt(
            self.id,
            self.kind,
            organisation=account.organisation,
            account=account.account,
            amount=wanted.amount,
            currency=wanted.currency,
            now=now,
            claim_key=self.claim_key,
        )
        insert_attempt(connection, attempt=self.attempt)
        return self.attempt

    async def send(self) -> Payout:
        """Ask the processor for it."""
        attempt = self.attempt
        if attempt is None:
            raise RuntimeError("a payout is sent when its attempt was written")
        try:
            return await self.deps.payments.pay_out(
                attempt.account,
                amount=attempt.amount,
                currency=attempt.currency,
                key=attempt.processor_key,
                metadata={"attempt": attempt.id},
            )
        except PaymentsRefused as refusal:
            if refusal.processor_code in SHORT:
                raise too_little(self.wanted, refusal.processor_code, live=self.deps.payments.live) from None
            raise


def too_little(wanted: NewPayout, code: str | None, *, live: bool) -> PaymentsRefused:
    """The balance does not cover it."""
    return PaymentsRefused(
        f"amount: {wanted.amount} {wanted.currency} in minor units is more than the account's available balance; nothing was paid out",
        processor_code=code,
        param="amount",
        hint=LIVE_HINT if live else TEST_HINT,
    )


@operation(
    "POST",
    "/v1/operator-billing/payouts/manual",
    scope=Scope.WRITE,
    once=Once(forever=True, shown=True),
    processor=True,
    moves=True,
    status=201,
    access=ready_account,
    title="Pay out balance",
    raises=[Conflict, PaymentsRefused, PaymentsError],
    examples=[Example("Pay 250 euros out to our bank", {"amount": 25000, "currency": "EUR"}, PAID_OUT)],
)
async def operator_billing_create_manual_payout(ctx: Ctx, params: NewPayout, account: Connected) -> PayoutRecord:
    """Pay out some of your available balance to your bank.

    Moves money. Send an idempotency key: repeated without one it is a second payout. After OUTCOME_UNKNOWN repeat it with the same key.

    It goes to the bank account that the connected account has at the processor, beside what its schedule pays out. The key is passed on
    to the processor and never expires. An unknown outcome is settled by the processor's events, or `reseller payments sync`, and the same
    key answers it then.
    """
    sending = PayoutSending(ctx.deps, account, params, ctx.call.idempotency_key, ctx.deps.ids.new("att_"))
    concluded = await send_once(ctx, sending)
    return concluded.body
