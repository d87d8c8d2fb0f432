"""Whoever waits for a fleet sees how far it is: a client of MCP, and a person at a terminal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import at_terminal
from tests.harness.processes import running
from tests.intelligence_fleet.stage import FleetStage


async def test_a_model_is_told_of_every_fifty_lines(stage: FleetStage) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with stage.house.connect(stage.managed) as client:
        await client.call_tool("marketing_intelligence", {}, progress_callback=tell)
    assert told == [(done, 126, f"Read {done} of 126 lines") for done in (50, 100, 126)]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory with the data of a service that has run."""
    with running(tmp_path / "data", {}):
        yield tmp_path


def test_a_person_at_a_terminal_sees_it_on_one_line_that_goes(place: Path) -> None:
    code, shown = at_terminal("call", "marketing_intelligence", "--json", cwd=place)
    assert code == 0, shown
    assert "\r\x1b[K40 %  Read 50 of 126 lines" in shown
    assert "100 %  Read 126 of 126 lines\r\x1b[K{" in shown.replace("\n", "")
