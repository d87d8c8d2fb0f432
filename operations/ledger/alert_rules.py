"""When alerts open and close: arithmetic on what was looked at, without a clock or a database.

An alert of a balance or a stock opens when what is left lasts for too few days at the median daily use, and closes when it lasts for
clearly more days, or after a top-up that has held for an hour. What lies between the two changes nothing, so that it never flaps.
"""

from collections.abc import Sequence
from math import inf
from statistics import median
from typing import Literal, NamedTuple

from storage.alerts import AlertDay, AlertSettings

AlertChange = Literal["open", "close"] | None

LEAST_DAYS, MOST_DAYS = 3, 14
"""How many finished days there must be, and how many of the last ones count."""
WATCHED_SECONDS = 12 * 3600.0
"""A day that was looked at for a shorter time says too little of what is used in a day."""
TOP_UP_SECONDS = 3600.0
"""A top-up that holds for so long closes an alert."""
BEHIND_TIMES, CAUGHT_UP_TIMES = 3.0, 2.0


def daily_uses(days: Sequence[AlertDay], today: int) -> list[float]:
    """What was used on each of the last finished days of one account that were looked at for long enough. `today`: days since the epoch."""
    return [day.used for day in days if today - MOST_DAYS <= day.day < today and day.ended - day.began >= WATCHED_SECONDS]


def median_use(uses: Sequence[float]) -> float | None:
    """The median of the days; None where there are too few."""
    return median(uses) if len(uses) >= LEAST_DAYS else None


def supply_days(level: float, daily: float) -> float:
    """For how many days `level` lasts; for ever where nothing is used."""
    return level / daily if daily > 0 else inf


class LevelState(NamedTuple):
    """An alert that may be open. `opened`, `topped`: as AlertRow has them, 0 where it is not open; `daily`: the use when it opened."""

    opened: float = 0.0
    daily: float = 0.0
    topped: float = 0.0


class LevelLook(NamedTuple):
    """What a look has shown of one account: what is left, and was left at the look before (None: there was none), what each day used.

    `complete`: all that is to be known was read. `now`: Unix seconds.
    """

    level: float
    before: float | None
    uses: Sequence[float]
    complete: bool
    now: float


class LevelJudgement(NamedTuple):
    """What changes, and the state from now on."""

    change: AlertChange
    state: LevelState


def judge_level(look: LevelLook, settings: AlertSettings, state: LevelState) -> LevelJudgement:
    """Whether the alert of an account's balance or stock opens or closes now.

    What is worth no day of the use that it opened at is never well again, however little is used: one that is empty uses nothing.
    """
    daily = median_use(look.uses)
    if daily is None or not look.complete:
        return LevelJudgement(None, state)
    left = supply_days(look.level, daily)
    if not state.opened:
        opens = left < settings.days_to_open
        return LevelJudgement("open", LevelState(look.now, daily)) if opens else LevelJudgement(None, state)
    if look.level < state.daily or left < settings.days_to_open:
        return LevelJudgement(None, state._replace(topped=0.0))
    rise = 0.0 if look.before is None else look.level - look.before
    # Less than a day's use is no top-up: refunds and roll-backs move a level a little, too.
    topped = state.topped or (look.now if rise > 0 and rise >= max(daily, state.daily) else 0.0)
    if left > settings.days_to_close or (topped and look.now - topped >= TOP_UP_SECONDS):
        return LevelJudgement("close", LevelState())
    return LevelJudgement(None, state._replace(topped=topped))


def judge_age(age: float, normal: float, opened: float) -> AlertChange:
    """Whether the alert of a list that is `age` seconds old opens or closes; `normal`: how old it becomes when all is well."""
    if not opened:
        return "open" if age > BEHIND_TIMES * normal else None
    return "close" if age <= CAUGHT_UP_TIMES * normal else None


def is_quota_reached(used: int, limit: int, percent: int) -> bool:
    """Whether `used` calls are `percent` percent of `limit`, or more."""
    return limit > 0 and used * 100 >= limit * percent


class LevelFigures(NamedTuple):
    """What is shown of a level: the median use of a day (None: too few days), and for how many days it lasts (None: not known, or ever)."""

    daily: float | None
    left: float | None


def level_figures(level: float, uses: Sequence[float]) -> LevelFigures:
    """The figures of a level, rounded to be read."""
    daily = median_use(uses)
    if daily is None:
        return LevelFigures(None, None)
    return LevelFigures(round(daily, 2), round(supply_days(level, daily), 1) if daily > 0 else None)
