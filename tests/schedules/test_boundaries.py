"""When schedules fire, compared with an enumeration that walks every minute and asks what the clock on the wall shows."""

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest

from operations.intelligence.schedules import newest_boundary, next_boundary
from operations.times import timezone_names

MINUTE = timedelta(minutes=1)
# The days of the changes, and which way the clock goes.
CHANGES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25", "2027-03-28", "2027-10-31"),
    "America/New_York": ("2026-03-08", "2026-11-01", "2027-03-14", "2027-11-07"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04", "2027-04-04", "2027-10-03"),
}
PLACES = [(zone, day) for zone, days in CHANGES.items() for day in days]
DAILY = {"30 2 * * *": [(2, 30)], "0 2 * * *": [(2, 0)], "45 1 * * *": [(1, 45)], "0 6 * * *": [(6, 0)]}
SEVERAL = {"0,30 1-3 * * *": [(hour, minute) for hour in (1, 2, 3) for minute in (0, 30)]}
STARRED = {"0 * * * *": {0}, "*/15 * * * *": {0, 15, 30, 45}, "*/30 * * * *": {0, 30}}


@cache
def minutes(day: str, zone: str) -> list[tuple[datetime, datetime]]:
    """Every minute of two days before the day until two after it: in UTC, and what the clock shows."""
    start, place = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=2), ZoneInfo(zone)
    every = (start + count * MINUTE for count in range(5 * 24 * 60))
    return [(each, each.astimezone(place).replace(tzinfo=None)) for each in every]


def at_times(day: str, zone: str, times: list[tuple[int, int]]) -> list[datetime]:
    """The first minute at which the clock shows each time of a day, or, where it skips that, something later."""
    every, found = minutes(day, zone), set[datetime]()
    dates = sorted({shown.date() for _, shown in every})[1:-1]
    for date in dates:
        for hour, minute in times:
            wanted = datetime(date.year, date.month, date.day, hour, minute)
            found.add(next(each for each, shown in every if shown >= wanted))
    return sorted(found)


def at_minutes(day: str, zone: str, wanted: set[int]) -> list[datetime]:
    """Every minute at which the clock shows one of these minutes, as often as it does."""
    return [each for each, shown in minutes(day, zone) if shown.minute in wanted]


def boundaries(cron: str, zone: str, first: datetime, last: datetime) -> list[datetime]:
    """All of them, from the first to the last, by asking again and again for the next."""
    found, at = list[datetime](), int(first.timestamp() * 1000) - 1000
    while (following := next_boundary(cron, zone, at)) is not None and following <= last.timestamp() * 1000:
        assert following > at
        found.append(datetime.fromtimestamp(following / 1000, UTC))
        at = following
    return found


@pytest.mark.cases
@pytest.mark.parametrize(("zone", "day"), PLACES)
@pytest.mark.parametrize("cron", [*DAILY, *SEVERAL])
def test_a_time_that_the_clock_skips_comes_at_once_after_the_gap_and_one_that_it_shows_twice_comes_once(
    zone: str, day: str, cron: str
) -> None:
    expected = at_times(day, zone, {**DAILY, **SEVERAL}[cron])
    assert boundaries(cron, zone, expected[0], expected[-1]) == expected


@pytest.mark.cases
@pytest.mark.parametrize(("zone", "day"), PLACES)
@pytest.mark.parametrize("cron", STARRED)
def test_hourly_and_quarterly_schedules_come_whenever_the_clock_shows_their_minute(zone: str, day: str, cron: str) -> None:
    expected = at_minutes(day, zone, STARRED[cron])
    assert boundaries(cron, zone, expected[0], expected[-1]) == expected


@pytest.mark.cases
@pytest.mark.parametrize(("zone", "day"), PLACES)
@pytest.mark.parametrize("cron", ["30 2 * * *", "0,30 1-3 * * *", "0 * * * *"])
def test_from_every_quarter_of_an_hour_the_next_boundary_lies_ahead_and_is_the_same_one(zone: str, day: str, cron: str) -> None:
    every = [each for each, _ in minutes(day, zone)]
    whole = boundaries(cron, zone, every[0], every[-1])
    for moment in every[::15]:
        ahead = next((each for each in whole if each > moment), None)
        if ahead is not None:
            assert next_boundary(cron, zone, int(moment.timestamp() * 1000)) == ahead.timestamp() * 1000


@pytest.mark.cases
@pytest.mark.parametrize("seconds", [0, 59, 3600, 86_400 * 3, 86_400 * 60])
@pytest.mark.parametrize("cron", ["*/15 * * * *", "30 2 * * *", "0 6 * * MON", "0 0 1 1 *"])
def test_of_many_that_were_missed_the_newest_is_found(cron: str, seconds: int) -> None:
    since = next_boundary(cron, "Europe/Berlin", 1_774_000_000_000)
    assert since is not None
    now = since + seconds * 1000
    missed = boundaries(cron, "Europe/Berlin", datetime.fromtimestamp(since / 1000, UTC), datetime.fromtimestamp(now / 1000, UTC))
    assert newest_boundary(cron, "Europe/Berlin", since, now) == missed[-1].timestamp() * 1000


def test_every_zone_of_the_database_has_a_next_boundary() -> None:
    now = 1_795_166_400_000
    assert [zone for zone in timezone_names() if (next_boundary("0 6 * * *", zone, now) or 0) - now > 86_400_000] == []


def test_a_day_that_never_comes_has_no_boundary() -> None:
    assert next_boundary("0 0 */31 2 MON#5", "UTC", 0) is None
