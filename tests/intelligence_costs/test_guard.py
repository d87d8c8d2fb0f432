"""The high-cost ranking is a POST: whoever has a credential and asks otherwise is told so, whatever they ask."""

import pytest
from inline_snapshot import snapshot

from tests.intelligence_costs.stage import COSTS, CostsStage
from tests.registry.ledgers import used_by

QUERIES = ("", "?threshold=5", "?threshold=1&threshold=2", "?start=2027-01-01&end=2027-01-07", "?%ff=%ff", "?limit=x", "?" + "a=1&" * 200)


@pytest.mark.rule("7.6")
@pytest.mark.rule("4.7.30")
@pytest.mark.parametrize("query", QUERIES)
async def test_a_get_is_always_405(stage: CostsStage, query: str) -> None:
    for method in ("GET", "HEAD"):
        said = await stage.http.request(method, COSTS + query)
        assert (said.status_code, said.headers["allow"]) == (405, "POST")
    assert await stage.world.store.read(used_by, organisation=stage.who.organisation) == 0
    assert stage.asked("listSubscriber") == 0


async def test_the_refusal_says_what_to_do(stage: CostsStage) -> None:
    said = (await stage.http.get(COSTS + "?threshold=5")).json()
    assert {**said, "request_id": "*"} == snapshot(
        {
            "error": "The ranking is asked for with POST, and there is no threshold",
            "code": "method_not_allowed",
            "request_id": "*",
            "hint": "POST /v1/intelligence/high-cost-subscribers with start, end and, if you like, limit in the JSON body",
        }
    )


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
async def test_every_other_method_is_405_too(stage: CostsStage, method: str) -> None:
    said = await stage.http.request(method, COSTS + "?threshold=5")
    assert (said.status_code, said.headers["allow"]) == (405, "POST")
