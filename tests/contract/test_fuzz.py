"""Schemathesis against the whole application, in process: every check, no failure, no fault of ours. `python3 ./run fuzz` asks more."""

from pathlib import Path

import pytest

from tests.contract.stage import OPERATIONS
from tests.fuzz.app_under_test import AppUnderTest
from tests.fuzz.engine import ALLOWED, FuzzPlan, fuzz

EXAMPLES = 20
SHARES = 4
"""So many tests: each is done in a fraction of the time that one test may take on a busy machine."""


@pytest.mark.parametrize("share", range(SHARES))
def test_no_generated_call_breaks_a_promise(tmp_path: Path, share: int) -> None:
    """Each operation is asked by itself; sequences of calls run by command."""
    asked = frozenset(sorted(operation.id for operation in OPERATIONS)[share::SHARES])
    verdict = fuzz(AppUnderTest(tmp_path), FuzzPlan(EXAMPLES, only=asked))
    found = sorted(set(verdict.failures))
    assert not found, f"{len(found)} failures\n\n" + "\n\n".join(found)
    assert {status for status in verdict.statuses if status >= 500} <= ALLOWED
    assert sum(verdict.statuses.values()) > 20 * len(asked), verdict.statuses
    assert len(verdict.labels) == len(asked)
    assert set(verdict.checks) >= {"ignored_auth", "not_a_server_error", "response_schema_conformance", "status_code_conformance"}
