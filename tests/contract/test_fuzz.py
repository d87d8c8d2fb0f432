"""Schemathesis against the whole application, in process: every check, no failure, no fault of ours. `python3 ./run fuzz` asks more."""

from pathlib import Path

from tests.contract.stage import OPERATIONS
from tests.fuzz.engine import ALLOWED, Plan, fuzz
from tests.fuzz.stand import Stand

EXAMPLES = 20


def test_no_generated_call_breaks_a_promise(tmp_path: Path) -> None:
    """Each operation is asked by itself; sequences of calls run by command."""
    verdict = fuzz(Stand(tmp_path), Plan(EXAMPLES))
    found = sorted(set(verdict.failures))
    assert not found, f"{len(found)} failures\n\n" + "\n\n".join(found)
    assert {status for status in verdict.statuses if status >= 500} <= ALLOWED
    assert sum(verdict.statuses.values()) > 20 * len(OPERATIONS), verdict.statuses
    assert len(verdict.labels) >= len(OPERATIONS)
    assert set(verdict.checks) >= {"ignored_auth", "not_a_server_error", "response_schema_conformance", "status_code_conformance"}
