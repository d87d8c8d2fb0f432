"""The table of operation by outcome: complete, true, and committed; what is in trouble upstream is the same at both doors.

UPDATE_SNAPSHOTS=1 python -m pytest tests/contract/test_outcomes.py writes docs/outcomes.md again.
"""

import pytest

from tests.contract.committed import hold
from tests.contract.outcomes import OUTCOMES_COMMAND, OUTCOMES_PAGE, SITUATIONS, committed_rows, outcomes_page, row
from tests.contract.stage import OPERATIONS, ServiceHouse
from tests.draw import drawn

SHARES = 4
"""All in one test would take longer on a busy machine than a test may."""


@pytest.mark.parametrize("share", range(SHARES))
async def test_the_committed_table_is_what_every_operation_answers_in_every_situation(house: ServiceHouse, share: int) -> None:
    rows, different = committed_rows(), list[str]()
    for operation in drawn(OPERATIONS, __file__)[share::SHARES]:
        cells = await row(house, operation)
        different += [f"{operation.id}: {name}" for name, found in cells.items() if not found.alike]
        rows[operation.id] = {name: found.text for name, found in cells.items()}
    assert different == []  # the doors disagree
    doors = {o.id: "HTTP, MCP" if o.tool else "HTTP" for o in OPERATIONS if o.id in rows}
    hold(OUTCOMES_PAGE, outcomes_page({id: rows[id] for id in doors}, doors), OUTCOMES_COMMAND)


def test_no_cell_of_the_table_is_empty_and_no_answer_is_a_fault_of_ours() -> None:
    lines = [line.split("|")[1:-1] for line in OUTCOMES_PAGE.read_text().splitlines() if line.startswith("| `")]
    assert [line[0].strip(" `") for line in lines] == [o.id for o in OPERATIONS]
    assert {len(line) for line in lines} == {2 + len(SITUATIONS)}
    cells = [text.strip() for line in lines for text in line]
    assert "" not in cells
    assert not [text for text in cells if text.startswith("500") or "internal" in text]
