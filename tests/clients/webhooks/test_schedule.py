"""When failed deliveries are tried again."""

from random import Random

import pytest

from clients.webhooks.sender import RETRY_DELAYS, next_retry_delay, retry_after_seconds

NOON = 1_800_014_400.0  # Fri, 15 Jan 2027 12:00:00 GMT


def middle() -> float:
    return 0.5


def test_ten_attempts_span_75_hours_35_minutes_5_seconds() -> None:
    delays = [next_retry_delay(made, middle) for made in range(10)]
    assert delays == list(RETRY_DELAYS)
    assert sum(RETRY_DELAYS) == 75 * 3600 + 35 * 60 + 5


def test_there_is_no_eleventh_attempt() -> None:
    assert next_retry_delay(10, middle) is None
    assert next_retry_delay(11, middle, retry_after=5.0) is None


def test_jitter_stays_within_a_fifth_and_uses_the_whole_band() -> None:
    drawn = [next_retry_delay(4, Random(seed).random) or 0.0 for seed in range(500)]
    assert 7200 * 0.8 <= min(drawn) < 7200 * 0.82
    assert 7200 * 1.18 < max(drawn) <= 7200 * 1.2


def test_retry_after_puts_an_attempt_off_but_never_brings_it_forward() -> None:
    assert next_retry_delay(1, middle, retry_after=60.0) == 60.0
    assert next_retry_delay(2, middle, retry_after=60.0) == 300.0


def test_retry_after_is_obeyed_for_a_day_at_most() -> None:
    assert next_retry_delay(1, middle, retry_after=1e9) == 24 * 3600


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("9" * 5000, 86400.0),
        ("Fri, 15 Jan 2027 12:02:00 GMT", 120.0),
        ("Fri, 15 Jan 2027 12:02:00 -0000", 120.0),
        ("Fri, 15 Jan 2037 12:00:00 GMT", 86400.0),
        ("Fri, 15 Jan 2027 11:59:00 GMT", None),
        ("-5", None),
        ("1.5", None),
        ("\u0661\u0662", None),
        ("soon", None),
        ("Fri, 99 Jan 2027 12:00:00 GMT", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOON) == seconds
