"""The section on endurance, of samples made up."""

from typing import Any

from benchmarks.endurance_page import aims, among, judgement, section

FACTS: dict[str, Any] = {
    "engine": "sqlite",
    "seed": 1,
    "seconds": 1800.2,
    "capacity": 400.0,
    "rate": 280.0,
    "busy": 0.734,
    "faults_outside": 600,
    "unspecified": {},
    "closed_when_used_again": 0,
    "broken": [],
    "complaints": [],
}
MEMORY: dict[str, Any] = {
    "row": "memory",
    "process": "server",
    "first_mb": 180.0,
    "last_mb": 181.5,
    "mb_per_hour": 4.2,
    "resident_first_mb": 300.0,
    "resident_last_mb": 402.0,
    "samples": 700,
    "course_mb": [179.2, 180.4, 181.5],
    "flat": True,
}
ROWS: list[dict[str, Any]] = [
    MEMORY,
    {"row": "kind", "kind": "GET intent", "calls": 140_000, "p50_ms": 3.1, "p99_ms": 22.0},
    *({"row": "kind", "kind": f"POST {what}", "calls": 9_000, "p50_ms": 6.1, "p99_ms": 149.0} for what in ("intent", "invoice", "records")),
    {"row": "status", "kind": "GET intent", "status": 200, "code": "", "count": 140_000},
    {"row": "status", "kind": "GET line", "status": 502, "code": "ocs_error", "count": 70},
    {"row": "minute", "minute": 0, "calls": 16_800, "p50_ms": 3.2, "p99_ms": 25.0},
]
RUN = {"date": "2026-11-22", "machine": "2 x a processor", "revision": "0123abc"}


def test_what_did_not_hold_is_named_and_specified_answers_are_no_fault() -> None:
    assert judgement(FACTS, ROWS) == []
    grown = {**MEMORY, "last_mb": 240.0, "flat": False}
    wrong = {**FACTS, "broken": ["a key drew twice"], "unspecified": {"GET line 500 internal": 3}, "complaints": ["server: Traceback"]}
    assert judgement(wrong, [grown]) == [
        "a key drew twice",
        "3 x GET line 500 internal: not a specified answer",
        "memory of server: 180.0 MB in the first third, 240.0 MB in the last",
        "server: Traceback",
    ]


def test_the_section_shows_memory_times_and_refusals() -> None:
    samples = {"get": {}, "endurance-sqlite": {"run": RUN, "facts": FACTS, "rows": ROWS}}
    page = section(among(samples))
    assert "30 minutes at 280 of 400 calls per second, seed 1, 2026-11-22" in page
    assert "140,070 calls, 600 faults outside; all held. The capacity includes all that calls leave to later;" in page
    assert "the processors worked 73% of the time." in page
    assert "| server | 180.0 | 181.5 | +4.20 | yes | 300 / 402 | 179 180 182 |" in page
    assert "| GET intent | 140,000 | 3.1 | 22.0 |" in page
    assert "| GET line | 502 | ocs_error | 70 |" in page
    assert "| GET intent | 200 |" not in page


def test_what_is_too_slow_or_refused_for_the_crowd_is_an_aim_that_is_missed() -> None:
    slow = [{**row, "p99_ms": 31.0} if row.get("kind") == "GET intent" else row for row in ROWS]
    refused = {"row": "status", "kind": "GET plans", "status": 503, "code": "overloaded", "count": 2}
    found = aims({"endurance-sqlite": {"facts": FACTS, "rows": [*slow, refused]}})
    assert [(aim.text, aim.reached) for aim in found if not aim.met] == [
        ("GET intent, p99, under the load of endurance, SQLite", "31 ms"),
        ("Calls refused as `overloaded` under the load of endurance, SQLite", "2"),
    ]
    assert all(aim.met for aim in aims({"endurance-sqlite": {"facts": FACTS, "rows": ROWS}}))
