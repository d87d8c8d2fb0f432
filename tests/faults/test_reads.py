"""A read whose answer fails is asked once more; when that fails too the caller is told, and nothing was changed for it."""

from typing import Any

import httpx
import pytest

from tests.faults.inputs import UPSTREAM_OPERATIONS
from tests.faults.rows import ROWS, CallRow
from tests.faults.stage import FaultsStage, Ready

pytestmark = pytest.mark.long

UNKNOWN = "It may have been carried out all the same: read the state before you repeat it."
TIMEOUT, LIMIT_CODE = 18, 100
PASSING: dict[str, dict[str, Any]] = {
    "code 3": {"code": 3},
    "code 18": {"code": TIMEOUT},
    "code 18 after the commit": {"code": TIMEOUT, "commit": True},
    "code 100": {"code": LIMIT_CODE},
    "a delay beyond the limit": {"delay": 600.0},
    "dropped after the commit": {"drop_after": True},
    "dropped before the commit": {"drop_before": True},
    "an answer cut off": {"malformed": True},
    "an empty answer": {"empty": True},
    "status 401": {"status": 401},
    "status 500": {"status": 500},
    "status 502": {"status": 502},
}
FAULTS = pytest.mark.parametrize("name", PASSING)
CODES = {TIMEOUT: "ocs_timeout"}
OPTIONAL = {
    ("plan_network_default", "listSteeringList"): "the name of a list",
    ("push_steering_to_subscriber", "getResellerInfo"): "whose lists they are",
    ("push_steering_to_subscriber", "listSteeringList"): "the name of a list",
    ("list_location_zones", "listLocationZoneElement"): "unreadable for some zones: the list of all zones has the same",
}
"""Reads whose failure an answer can do without, and why."""
STATES = {"getSubscriberLocation"}
"""Where code 14 is an answer: nothing is known of the line."""
THOROUGH = ("code 3",)
"""Tried on every read of every operation; the others on each method in one operation."""


def expected(fault: dict[str, Any]) -> tuple[int, str, int | None]:
    """Status, code and the network's own code of a failure that lasts."""
    code: int | None = TIMEOUT if "delay" in fault else fault.get("code")
    return 502, CODES.get(code or 0, "ocs_error"), code


def shown(answer: httpx.Response) -> tuple[int, str, int | None]:
    body = answer.json()
    return answer.status_code, body.get("code"), body.get("ocs_code")


def pairs(name: str = THOROUGH[0]) -> list[tuple[CallRow, str, str]]:
    """The reads on which a fault is tried, and a key of its own for each call."""
    every = [(row, method, f"k{number}-{place}") for number, row in enumerate(ROWS) for place, method in enumerate(row.reads)]
    if name in THOROUGH:
        return every
    plainest = sorted(every, key=lambda each: (each[0].write is not None, len(each[0].uses)))
    chosen = {method: (row, method, key) for row, method, key in reversed(plainest)}
    # What is only handed on begins before its end is read: a cut there is no matter of a second try.
    streamed = [(row, row.uses[-1], key) for row, method, key in every if row.more == {"verbose": True} and method == row.uses[-1]]
    return [*chosen.values(), *(streamed if name != "an answer cut off" else [])]


@FAULTS
async def test_a_read_that_fails_once_is_asked_once_more_and_nobody_notices(stage: FaultsStage, name: str) -> None:
    for row, method, key in pairs(name):
        plain = await stage.ready(row, f"{key}-plain")
        assert (await plain.send()).status_code < 300, row.name
        calls = len(stage.sent(plain, method))
        ready = await stage.ready(row, key)
        stage.trouble(method, **PASSING[name])
        answer = await ready.send()
        assert answer.status_code == UPSTREAM_OPERATIONS.operations[row.operation].status, (row.name, method, answer.text)
        assert len(stage.sent(ready, method)) == calls + 1, (row.name, method)
        assert row.write is None or len(stage.sent(ready, row.write)) == 1, (row.name, method)


@FAULTS
@pytest.mark.rule("7.11")
async def test_a_read_that_goes_on_failing_is_asked_twice_and_told(stage: FaultsStage, name: str) -> None:
    for row, method, key in pairs(name):
        ready = await stage.ready(row, key)
        stage.trouble(method, **PASSING[name], times=None)
        answer = await ready.send()
        assert len(stage.sent(ready, method)) == 2, (row.name, method)
        if (row.operation, method) in OPTIONAL and answer.status_code == 200:
            continue
        assert shown(answer) == expected(PASSING[name]), (row.name, method, answer.text)
        await told_and_harmless(stage, row, method, answer)
        late = PASSING[name].get("code") == LIMIT_CODE or PASSING[name].get("status", 0) >= 500
        assert ("Retry-After" in answer.headers) == late
        if row.write is not None:
            await still_free(stage, row, ready)


async def still_free(stage: FaultsStage, row: CallRow, ready: Ready) -> None:
    """A call whose read failed has claimed no key: when the trouble is over it does its work."""
    stage.world.sandbox.faults.clear()
    again = await ready.send()
    assert again.status_code == UPSTREAM_OPERATIONS.operations[row.operation].status, (row.name, again.text)
    assert stage.sent(ready).count(str(row.write)) == 1, row.name


async def told_and_harmless(stage: FaultsStage, row: CallRow, method: str, answer: httpx.Response) -> None:
    """The refusal says nothing of the network's own words, and no write was sent or is held for unknown."""
    assert UNKNOWN not in answer.text and "injected fault" not in answer.text and "upstream trouble" not in answer.text, (row.name, method)
    assert row.write is None or row.write not in [call.method for call in stage.world.sandbox.calls[-2:]], (row.name, method)
    assert "unknown" not in (await stage.claims()).values(), (row.name, method)


@pytest.mark.rule("2.1.2")
@pytest.mark.rule("7.8")
@pytest.mark.parametrize("commit", [False, True], ids=["before the commit", "after the commit"])
@pytest.mark.rule("7.11")
async def test_a_refusal_is_not_asked_again(stage: FaultsStage, commit: bool) -> None:
    for row, method, key in pairs("code 14"):
        ready = await stage.ready(row, key)
        stage.trouble(method, code=14, commit=commit)
        answer = await ready.send()
        assert method in STATES or shown(answer) == (502, "ocs_error", 14), (row.name, method, answer.text)
        assert len(stage.sent(ready, method)) == 1, (row.name, method)
        await told_and_harmless(stage, row, method, answer)


async def test_a_burst_limit_is_waited_for_once_and_then_told(stage: FaultsStage) -> None:
    for row, method, key in pairs("burst"):
        ready = await stage.ready(row, key)
        stage.trouble(method, burst=1, times=None)
        assert stage.world.sandbox.faults.take(method) is None  # the one call of this second that the limit lets through
        answer = await ready.send()
        assert shown(answer) == (502, "ocs_error", LIMIT_CODE), (row.name, method, answer.text)
        assert int(answer.headers["Retry-After"]) >= 1 and len(stage.sent(ready, method)) == 2, (row.name, method)


async def test_a_read_after_a_write_that_fails_leaves_the_write_a_success(stage: FaultsStage) -> None:
    row = next(row for row in ROWS if row.operation == "reset_subscriber_gz_counter")
    for number, kind in enumerate(({"burst": 1}, {"burst": 1, "delay": 600.0}, {"burst": 1, "malformed": True})):
        ready = await stage.ready(row, f"k{number}")
        stage.trouble("getSingleSubscriber", **kind, times=None)  # the first is before the write
        answer = await ready.send()
        assert (answer.status_code, answer.json()) == (200, {"data": {"reset": True}})
        assert stage.sent(ready) == ["getSingleSubscriber", "resetSubsGzCounter", "getSingleSubscriber", "getSingleSubscriber"]
