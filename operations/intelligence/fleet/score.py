"""The health of a fleet as one number, and what to do first."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from operations.intelligence.finding import Factor, score_of
from operations.intelligence.fleet.lines import Counts

Deed = Literal["order_esims", "raise_balance", "start_unused_lines", "look_at_idle_lines", "settle_suspended_lines"]
FULL = 100.0
MOST_TODOS = 3
ENOUGH_DAYS = 60.0


class Rule(NamedTuple):
    """How many points a share can take, and from which share on it takes them all."""

    points: float
    all_at: float


IDLE, UNUSED, SUSPENDED = Rule(25, 0.5), Rule(15, 0.3), Rule(15, 0.2)
STOCK, BALANCE = 25.0, 20.0
"""Points that an account takes which runs out today; from ENOUGH_DAYS on none."""


class ToDo(TypedDict):
    """One thing to do, and how much it is about."""

    do: Annotated[Deed, Field(description="What")]
    account_id: Annotated[int | None, Field(description="In which account; null: the fleet")]
    more_accounts: Annotated[int, Field(description="Others that have none left within 60 days")]
    lines: Annotated[int | None, Field(description="Lines it is about")]
    days: Annotated[float | None, Field(description="Days until the account has none left")]
    points: Annotated[float, Field(description="What it costs the score")]


class Supply(NamedTuple):
    """How long eSIMs and balance of an account last; None: they do, or nobody knows."""

    account_id: int
    stock_days: float | None
    balance_days: float | None


class Score(NamedTuple):
    """The number, what it is made of, and what follows."""

    score: float
    factors: list[Factor]
    first: list[ToDo]


def scored(counts: Counts, supplies: Sequence[Supply]) -> Score:
    """From 100 points, what is wrong takes some."""
    active = max(1, counts.statuses["ACTIVE"])
    shares = {
        "idle_share": (counts.idle / active, IDLE),
        "never_used_share": (counts.never_used / max(1, counts.issued), UNUSED),
        "suspended_share": (counts.statuses["SUSPENDED"] / max(1, counts.issued), SUSPENDED),
    }
    weights = {"full_marks": (FULL, FULL), **{name: (share, -taken(share, rule)) for name, (share, rule) in shares.items()}}
    stock = soonest(supply.stock_days for supply in supplies)
    balance = soonest(supply.balance_days for supply in supplies)
    if stock is not None:
        weights["stock_days"] = stock, -short(stock, STOCK)
    if balance is not None:
        weights["balance_days"] = balance, -short(balance, BALANCE)
    score, factors = score_of(weights)
    return Score(score, factors, first_of(counts, supplies, {name: -points for name, (_, points) in weights.items()}))


def taken(share: float, rule: Rule) -> float:
    """Points that a share takes."""
    return round(rule.points * min(1.0, share / rule.all_at), 1)


def short(days: float, points: float) -> float:
    """Points that an end so near takes."""
    return round(points * max(0.0, 1.0 - days / ENOUGH_DAYS), 1)


def soonest(days: Iterable[float | None]) -> float | None:
    """The nearest end."""
    return min((each for each in days if each is not None), default=None)


def first_of(counts: Counts, supplies: Sequence[Supply], points: dict[str, float]) -> list[ToDo]:
    """What takes most points, first; of equals what is named first."""
    stock = [(supply.stock_days, supply.account_id) for supply in supplies if supply.stock_days is not None]
    balance = [(supply.balance_days, supply.account_id) for supply in supplies if supply.balance_days is not None]
    found = [
        *ending("order_esims", stock, STOCK),
        *ending("raise_balance", balance, BALANCE),
        about("look_at_idle_lines", counts.idle, points["idle_share"]),
        about("start_unused_lines", counts.never_used, points["never_used_share"]),
        about("settle_suspended_lines", counts.statuses["SUSPENDED"], points["suspended_share"]),
    ]
    return sorted((each for each in found if each["points"] > 0), key=lambda each: -each["points"])[:MOST_TODOS]


def ending(do: Deed, ends: Sequence[tuple[float, int]], points: float) -> Iterable[ToDo]:
    """What runs out: the account where it does first, and how many others follow."""
    for days, account_id in sorted(ends)[:1]:
        more = sum(each < ENOUGH_DAYS for each, _ in ends) - 1
        yield {
            "do": do,
            "account_id": account_id,
            "more_accounts": max(0, more),
            "lines": None,
            "days": days,
            "points": short(days, points),
        }


def about(do: Deed, lines: int, points: float) -> ToDo:
    """Something about lines."""
    return {"do": do, "account_id": None, "more_accounts": 0, "lines": lines, "days": None, "points": points}
