"""What an organisation has at the payment processor."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from clients.payments.records import Money
from operations.deps import Ctx
from operations.ledger.payment_accounts import find_payment_account
from registry.model import Nothing
from registry.operation import Example, operation

TEST_BALANCE_NOTE = "The payment processor is in test mode: no real money moves, so there is no balance to show"
NO_ACCOUNT_BALANCE_NOTE = "No account at the payment processor yet: POST /v1/operator-billing/connect/begin makes one"


class PaymentAmount(TypedDict):
    """`amount` in minor units (cents) of `currency`; it may be negative."""

    amount: int
    currency: str


class PaymentBalance(TypedDict):
    """What is there to be paid out, and what is still under way, by currency."""

    payments_mode: Annotated[Literal["test", "live"], Field(description="test: no real money moves")]
    available: list[PaymentAmount]
    pending: list[PaymentAmount]
    note: Annotated[str | None, Field(description="Why nothing is listed; null where the processor was asked")]


@operation(
    "GET",
    "/v1/operator-billing/balance",
    processor=True,
    title="Get balance",
    examples=[
        Example(
            "What have we earned?",
            {},
            {
                "payments_mode": "live",
                "available": [{"amount": 184250, "currency": "EUR"}],
                "pending": [{"amount": 3990, "currency": "EUR"}],
                "note": None,
            },
        )
    ],
)
async def operator_billing_balance(ctx: Ctx, params: Nothing) -> PaymentBalance:
    """Get the balance of your payment account, available and pending.

    In test mode, and without an account, nothing is asked: both lists are empty and `note` says why.
    """
    del params
    if not ctx.deps.payments.live:
        return {"payments_mode": "test", "available": [], "pending": [], "note": TEST_BALANCE_NOTE}
    account = await find_payment_account(ctx)
    if account is None:
        return {"payments_mode": "live", "available": [], "pending": [], "note": NO_ACCOUNT_BALANCE_NOTE}
    ctx.reached_upstream = True
    balance = await ctx.deps.payments.balance_of(account.account)
    return {
        "payments_mode": "live",
        "available": render_balance_amounts(balance.available),
        "pending": render_balance_amounts(balance.pending),
        "note": None,
    }


def render_balance_amounts(held: tuple[Money, ...]) -> list[PaymentAmount]:
    """As they are shown."""
    return [{"amount": money.amount, "currency": money.currency} for money in held]
