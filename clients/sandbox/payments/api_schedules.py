"""When an account's balance is paid out: read from either of the two places in which the processor takes it."""

from typing import NamedTuple

from clients.sandbox.payments.entities import Account
from clients.sandbox.payments.form import Form, invalid

INTERVALS = ("daily", "manual", "monthly", "weekly")
WORKDAYS = ("friday", "monday", "thursday", "tuesday", "wednesday")
MOST_DELAY_DAYS = 31


class Wanted(NamedTuple):
    """A schedule to be; None keeps what is."""

    interval: str | None
    weekly: list[str]
    monthly: list[int]
    delay_days: int | None
    at: str
    """The parameter's name, for refusals."""


def read_account_schedule(form: Form) -> Wanted | None:
    """`settings[payouts][schedule]` of an account."""
    settings = form.part("settings")
    payouts = settings.part("payouts") if settings else None
    schedule = payouts.part("schedule") if payouts else None
    if schedule is None:
        return None
    weekly, monthly = read_days(schedule, "weekly_payout_days", "monthly_payout_days")
    weekday, anchor = schedule.choice("weekly_anchor", WORKDAYS), schedule.integer("monthly_anchor", 1, 31)
    delay = schedule.raw("delay_days")
    days = None if delay in (None, "minimum") else schedule.integer("delay_days", 2, MOST_DELAY_DAYS)
    weekly, monthly = weekly or ([weekday] if weekday else []), monthly or ([anchor] if anchor else [])
    return checked(Wanted(schedule.choice("interval", INTERVALS), weekly, monthly, days, "settings[payouts][schedule]"))


def read_balance_schedule(form: Form) -> Wanted | None:
    """`payments[payouts][schedule]` of the balance's settings."""
    payments = form.part("payments")
    if payments is None:
        return None
    payments.flag("debit_negative_balances")
    payouts, timing = payments.part("payouts"), payments.part("settlement_timing")
    if payouts is not None:
        payouts.text("statement_descriptor")
    schedule = payouts.part("schedule") if payouts else None
    blank = timing is None or timing.raw("delay_days_override") == ""
    days = None if timing is None or blank else timing.integer("delay_days_override", 2, MOST_DELAY_DAYS)
    if schedule is None:
        return Wanted(None, [], [], days, "payments[payouts][schedule]")
    weekly, monthly = read_days(schedule, "weekly_payout_days", "monthly_payout_days")
    return checked(Wanted(schedule.choice("interval", INTERVALS), weekly, monthly, days, "payments[payouts][schedule]"))


def read_days(schedule: Form, weekly: str, monthly: str) -> tuple[list[str], list[int]]:
    """The days of a week or of a month."""
    days = schedule.texts(weekly) or []
    for day in days:
        if day not in WORKDAYS:
            raise invalid(f"Invalid {schedule.at(weekly)}: must be one of {', '.join(WORKDAYS)}", schedule.at(weekly))
    dates = schedule.texts(monthly) or []
    if any(not date.isdecimal() or not 1 <= int(date) <= 31 for date in dates):
        raise invalid(f"Invalid {schedule.at(monthly)}: must be from 1 to 31", schedule.at(monthly))
    return days, [int(date) for date in dates]


def checked(wanted: Wanted) -> Wanted:
    """Days fit the interval, and an interval has its days."""
    fits = {"weekly": wanted.weekly, "monthly": wanted.monthly}
    for interval, days in fits.items():
        if wanted.interval == interval and not days:
            raise invalid(f"You must provide the days of an interval that is {interval}.", f"{wanted.at}[{interval}_payout_days]")
        if wanted.interval not in (None, interval) and days:
            raise invalid(f"Only an interval that is {interval} takes {interval} payout days.", f"{wanted.at}[{interval}_payout_days]")
    return wanted


def change_schedule(row: Account, wanted: Wanted) -> None:
    """From now on."""
    if wanted.interval is not None:
        row.interval = wanted.interval
    if wanted.interval is not None or wanted.weekly or wanted.monthly:
        row.weekly_days, row.monthly_days = wanted.weekly, wanted.monthly
    row.delay_days = wanted.delay_days or row.delay_days
