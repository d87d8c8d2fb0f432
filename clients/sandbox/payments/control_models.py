"""What the control API is told."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Amount = Annotated[int, Field(ge=1, le=99_999_999)]
Outcome = Literal["succeeded", "available", "declined", "no_funds", "disputed", "inquiry", "reviewed", "refund_fails"]
NUMBERS: dict[Outcome, str] = {
    "succeeded": "4242424242424242",
    "available": "4000000000000077",
    "declined": "4000000000000002",
    "no_funds": "4000000000009995",
    "disputed": "4000000000000259",
    "inquiry": "4000000000001976",
    "reviewed": "4000000000009235",
    "refund_fails": "4000000000005126",
}


class Told(BaseModel):
    """Nothing but what is known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NewCharge(Told):
    """A buyer's payment into an account."""

    account: str
    amount: Amount
    currency: Annotated[str, Field(pattern="^[A-Za-z]{3}$")]
    fee: Annotated[int, Field(ge=0)] = 0
    metadata: dict[str, str] = {}
    description: str | None = None
    email: str | None = None
    outcome: Outcome = "succeeded"


class NewAccount(Told):
    """An account of somebody who has been with the processor for long; `connected`: the platform is let in already."""

    kind: Literal["standard"] = "standard"
    name: str = "Own account"
    country: Annotated[str, Field(pattern="^[A-Z]{2}$")] = "US"
    email: str | None = None
    connected: bool = True


class NewPast(Told):
    """An Express account that has worked for `days`: payments, refunds, payouts, a dispute. `told`: all of it goes out as events."""

    name: str = "Demo reseller"
    country: Annotated[str, Field(pattern="^[A-Z]{2}$")] = "US"
    email: str = "demo@example.com"
    days: Annotated[int, Field(ge=1, le=90)] = 42
    told: bool = False


class AccountChange(Told):
    """enable: onboarding is complete. restrict: `due` is asked for. deauthorize: the owner lets the platform go. authorize: a code.

    bank_fails, bank_works: what becomes of the payouts from now on.
    """

    do: Literal["enable", "restrict", "deauthorize", "authorize", "bank_fails", "bank_works"]
    due: list[str] = []


class NewDispute(Told):
    """A payer's bank asks for the money back."""

    account: str
    charge: str
    reason: str = "fraudulent"
    inquiry: bool = False
    amount: Amount | None = None


class DisputeEnd(Told):
    """The bank has decided."""

    account: str
    outcome: Literal["won", "lost"]


class NewReview(Told):
    """The fraud rules want a person to look at a charge."""

    account: str
    charge: str


class PayoutEnd(Told):
    """The bank has it, or sends it back."""

    account: str
    status: Literal["paid", "failed"]


class Payment(Told):
    """Somebody pays on the page of an invoice or of a checkout."""

    outcome: Outcome = "succeeded"
    email: str = "buyer@example.com"
    promotion: str | None = None


class HookChange(Told):
    """How events are told from now on, and one that is to be told once more."""

    hold: bool | None = None
    shuffle: bool | None = None
    double: bool | None = None
    redeliver: str | None = None


class ClockChange(Told):
    """The processor's clock runs ahead of the wall's by so much more."""

    advance: Annotated[int, Field(ge=0, le=400 * 86_400)]
