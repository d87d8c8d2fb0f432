"""The section on one server and two, of samples made up."""

from benchmarks.names import ONE_SERVER, TWO_SERVERS
from benchmarks.scale_page import aims, section
from benchmarks.tables import Row


def made_up(dearer: float, *, waiting: float = 0.0, sessions: int = 50) -> list[Row]:
    """Two rounds at 16 connections."""
    shared = {"connections": 16, "requests": 1000, "errors": 0, "seconds": 1.5, "p99_ms": 9.0}
    costs = {ONE_SERVER: 200.0, TWO_SERVERS: 200.0 * dearer}
    return [
        shared | {"case": case, "contestant": name, "round": number, "cpu_us": cost, "waiting": waiting, "sessions": sessions}
        for case in ("GET", "POST")
        for number in range(2)
        for name, cost in costs.items()
    ]


def test_a_call_that_is_no_dearer_at_two_servers_meets_every_aim() -> None:
    assert [(aim.reached, aim.met) for aim in aims(made_up(1.05))] == [("1.05", True), ("1.05", True), ("0.0%", True), ("50", True)]
    assert "| POST of an intent, c=16 | 200 / 210 | **1.05** (1.05 - 1.05) | 9.0 / 9.0 | 0.000 / 0.000 | 50 / 50 | 0 |" in section(
        made_up(1.05)
    )


def test_dearer_calls_waits_for_locks_and_too_many_sessions_miss_theirs() -> None:
    missed = aims(made_up(1.25, waiting=0.02, sessions=53))
    assert [(aim.reached, aim.met) for aim in missed] == [("1.25", False), ("1.25", False), ("2.0%", False), ("53", False)]
