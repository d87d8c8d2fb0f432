"""What a call takes from the limits of its credential: what it makes due, which limits that breaks, and under whose name it is counted."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from registry.caller import Caller, Money, SpendLimits
from registry.clock import rfc3339_utc
from registry.errors import Restricted
from registry.operation import NOTHING_DUE, Due, Input, Operation, SpendKind
from registry.policy import quota_period
from registry.ports import SpendingCharge

AMOUNT_TEXT = re.compile(r"([0-9]{1,9})(?:\.([0-9]{2}))? ?([A-Z]{3})", re.ASCII)
LIMIT_HINT = "Use a credential with a larger limit, or have whoever made this one make another; no retry changes a limit"


class SpendPeriod(NamedTuple):
    """A UTC day or month: its name, and when the next one begins (Unix seconds)."""

    name: str
    reset: int


def spend_month(now: float) -> SpendPeriod:
    """The UTC month that `now` (Unix seconds) is in."""
    day = datetime.fromtimestamp(now, UTC)
    following = datetime(day.year + day.month // 12, day.month % 12 + 1, 1, tzinfo=UTC)
    return SpendPeriod(day.strftime("%Y-%m"), int(following.timestamp()))


def limits_of(caller: Caller) -> tuple[SpendLimits, ...]:
    """The limits that hold for `caller`, its own and those of each key that it was made with, each with the name it is counted under."""
    return tuple(limits.counted_by(caller.key_id) for limits in caller.restrictions.limits)


async def due_of(operation: Operation[Any, Any], context: object, params: Input, granted: Sequence[object]) -> Due | SpendKind:
    """What the call makes due, as its declaration says; OPEN where nobody can say. May wait for the network and raise what it refuses."""
    spends = operation.spends
    if spends is None or spends is SpendKind.OPEN:
        return SpendKind.OPEN
    if isinstance(spends, SpendKind):
        return NOTHING_DUE
    return await spends(context, params, *granted)


def shown_money(money: Money) -> str:
    """An amount as people write it, in a currency that limits may have: each has hundredths."""
    return f"{money.amount / 100:.2f} {money.currency}"


def read_money(text: str) -> Money | None:
    """The amount that people write as `40 EUR` or `40.00 EUR`; None for anything else."""
    found = AMOUNT_TEXT.fullmatch(text)
    return None if found is None else Money(int(found[1]) * 100 + int(found[2] or 0), found[3])


def money_due(due: Due) -> tuple[Money, ...]:
    """The amounts that are due, one for each currency, without those that are nothing."""
    sums: dict[str, int] = {}
    for money in due.money:
        sums[money.currency] = sums.get(money.currency, 0) + money.amount
    return tuple(Money(amount, currency) for currency, amount in sums.items() if amount > 0)


def check_due(due: Due, limits: Iterable[SpendLimits]) -> None:
    """Raises Restricted where what one call makes due is more than a limit per call, or in another currency than a limit of money."""
    amounts = money_due(due)
    of_one = amounts if due.largest is None else due.largest
    for each in limits:
        for money in of_one:
            _check_amount("spend_per_call", money, each.per_call)
        for name, limit in (("spend_per_day", each.per_day), ("spend_per_month", each.per_month)):
            for money in amounts:
                _check_amount(name, money, limit)


def _check_amount(name: str, money: Money, limit: Money | None) -> None:
    if limit is None:
        return
    if money.currency != limit.currency:
        raise Restricted(
            f"{name}: this call makes money due in {money.currency}, and this credential may spend {limit.currency} only; nothing was done",
            hint=LIMIT_HINT,
        )
    if money.amount > limit.amount:
        raise Restricted(
            f"{name}: this call makes {shown_money(money)} due, and the limit of this credential is {shown_money(limit)}; nothing was done",
            hint=LIMIT_HINT,
        )


def spending_charges(limits: Iterable[SpendLimits], due: Due, operation: str, now: float, calls: int = 1) -> tuple[SpendingCharge, ...]:
    """What `calls` calls of `operation`, which make `due` due together, take from `limits`, in the order in which it is to be charged.

    `now`, in Unix seconds, says of which UTC day and month. Amounts must be in the currencies of the limits (`check_due`).
    """
    day, month, amounts = quota_period(now), spend_month(now), money_due(due)
    charges: list[SpendingCharge] = []
    for each in limits:
        for name, limit, period in (("spend_per_day", each.per_day, day), ("spend_per_month", each.per_month, month)):
            if limit is not None:
                charges += [
                    SpendingCharge(each.counted_as, period.name, money.currency, money.amount, limit.amount, name, period.reset)
                    for money in amounts
                ]
        charges += [
            SpendingCharge(each.counted_as, day.name, name, calls, most, "times", day.reset)
            for name, most in each.times
            if name == operation
        ]
    return tuple(sorted(charges))


def limit_reached(charge: SpendingCharge, used: int, now: float) -> Restricted:
    """The refusal of a charge of which `used` is used up already: which limit, what is left, what the call takes, when it starts again."""
    left, again = max(0, charge.most - used), rfc3339_utc(charge.reset)
    if charge.limit == "times":
        text = f"times: {charge.subject} may be called {charge.most} times a UTC day with this credential, and {left} are left"
    else:
        asked, most, rest = (shown_money(Money(amount, charge.subject)) for amount in (charge.amount, charge.most, left))
        text = f"{charge.limit}: this call makes {asked} due, and of the limit of {most} {rest} are left"
    refusal = Restricted(f"{text}; it starts again at {again}; nothing was done", hint=f"Wait until {again}, or use another credential")
    refusal.headers["Retry-After"] = str(max(1, int(charge.reset - now) + 1))
    return refusal
