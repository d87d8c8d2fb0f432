"""Every composite is run over a network whose every text is a canary, and shared: none of them is heard outside."""

import html
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from operations.catalogue import CATALOGUE
from operations.intelligence.schedule_reports import SHEETS
from tests.reports.canaries import BIRD, plant, sandbox, sung
from tests.reports.paper import Paper
from tests.reports.press import Press, open_press

pytestmark = pytest.mark.long

EIGHT = [name for name, found in CATALOGUE.operations.items() if found.path.startswith("/v1/intelligence/") and found.operator]
SCHEDULED = [*EIGHT, "fleet_problems"]


class Aviary:
    """Somebody who shares reports of a network full of canaries, and the numbers that its people are known by."""

    def __init__(self, press: Press, numbers: set[str], iccid: str) -> None:
        self.press, self.numbers, self.iccid = press, numbers, iccid

    async def finding(self, composite: str) -> Any:
        inputs: dict[str, dict[str, str]] = {
            "diagnose_subscriber": {"iccid": self.iccid},
            "high_cost_subscribers": {"start": "2027-01-12", "end": "2027-01-14"},
        }
        asked = CATALOGUE.operations[composite]
        async with self.press.world.client(self.press.caller.secret) as http:
            answer = await http.request(asked.method, asked.path, json=inputs.get(composite, {}) if asked.method == "POST" else None)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture(scope="module")
async def aviary(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Aviary]:
    """For all composites: each reads the whole fleet, which is read once."""
    async with open_press(tmp_path_factory.mktemp("aviary"), catalogue=CATALOGUE, sandbox=sandbox()) as press:
        network = await press.world.network()
        numbers = plant(network)
        iccid = next(line.iccid for line in network.lines.values() if line.account_id == 8101 and line.status == "ACTIVE" and line.cdrs)
        async with press.world.client(press.caller.secret) as http:
            noted = await http.post(f"/v1/subscribers/{iccid}/notes", json={"note": f"{BIRD} owes us 50"})
        assert noted.status_code < 300, noted.text
        yield Aviary(press, numbers, iccid)


@pytest.mark.rule("4.7.50")
def test_every_composite_that_can_be_scheduled_has_a_sheet() -> None:
    assert sorted(SHEETS) == sorted(SCHEDULED) and len(EIGHT) == 8


@pytest.mark.parametrize("composite", SCHEDULED)
async def test_nothing_that_somebody_else_wrote_is_in_a_shared_report(aviary: Aviary, composite: str) -> None:
    found = await aviary.finding(composite)
    made = SHEETS[composite](found)
    link = await aviary.press.link(made, composite=composite, **{name: found[name] for name in ("generated_at", "method", "sampled", "of")})
    answer = await aviary.press.read(link)
    page = (await aviary.press.page(link)).text
    told = str(answer)
    assert aviary.press.world.faults == [], "a title, a label or a cell of a public kind is not what it should be"
    assert list(sung(told, aviary.numbers)) == []
    assert list(sung(html.unescape(page), aviary.numbers)) == []
    assert Paper(page).suspicious == []
    assert answer["sheet"]["figures"] and answer["method"] == found["method"]
    owners = str(made) + str(found)
    assert BIRD in owners or any(number in owners for number in aviary.numbers) or composite in NAMELESS, "nothing was there to be redacted"


NAMELESS = frozenset({"marketing_intelligence"})
"""Composites that name nobody to begin with."""
