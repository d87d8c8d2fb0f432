"""Connected accounts on the wire."""

import re
from typing import cast

from clients.payments.fields import (
    Json,
    count_or_none,
    currency_or_none,
    first,
    id_of,
    inner,
    is_so,
    metadata,
    page_at,
    text_or_none,
    word,
)
from clients.payments.records import Account, AccountKind, Interval, Link, Schedule, Weekday

KINDS: tuple[AccountKind, ...] = ("express", "standard", "custom", "none")
BY_DASHBOARD: dict[str | None, AccountKind] = {"express": "express", "full": "standard", "none": "custom"}
INTERVALS: tuple[Interval, ...] = ("manual", "daily", "weekly", "monthly")
NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
MOST_DUE = 200
WEEKDAYS: tuple[Weekday, ...] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def account_of(found: Json) -> Account:
    """An account; one that its owner has not finished says no to everything."""
    return Account(
        id=id_of(found),
        kind=kind_of(found),
        charges_enabled=is_so(found, "charges_enabled"),
        payouts_enabled=is_so(found, "payouts_enabled"),
        details_submitted=is_so(found, "details_submitted"),
        default_currency=currency_or_none(found, "default_currency"),
        currently_due=currently_due(inner(found, "requirements")),
        metadata=metadata(found),
    )


def kind_of(found: Json) -> AccountKind:
    """Accounts made by what they may, not by a type, have type `none`; their dashboard then says which they are."""
    kind: AccountKind = word(text_or_none(found, "type") or "none", KINDS, "type")
    if kind != "none":
        return kind
    return BY_DASHBOARD.get(text_or_none(inner(inner(found, "controller"), "stripe_dashboard"), "type"), kind)


def currently_due(requirements: Json) -> tuple[str, ...]:
    """What is still asked for; what is none of the wire's names is left out."""
    due = requirements.get("currently_due")
    found = cast("list[object]", due) if isinstance(due, list) else []
    return tuple(one for one in found if isinstance(one, str) and NAME.fullmatch(one))[:MOST_DUE]


def link_of(found: Json) -> Link:
    """A page for one person."""
    return Link(page_at(found, "url"), count_or_none(found, "expires_at"))


def schedule_of(found: Json) -> Schedule:
    """Of a weekly or monthly schedule with several days the first one is told."""
    payments = inner(found, "payments")
    schedule = inner(inner(payments, "payouts"), "schedule")
    # Choice: an account that has no schedule pays nothing out by itself.
    interval: Interval = word(text_or_none(schedule, "interval") or "manual", INTERVALS, "interval")
    weekday, month_day = first(schedule, "weekly_payout_days"), first(schedule, "monthly_payout_days")
    return Schedule(
        interval=interval,
        weekday=weekday_of(weekday) if isinstance(weekday, str) and interval == "weekly" else None,
        month_day=month_day if type(month_day) is int and 1 <= month_day <= 31 and interval == "monthly" else None,
        delay_days=count_or_none(inner(payments, "settlement_timing"), "delay_days"),
    )


def weekday_of(found: str) -> Weekday:
    """A day of the week."""
    return word(found, WEEKDAYS, "weekly_payout_days")
