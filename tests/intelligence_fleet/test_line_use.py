"""What is known of a line's days: put together in any order it is the same, and nothing that a server writes breaks it."""

from datetime import date, timedelta
from itertools import permutations

import pytest

from clients.ocs.statistics import PeriodUsage
from operations.caches.usage import PACKED_FIGURE_LIMIT, USAGE_DAYS_LIMIT, UsageCache, UsageSpan, cut_span, span_days
from operations.intelligence.lines.usage import day_places, day_totals, join_spans, next_missing_week, sum_line_days
from operations.upstream.usage import micro_euros, usage_country
from registry.errors import OcsError

FIRST = date(2027, 1, 1).toordinal()


def answer(*days: int, quantity: int = 5, country: str = "no") -> PeriodUsage:
    """Use on these days after the first."""
    records = {"mcc": 242, "mnc": 1, "countryAlpha2": country, "operator": "Telenor", "usageType": 33, "quantity": quantity}
    rows = [
        {
            "day": (date(2027, 1, 1) + timedelta(days=day)).isoformat(),
            "total": {"quantityPerType": {"33": 2 * quantity}, "resellerCost": 0.1, "subscriberCost": 0.2},
            "subsDailyUsages": [records, records],
        }
        for day in days
    ]
    return {"usages": [{"subsPeriodUsages": rows}]}  # pyright: ignore[reportReturnType]  # as a server writes it


def stretch(kept: UsageCache, first: int, last: int) -> UsageSpan:
    """Every day from one to another."""
    told = answer(*range(first, last + 1))
    return kept.pack(FIRST + first, FIRST + last, day_totals(told), day_places(told))


def test_weeks_are_the_same_in_whatever_order_they_were_read() -> None:
    kept = UsageCache()
    whole = sum_line_days(stretch(kept, 0, 20), FIRST, FIRST + 20)
    assert (whole.data_bytes, whole.reseller_cost, whole.subscriber_cost) == (210, 2_100_000, 4_200_000)
    assert [place[:6] for place in whole.places] == [(242, 1, "NO", "Telenor", 33, 210)]
    assert [visit.iso2 for visit in whole.visits] == ["NO"] * 21
    for order in permutations([(0, 6), (7, 13), (14, 20)]):
        known: UsageSpan | None = None
        for week in sorted(order, key=lambda week: abs(week[0] - order[0][0])):
            read = stretch(kept, *week)
            known = read if known is None else join_spans(known, read, kept)
        assert known is not None and sum_line_days(known, FIRST, FIRST + 20) == whole
        assert sum_line_days(known, FIRST + 3, FIRST + 5) == sum_line_days(cut_span(known, FIRST + 3, FIRST + 5), FIRST, FIRST + 20)


def test_what_is_read_next_lies_beside_what_is_known_and_is_a_week_at_most() -> None:
    known = stretch(UsageCache(), 10, 16)
    assert next_missing_week(None, 1, 28) == (1, 7)
    assert next_missing_week(None, 1, 3) == (1, 3)
    assert next_missing_week(known, FIRST, FIRST + 20) == (FIRST + 3, FIRST + 9)
    assert next_missing_week(known, FIRST + 8, FIRST + 20) == (FIRST + 8, FIRST + 9)
    assert next_missing_week(known, FIRST + 10, FIRST + 20) == (FIRST + 17, FIRST + 20)
    assert next_missing_week(known, FIRST + 11, FIRST + 16) is None


def test_days_that_may_change_are_believed_for_a_while_and_the_others_for_good() -> None:
    kept = UsageCache()
    kept.keep("me", 7, stretch(kept, 0, 9)._replace(settled=FIRST + 6, until=1000.0))
    assert kept.find("me", 8, 0.0) is None and kept.find("you", 7, 0.0) is None
    fresh, stale = kept.find("me", 7, 999.0), kept.find("me", 7, 1000.0)
    assert fresh is not None and stale is not None
    assert (fresh.last, stale.last, stale.until) == (FIRST + 9, FIRST + 6, 0.0)
    assert [day.day.toordinal() for day in span_days(stale, 0, FIRST + 99)] == list(range(FIRST, FIRST + 7))
    kept.keep("me", 9, stretch(kept, 5, 9)._replace(settled=FIRST + 4, until=1000.0))
    assert kept.find("me", 9, 1000.0) is None


def test_only_the_newest_days_are_kept() -> None:
    kept = UsageCache()
    kept.keep("me", 7, stretch(kept, 0, 99)._replace(settled=FIRST + 99, until=1000.0))
    found = kept.find("me", 7, 0.0)
    assert found is not None and (found.first, found.last) == (FIRST + 100 - USAGE_DAYS_LIMIT, FIRST + 99)


def test_figures_that_no_line_can_reach_are_cut_and_break_nothing() -> None:
    kept, told = UsageCache(), answer(0, quantity=2**53 - 1)
    found = sum_line_days(kept.pack(FIRST, FIRST, day_totals(told), day_places(told)), FIRST, FIRST)
    assert found.data_bytes == 2**54 - 2 and found.places[0].quantity == 2**54 - 2
    assert micro_euros(1e308) == micro_euros(1e12) < PACKED_FIGURE_LIMIT
    assert micro_euros(-1e308) > -PACKED_FIGURE_LIMIT and micro_euros(None) == 0


@pytest.mark.parametrize("day", ["", "yesterday", "2027-13-01", "2027"])
def test_a_day_that_is_none_is_the_charging_systems_failure(day: str) -> None:
    told: PeriodUsage = {"usages": [{"subsPeriodUsages": [{"day": day}]}]}
    for read in (day_totals, day_places):
        with pytest.raises(OcsError, match="cannot be read"):
            list(read(told))


def test_a_country_is_a_code_or_that_of_the_network() -> None:
    assert usage_country("no", 242, 1) == "NO"
    assert usage_country("<b>", 242, 1) == "NO"
    assert usage_country("", 242, 1) == "NO"
    assert usage_country("№1", 999, 1) == ""
