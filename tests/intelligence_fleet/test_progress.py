"""Whoever waits for a fleet sees how far it is: a client of MCP, and a person at a terminal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import at_terminal
from tests.harness.processes import running
from tests.intelligence_fleet.stage import FleetStage


@pytest.mark.long
async def test_a_model_is_told_how_far_a_first_look_has_come(few: FleetStage) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with few.house.connect(few.managed) as client:
        await client.call_tool("marketing_intelligence", {}, progress_callback=tell)
    done = [(progress, message) for progress, total, message in told if total == 23]
    assert len(done) == len(told)
    assert (23, "Read 23 of 23 lines") in done


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory with the data of a service that has run."""
    with running(tmp_path / "data", {}):
        yield tmp_path


@pytest.mark.long
def test_a_person_at_a_terminal_sees_it_on_one_line_that_goes(place: Path) -> None:
    code, shown = at_terminal("call", "marketing_intelligence", "--json", cwd=place)
    assert code == 0, shown
    assert "\r\x1b[K100 %  Read 140 of 140 lines" in shown
    assert " of 140 lines\r\x1b[K{" in shown.replace("\n", "")
