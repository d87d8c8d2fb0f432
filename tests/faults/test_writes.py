"""A write is sent once. Its caller learns an unknown outcome exactly when something may have happened, and a repeat sends nothing."""

from typing import Any

import httpx
import pytest

from tests.faults.inputs import UPSTREAM_OPERATIONS
from tests.faults.rows import ROWS, CallRow
from tests.faults.stage import FaultsStage, Ready
from tests.faults.test_reads import LIMIT_CODE, TIMEOUT, UNKNOWN, shown

WRITES = [(row, row.write, f"w{number}") for number, row in enumerate(ROWS) if row.write is not None]
UNSURE: dict[str, dict[str, Any]] = {
    "code 18 before the commit": {"code": TIMEOUT},
    "code 18 after the commit": {"code": TIMEOUT, "commit": True},
    "a delay beyond the limit": {"delay": 600.0},
    "dropped before the commit": {"drop_before": True},
    "dropped after the commit": {"drop_after": True},
    "an answer cut off": {"malformed": True},
    "an empty answer": {"empty": True},
    "status 401": {"status": 401},
    "status 500 before the commit": {"status": 500},
    "status 500 after the commit": {"status": 500, "commit": True},
    "status 502": {"status": 502, "commit": True},
}
REFUSED: dict[str, dict[str, Any]] = {
    "code 3 before the commit": {"code": 3},
    "code 3 after the commit": {"code": 3, "commit": True},
    "code 14 before the commit": {"code": 14},
    "code 14 after the commit": {"code": 14, "commit": True},
}


def named(faults: dict[str, dict[str, Any]]) -> pytest.MarkDecorator:
    """Each fault in a test of its own."""
    return pytest.mark.parametrize("fault", [pytest.param(fault, id=name) for name, fault in faults.items()])


async def strike(stage: FaultsStage, row: CallRow, method: str, key: str, fault: dict[str, Any]) -> tuple[Ready, httpx.Response]:
    """The call, whose write meets trouble."""
    ready = await stage.ready(row, key)
    stage.trouble(method, **fault)
    answer = await ready.send()
    assert stage.sent(ready).count(method) == 1, (row.name, answer.text)
    return ready, answer


async def repeated(stage: FaultsStage, row: CallRow, method: str, ready: Ready, first: httpx.Response) -> None:
    """The stored answer, byte for byte, and no second dispatch, also when the trouble is over."""
    for _ in range(2):
        stage.world.sandbox.faults.clear()
        again = await ready.send()
        assert (again.status_code, again.content) == (first.status_code, first.content), row.name
        assert again.headers["Idempotent-Replayed"] == "true"
        assert stage.sent(ready).count(method) == 1, row.name


@pytest.mark.long
@named(UNSURE)
async def test_an_outcome_that_nobody_knows_is_told_kept_and_never_tried_again(stage: FaultsStage, fault: dict[str, Any]) -> None:
    late = "delay" in fault or fault.get("code") == TIMEOUT
    for row, method, key in WRITES:
        ready, answer = await strike(stage, row, method, key, fault)
        assert shown(answer) == ((502, "ocs_timeout", TIMEOUT) if late else (502, "ocs_error", None)), (row.name, answer.text)
        assert answer.json()["error"].endswith(UNKNOWN), row.name
        assert (await stage.claims())[key] == "unknown", row.name
        await repeated(stage, row, method, ready, answer)
    assert set((await stage.claims()).values()) == {"unknown"}


@pytest.mark.long
@named(REFUSED)
async def test_a_refusal_of_the_network_is_the_key_s_answer(stage: FaultsStage, fault: dict[str, Any]) -> None:
    for row, method, key in WRITES:
        ready, answer = await strike(stage, row, method, key, fault)
        state = "issuance_failed" if row.operation == "issue_esim_from_inventory" else "conflict"
        told = (502, "ocs_error", 3) if fault["code"] == 3 else (409, state, 14)
        assert shown(answer) == told, (row.name, answer.text)
        assert UNKNOWN not in answer.text and "injected" not in answer.text, row.name
        assert (await stage.claims())[key] == "done", row.name
        await repeated(stage, row, method, ready, answer)


@pytest.mark.long
@named({"once": {"times": 1}, "for ever": {"times": None}})
async def test_the_traffic_limit_frees_the_key(stage: FaultsStage, fault: dict[str, Any]) -> None:
    for row, method, key in WRITES:
        ready, answer = await strike(stage, row, method, key, {"code": LIMIT_CODE, **fault})
        assert shown(answer) == (502, "ocs_error", LIMIT_CODE), (row.name, answer.text)
        assert int(answer.headers["Retry-After"]) >= 1 and UNKNOWN not in answer.text
        assert key not in await stage.claims(), row.name
        stage.world.sandbox.faults.clear()
        if not UPSTREAM_OPERATIONS.operations[row.operation].confirm:  # whose token was spent by the attempt
            assert (await ready.send()).status_code == UPSTREAM_OPERATIONS.operations[row.operation].status, row.name
            assert stage.sent(ready).count(method) == 2, row.name


@pytest.mark.long
async def test_a_burst_limit_frees_the_key(stage: FaultsStage) -> None:
    for row, method, key in WRITES:
        ready = await stage.ready(row, key)
        stage.trouble(method, burst=1, times=None)
        assert stage.world.sandbox.faults.take(method) is None  # the one call of this second that the limit lets through
        answer = await ready.send()
        assert shown(answer) == (502, "ocs_error", LIMIT_CODE), (row.name, answer.text)
        assert stage.sent(ready).count(method) == 1 and key not in await stage.claims(), row.name


@pytest.mark.long
async def test_an_answer_that_was_understood_is_a_success_and_is_not_sent_again(stage: FaultsStage) -> None:
    for row, method, key in WRITES:
        ready = await stage.ready(row, key)
        answer = await ready.send()
        assert answer.status_code == UPSTREAM_OPERATIONS.operations[row.operation].status, (row.name, answer.text)
        await repeated(stage, row, method, ready, answer)
    assert set((await stage.claims()).values()) == {"done"}
