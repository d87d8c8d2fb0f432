"""What the limits of a credential are, in words, and how much of each is used."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from registry.caller import Approval, Caller, Money, Restrictions, SpendLimits
from registry.clock import rfc3339_utc
from registry.policy import quota_period
from registry.spending import limits_of, shown_money, spend_month
from storage.engine.sql import Connection
from storage.quota import read_quota_used
from storage.spending import read_spending

WORDS_OF_APPROVAL = {
    Approval.IRREVERSIBLE: "what cannot be undone waits for a person's approval",
    Approval.EVERY_WRITE: "every call that changes something waits for a person's approval",
}
NAMES_IN_WORDS = 5


class LimitUse(TypedDict):
    """How much of one limit is used. Money in minor units of `unit`; `unit` of calls is `calls`, or the operation that they are of.

    `calls_per_day` is counted in small blocks: what a server has put aside for the key counts as used.
    """

    limit: Literal["spend_per_day", "spend_per_month", "times", "calls_per_day"]
    key: Annotated[str, Field(description="Under whose name it is counted: this credential, or a key that it was made with")]
    unit: str
    most: int
    used: int
    left: int
    starts_again: str


def read_limit_use(connection: Connection, *, caller: Caller, now: float) -> list[LimitUse]:
    """The use of every limit that holds for `caller`, in the UTC day and month of `now` (Unix seconds)."""
    day, month = quota_period(now), spend_month(now)
    found: list[LimitUse] = []
    calls = caller.restrictions.calls_per_day
    if calls is not None:
        used = read_quota_used(connection, organisation=caller.counter, period=day.name)
        found.append(limit_use("calls_per_day", caller.counter, "calls", calls, used, day.reset))
    for each in limits_of(caller):
        for name, limit, period in (("spend_per_day", each.per_day, day), ("spend_per_month", each.per_month, month)):
            if limit is not None:
                used = read_spending(connection, credential=each.counted_as, period=period.name, subject=limit.currency)
                found.append(limit_use(name, each.counted_as, limit.currency, limit.amount, used, period.reset))
        for name, most in each.times:
            used = read_spending(connection, credential=each.counted_as, period=day.name, subject=name)
            found.append(limit_use("times", each.counted_as, name, most, used, day.reset))
    return found


def limit_use(limit: str, key: str, unit: str, most: int, used: int, reset: int) -> LimitUse:
    name: Literal["spend_per_day", "spend_per_month", "times", "calls_per_day"]
    name = limit  # pyright: ignore[reportAssignmentType]  # one of the four words, from the loops above
    return {
        "limit": name,
        "key": key,
        "unit": unit,
        "most": most,
        "used": used,
        "left": max(0, most - used),
        "starts_again": rfc3339_utc(reset),
    }


def restriction_words(held: Restrictions) -> list[str]:
    """What a credential is held to, a phrase for each restriction; none for a credential without restrictions."""
    lists = (("toolsets", held.toolsets), ("lines", held.iccids), ("accounts", held.account_ids), ("lines with a tag of", held.tags))
    found = ["only reads"] if held.read_only else []
    found += ["nothing that needs the role admin"] if held.no_admin and not held.read_only else []
    found += [f"only the {what} {first_names(names)}" for what, names in lists if names is not None]
    found += [] if held.calls_per_day is None else [f"{held.calls_per_day} calls a UTC day"]
    found += [words for limits in held.limits for words in limit_words(limits)]
    found += [WORDS_OF_APPROVAL[held.approval]] if held.approval in WORDS_OF_APPROVAL else []
    return found + (["somebody else than its maker approves"] if held.another_person else [])


def limit_words(limits: SpendLimits) -> list[str]:
    """One phrase for each limit; that of another key names it."""
    amounts: tuple[tuple[str, Money | None], ...] = (
        ("at most {} by one call", limits.per_call),
        ("at most {} a UTC day", limits.per_day),
        ("at most {} a UTC month", limits.per_month),
        ("more than {} by one call waits for a person's approval", limits.approve_above),
    )
    shared = f", together with the key {limits.counted_as} that it was made with" if limits.counted_as else ""
    found = [text.format(shown_money(amount)) + shared for text, amount in amounts if amount is not None]
    return found + [f"{name} {calls} times a UTC day{shared}" for name, calls in limits.times]


def first_names(names: Sequence[str | int]) -> str:
    more = f" and {len(names) - NAMES_IN_WORDS} more" if len(names) > NAMES_IN_WORDS else ""
    return ", ".join(str(name) for name in names[:NAMES_IN_WORDS]) + more
