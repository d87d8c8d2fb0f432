"""kill -9 at each of the seven named points, and what the next process makes of the key."""

from typing import Literal, NamedTuple

import pytest

from tests.harness.kill_points import Point
from tests.harness.tenant_stage import TenantStage
from tests.kill.campaign import CAMPAIGN_HELD_SECONDS, LEASE_OVER, Blow, finish_campaign, strike
from tests.kill.errands import INTENT, ISSUE_OPERATION, Callers, KilledErrand, intent_errand, inventory_errand
from tests.network_facts import DRAW


class Expected(NamedTuple):
    """What the key answers when the next process is asked, whether that is a replay, and what it answers for ever."""

    next: Literal["ok", "info"]
    replayed: bool
    last: Literal["ok", "fail"]
    dispatches: int


NEVER_SENT = Expected("ok", False, "ok", 1)
"""The key was free again, and issued once."""
SENT = Expected("info", True, "ok", 1)
POINTS: dict[str, Expected] = {
    "before claim": NEVER_SENT,
    "after claim": NEVER_SENT,
    "before send": Expected("info", True, "fail", 0),
    "after send": SENT,
    "after reply": SENT,
    "before save": SENT,
    "after save": Expected("ok", True, "ok", 1),
}


def blow_at(place: str, operation: str) -> Blow:
    if place == "after send":
        return Blow("after send")
    return Blow("point", Point(place, DRAW if place in ("before send", "after reply") else operation))


@pytest.mark.long
@pytest.mark.parametrize("stage", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
async def test_killed_at_a_named_point_the_key_is_free_or_unknown_or_answered_and_never_drawn_twice(stage: TenantStage) -> None:
    await through_all_points(stage, ISSUE_OPERATION)


@pytest.mark.long
@pytest.mark.parametrize("stage", ["sqlite"], indirect=True)
async def test_killed_at_a_named_point_a_live_intent_is_drawn_for_once_or_not_at_all(stage: TenantStage) -> None:
    await through_all_points(stage, INTENT)


async def through_all_points(stage: TenantStage, operation: str) -> None:
    """One key for each: killed there, asked again, and settled in the end."""
    network, servers, tenant = stage.network, stage.servers, stage.tenants[0]
    callers, errands, before = Callers(network), list[KilledErrand](), await network.count(DRAW)
    for place, expected in POINTS.items():
        blow = blow_at(place, operation)
        await servers.start(blow.point, settles=False)
        async with stage.client() as http:
            key = place.replace(" ", "-")
            errand = (
                inventory_errand(network, tenant, key) if operation == ISSUE_OPERATION else await intent_errand(http, network, tenant, key)
            )
            assert errand is not None
            errands.append(errand)
            if blow.kind == "after send":
                await network.meet(method=DRAW, delay=CAMPAIGN_HELD_SECONDS)
            await strike(stage, blow, [callers.issue(http, errand)])
            assert callers.history.records[-1].kind == "info", f"{place} was not reached"
        await network.advance(LEASE_OVER)
        await servers.start(settles=False)
        async with stage.client() as http:
            said = await callers.issue(http, errand)
        assert said is not None
        found = callers.history.records[-1].kind, "idempotent-replayed" in said.headers
        assert (place, *found) == (place, expected.next, expected.replayed), said.text
        await servers.kill()
    drawn = await network.count(DRAW)
    assert await finish_campaign(stage, callers, errands) == []
    assert [errand.decided for errand in errands] == [expected.last for expected in POINTS.values()]
    assert drawn == await network.count(DRAW) == before + sum(expected.dispatches for expected in POINTS.values())
