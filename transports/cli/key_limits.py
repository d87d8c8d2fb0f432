"""What `reseller keys create` can hold a key to: amounts, counts and approvals, as options are written and as a list shows them."""

import re
from collections.abc import Iterable
from typing import Annotated

import typer

from operations.setup.credentials.restrictions import InheritedLimits, ShownAmount, ShownRestrictions
from registry.caller import Money
from registry.spending import read_money, shown_money
from transports.cli.terminal import Failure

OPERATION_COUNT = re.compile(r"([a-z_]{1,80})=([0-9]{1,6})", re.ASCII)

KeyTagsOption = Annotated[list[str] | None, typer.Option("--tag", help="Only operations on a line with this tag; may be repeated.")]
CallAmountOption = Annotated[
    str | None, typer.Option("--spend-per-call", metavar="AMOUNT", help='What one call makes due at most: "10.00 EUR".')
]
DayAmountOption = Annotated[str | None, typer.Option("--spend-per-day", metavar="AMOUNT", help="The same for a UTC day.")]
MonthAmountOption = Annotated[str | None, typer.Option("--spend-per-month", metavar="AMOUNT", help="The same for a UTC month.")]
TimesOption = Annotated[
    list[str] | None, typer.Option("--times", metavar="OPERATION=N", help="Calls of one operation a UTC day; may be repeated.")
]
FreeAmountOption = Annotated[
    str | None, typer.Option("--approve-above", metavar="AMOUNT", help="A call that makes more due waits for a person's approval.")
]
ApprovalOption = Annotated[str | None, typer.Option("--approval", help="What waits for a person: irreversible or every_write.")]
AnotherPersonOption = Annotated[bool, typer.Option("--another-person", help="Somebody else than the maker of the key approves.")]


def read_amount(option: str, text: str | None) -> dict[str, object] | None:
    """The amount that an option holds, in minor units; raises Failure for what is none."""
    if text is None:
        return None
    found = read_money(text)
    if found is None:
        raise Failure(f'{option}: got {text!r}; write an amount with its currency, for example "40.00 EUR"')
    return {"amount": found.amount, "currency": found.currency}


def read_counts(given: Iterable[str] | None) -> dict[str, int] | None:
    """Operations with how often each may be called a day; raises Failure for what is none."""
    counts: dict[str, int] = {}
    for text in given or ():
        found = OPERATION_COUNT.fullmatch(text)
        if found is None:
            raise Failure(f"--times: got {text!r}; write an operation and a number, for example create_connectivity_intent=10")
        counts[found[1]] = int(found[2])
    return counts or None


def amount_text(amount: ShownAmount) -> str:
    return shown_money(Money(amount["amount"], amount["currency"]))


def limit_parts(limits: ShownRestrictions | InheritedLimits) -> list[str]:
    """The limits of money and counts, a phrase each."""
    amounts = (
        ("a call", limits["spend_per_call"]),
        ("a day", limits["spend_per_day"]),
        ("a month", limits["spend_per_month"]),
        ("a call without approval", limits["approve_above"]),
    )
    parts = [f"{amount_text(amount)} {what}" for what, amount in amounts if amount is not None]
    return parts + [f"{name} {calls} times a day" for name, calls in (limits["times"] or {}).items()]
