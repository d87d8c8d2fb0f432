"""Changes of balances: in managed mode they can be lowered and not raised."""

from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from operations.upstream.connection import Upstream
from operations.upstream.template_costs import euro_cents
from operations.upstream.template_terms import COST_CURRENCY
from registry.caller import Money
from registry.errors import Conflict
from registry.operation import CamelInput, Due

BALANCE_LIMIT = 1_000_000_000
BALANCE_DECIMALS = 6
"""Digits after the point that the charging system holds."""


class ManagedBalance(Conflict):
    """In managed mode a balance can be lowered and not raised."""

    code = "managed_balance"


class BalanceChange(CamelInput):
    """How much, and whether it is added or put in place."""

    amount: Annotated[float, Field(ge=-BALANCE_LIMIT, le=BALANCE_LIMIT, description="EUR; negative lowers.")]
    mode: Annotated[Literal["adapt", "set"], Field(description="adapt adds, set replaces.")] = "adapt"
    description: Annotated[str | None, Field(max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$", description="For the upstream's log.")] = None

    @model_validator(mode="after")
    def check(self) -> "BalanceChange":
        """A balance is never negative."""
        if self.mode == "set" and self.amount < 0:
            raise ValueError(f"amount {self.amount}: a balance cannot be set below 0; use mode adapt to lower it")
        return self


class BalanceChanged(TypedDict):
    """What was asked for; a result below 0 becomes 0."""

    mode: Literal["adapt", "set"]
    amount: Annotated[float, Field(description="EUR")]


def refuse_managed_raise(upstream: Upstream, change: BalanceChange, balance: float) -> None:
    """Raises ManagedBalance where `change` would raise `balance`, EUR, in managed mode.

    Choice: it holds for a line's balance as for the account's; both are spent at the cost of the reseller that is shared.
    """
    raised = change.amount > balance if change.mode == "set" else change.amount > 0
    if raised and upstream.managed and not upstream.service_own:
        raise ManagedBalance(
            "In managed mode a balance can be lowered here and not raised: it is the service's money",
            param="amount",
            hint="Ask whoever runs the service to raise it",
        )


def due_of_balance(change: BalanceChange, balance: float) -> Due:
    """What `change` moves at most, to the balance or away from it; `balance`, EUR, is what was there when it was read."""
    moved = abs(change.amount) if change.mode == "adapt" else max(change.amount, balance - change.amount)
    return Due((Money(euro_cents(moved), COST_CURRENCY),))


class BalanceWrite(NamedTuple):
    """What goes to the charging system."""

    amount: float
    set_balance: bool


def balance_write(upstream: Upstream, change: BalanceChange, balance: float) -> BalanceWrite:
    """What to send for `change`. Where balances can only be lowered, a set is sent as the difference to `balance`, which was read before.

    Else usage that is charged between the read and the write would be given back, and repeated sets would make all usage free.
    """
    if change.mode == "adapt" or not upstream.managed or upstream.service_own or change.amount == 0:
        return BalanceWrite(change.amount, change.mode == "set")
    return BalanceWrite(round(change.amount - balance, BALANCE_DECIMALS), False)
