"""The measurement of the log of events compares like with like, and its page says what was reached."""

import json
from pathlib import Path

import pytest

from benchmarks.event_pages import DAYS, TIMES, place_id, questions
from benchmarks.event_work import WRITES, globs, of_postgres, traced
from benchmarks.events_page import aims, among, name_of, section
from benchmarks.names import BEFORE_LOG, POSTGRES, SQLITE, WITH_LOG
from benchmarks.tables import Row
from operations.event_types.catalogue import EVENT_TYPES, MOST_PATTERNS, types_of_patterns, unknown_patterns
from storage.engine.store import open_store


def both(row: Row, ours: Row, theirs: Row) -> list[Row]:
    """Two rounds of the same."""
    pair = ((WITH_LOG, ours), (BEFORE_LOG, theirs))
    return [{**row, "load": 0.5, "round": number, "contestant": name, **figures} for number in range(2) for name, figures in pair]


def made_up() -> dict[str, object]:
    """What costs 20 microseconds more, and makes calls three quarters as fast."""
    cpu = {"server_cpu_us": 0.0, "us": 100.0}
    calls = {"errors": 0, "seconds": 1.0, "cpu_us": 500.0, "worker_cpu_us": 0.0, "p50_ms": 2.0, "p99_ms": 9.0}
    trips = {"without an event": (1, 3), "with one": (2, 3), "an old event": (4, 6)}
    cost = both({"engine": SQLITE, "batch": 1}, {"cpu_us": 60.0, **cpu}, {"cpu_us": 40.0, **cpu})
    posts = both({"engine": SQLITE, "case": "order", "connections": 16, **calls}, {"requests": 750}, {"requests": 1000})
    webhooks = both({"engine": SQLITE, "connections": 50, "seconds": 1.0, "cpu_us": 300.0}, {"requests": 1010}, {"requests": 1000})
    page = {"engine": SQLITE, "events": 1_000_000, "load": 0.4}
    rows: dict[str, list[Row]] = {
        "cost": cost,
        "messages": [
            {"engine": POSTGRES, "case": case, "statements": statements, "round_trips": each} for case, (statements, each) in trips.items()
        ],
        "places": [{"engine": SQLITE, "case": case, "cpu_us": 30.0, "load": 0.2} for case in ("many", "alone")],
        "matching": [{"us": 12.0, "first_us": 800.0, "load": 0.2}],
        "posts": posts,
        "webhooks": webhooks,
        "stream": [{"engine": SQLITE, "count": 4800, "p50_ms": 250.0, "p99_ms": 480.0, "most_ms": 600.0, "load": 0.3}],
        "pages": [{**page, "case": case, "p50_ms": 2.0, "p99_ms": p99, "most_ms": 31.0} for case, p99 in (("short", 3.0), ("long", 30.0))],
    }
    return {name_of(part): {"facts": {}, "rows": of_part} for part, of_part in rows.items()}


def test_the_page_says_what_was_reached_and_what_was_missed() -> None:
    found = among({"get": {}, **made_up()})
    assert [(aim.reached, aim.met) for aim in aims(found)] == [
        ("20 us", False),
        ("1", True),
        ("0", True),
        ("12.0 us", True),
        ("0.75", False),
        ("1.01", True),
        ("480 ms", True),
        ("30.0 ms", False),
    ]
    assert aims(found)[-1].text.endswith("SQLite; the worst: long")
    page = section(found)
    assert "| SQLite | order | c=16 | **0.75** (0.75 - 0.75) | 750 / 1000 |" in page
    assert "1,000,000 events of ninety days" in page


def test_endpoints_have_forty_globs_each_that_stand_for_types_and_no_two_the_same() -> None:
    chosen = [json.loads(globs(number, list(EVENT_TYPES))) for number in range(16)]
    assert {len(each) for each in chosen} == {MOST_PATTERNS}
    assert all(unknown_patterns(each) == [] for each in chosen)
    assert len({types_of_patterns(tuple(each)) for each in chosen}) == 16


def test_places_in_the_log_are_in_the_order_of_time_and_every_question_has_one() -> None:
    rows = 1000
    ids = [place_id("evt_", share / 10, rows) for share in range(10)]
    assert ids == sorted(set(ids))
    assert all(one[4:14] in TIMES for one in ids)
    assert len(TIMES) == 10 * (DAYS + 1)
    assert all(question.request(0.5).path for question in questions("ak_x", rows))


def test_round_trips_are_turns_from_asking_to_hearing_until_the_next_transaction_begins() -> None:
    begin = ['F\t20\tQuery\t "BEGIN"', 'B\t10\tCommandComplete\t "BEGIN"']
    asked = ["F\t10\tParse", "F\t10\tBind", "F\t10\tExecute", "F\t4\tSync"]
    heard = ["B\t4\tBindComplete", 'B\t11\tCommandComplete\t "UPDATE 1"']
    ended = ['B\t11\tCommandComplete\t "COMMIT"', "B\t5\tReadyForQuery\t I"]
    told = [*begin, *asked, *heard, *asked, *ended, "F\t4\tSync", ended[1], *begin]
    assert of_postgres([f"2026-11-27 10:00:00.000000\t{line}" for line in told]) == (3, 4)


@pytest.mark.long
@pytest.mark.postgres
async def test_an_event_adds_a_statement_to_its_transaction_and_no_round_trip(postgres: str, tmp_path: Path) -> None:
    store = open_store(postgres, pool=1)
    try:
        without, told = [await traced(store, WRITES[case], tmp_path) for case in ("without an event", "with one")]
    finally:
        await store.aclose()
    assert told == (without.statements + 1, without.round_trips)
