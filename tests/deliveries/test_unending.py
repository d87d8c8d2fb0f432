"""What runs beside the calls begins again after a fault, which is told without values of rows."""

import pytest

from transports.worker import chores
from transports.worker.chores import keep_running


async def test_what_fails_begins_again_and_says_so_and_what_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chores, "RESTART_SECONDS", 0.0)
    faults: list[Exception] = [ValueError("no such row"), ExceptionGroup("two", [KeyError("one"), OSError("another")])]
    told = list[str]()

    async def work() -> None:
        if faults:
            raise faults.pop(0)

    await keep_running("the worker", work, told.append)
    assert told == [
        "the worker failed and begins again: ValueError: no such row",
        "the worker failed and begins again: KeyError: 'one', OSError: another",
    ]
