"""`python -m benchmarks.signals`: microseconds that a call pays for what is counted of it, beside the library's own histogram.

The sum is of a call over HTTP that reads the database once and asks an outside system once: 3 microseconds at most.
"""

import argparse
import sys
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Histogram

from clients.outside_system import OutsideSystem
from operations.catalogue import CATALOGUE
from registry.call import Call, Reply
from registry.clock import SystemClock
from registry.signals import ANSWER_BOUNDS, CallSignals
from storage.engine.database_signals import DatabaseSignals
from transports.logs import RequestLine
from transports.signals import HttpSignals

BUDGET = 3.0
LABELS = ("operation", "door", "outcome")


class Cost(NamedTuple):
    """What one of them costs. `of_call`: how often a call pays it; 0 for what stands there to be compared with."""

    name: str
    microseconds: float
    of_call: int


def nothing() -> None:
    """What is measured is called in the same way."""


def seconds_of(work: Callable[[], object], times: int) -> float:
    """Of one round."""
    began = perf_counter()
    for _ in range(times):
        work()
    return perf_counter() - began


def best(work: Callable[[], object], times: int, rounds: int = 100) -> float:
    """Microseconds of one. Of many short rounds the one that was disturbed least, less that of a loop that calls nothing of use."""
    least = min(seconds_of(work, times) for _ in range(rounds))
    return (least - min(seconds_of(nothing, times) for _ in range(rounds))) / times * 1e6


def costs(times: int) -> list[Cost]:
    """All of them."""
    clock, calls, requests, database = SystemClock(), CallSignals(), HttpSignals(), DatabaseSignals()
    system = OutsideSystem("charging_system", clock)
    operation = next(iter(CATALOGUE.operations.values()))
    call, reply = Call(operation, "http", "req_1"), Reply(200, b"")
    line = RequestLine(0.0, "req_1", "GET", operation.path, operation.id, 200, 3.0, "http", "org_1", "")
    library = Histogram("seconds", "Seconds", LABELS, buckets=ANSWER_BOUNDS, registry=CollectorRegistry())
    found_before = library.labels(operation.id, "http", "ok")
    began = clock.monotonic()
    of_call: dict[str, tuple[Callable[[], object], int]] = {
        "a call, with both looks at the clock": (lambda: calls.answered(call, reply, clock.monotonic() - clock.monotonic()), 1),
        "its HTTP request": (lambda: requests.answered(line), 1),
        "a read of the database, with both looks": (lambda: database.called("read", clock.monotonic()), 1),
        "a call to an outside system": (lambda: system.observe("getSubscriber", "ok", began=began, placed=began), 1),
        "prometheus_client: labels(...).observe(...)": (lambda: library.labels(operation.id, "http", "ok").observe(0.003), 0),
        "prometheus_client: observe(...), labels looked up before": (lambda: found_before.observe(0.003), 0),
    }
    return [Cost(name, best(work, times), share) for name, (work, share) in of_call.items()]


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.signals", description="What it costs to count a call.")
    parser.add_argument("--times", type=int, default=2_000, help="how often each is done in a round")
    found = costs(parser.parse_args(arguments).times)
    for name, microseconds, _ in found:
        print(f"{microseconds:6.2f} us  {name}")
    total = sum(cost.microseconds * cost.of_call for cost in found)
    print(f"{total:6.2f} us  a call with all of these; the budget is {BUDGET:g}")


if __name__ == "__main__":
    main(sys.argv[1:])
