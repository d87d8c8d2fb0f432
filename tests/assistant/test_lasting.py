"""A chat lasts for minutes: each call in it is made by whoever began it, as they are at that moment."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from registry.caller import Caller, Restrictions, Tier
from registry.ports import SessionClaims
from simulators.model.server import ModelRequest, ModelTurn, ToolUse
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from storage.access_grants import AccessGrant, insert_grant, revoke_grant
from storage.directory import StoreDirectory
from storage.upstream_connections import set_connection
from tests.assistant.stage import AssistantStage, open_assistant_stage, spoken
from tests.world import NOON

Change = Callable[[AssistantStage], Awaitable[object]]


async def nothing(stage: AssistantStage) -> None:
    del stage


async def revoke(stage: AssistantStage) -> None:
    await stage.world.revoke(stage.me)


async def leave(stage: AssistantStage) -> None:
    await stage.world.leave(stage.me.person, stage.me.organisation)


async def take_a_smaller_tier(stage: AssistantStage) -> None:
    await stage.world.move_to(Tier.PRO, stage.me.organisation)


async def disconnect(stage: AssistantStage) -> None:
    await stage.world.store.write(set_connection, organisation=stage.me.organisation, mode=None, account_id=None, own_token=None)


def looking_twice(heard: ModelRequest) -> ModelTurn:
    """One look, two others, and what came of each."""
    if heard.results:
        uses = () if len(heard.results) == 3 else (ToolUse("list_subscribers", {"limit": 1}), ToolUse("operator_billing_list_fees"))
        return ModelTurn(" ".join(str(found["status"]) for found in heard.results) if not uses else "", uses)
    return ModelTurn(uses=(ToolUse("list_reseller_accounts"),))


@pytest.mark.cases
@pytest.mark.parametrize(
    ("change", "statuses"),
    [
        (nothing, "200 200 200"),
        (revoke, "200 401 401"),
        (leave, "200 401 401"),
        (take_a_smaller_tier, "200 200 402"),
        (disconnect, "200 409 200"),
    ],
)
async def test_what_ends_or_changes_in_the_middle_of_a_chat_holds_from_its_next_call_on(
    tmp_path: Path, change: Change, statuses: str
) -> None:
    begun: list[AssistantStage] = []

    async def meanwhile(seconds: float) -> None:
        del seconds
        if begun:
            await change(begun.pop())

    sandbox = SimulatedNetwork(build_world(1, int(NOON), history_days=0), wall=lambda: NOON, sleep=meanwhile)
    async with open_assistant_stage(tmp_path, sandbox=sandbox) as stage:
        await sandbox.handle("POST", "/control/faults", body=json.dumps({"method": "*", "delay": 1}).encode())
        stage.follow(looking_twice)
        begun.append(stage)
        assert spoken(await stage.chat("Well?")) == statuses
        assert not begun


async def test_whoever_is_looked_up_again_is_the_same_caller_until_their_login_or_membership_ends(stage: AssistantStage) -> None:
    world, me, now = stage.world, stage.me, stage.world.clock.now()
    _, read_only = await world.key(me.person, me.organisation, restrictions=Restrictions(read_only=True, calls_per_day=5))
    grant = AccessGrant("gnt_1", me.person, me.organisation, "client", "A program", "read", "", now, now + 600)
    await world.store.write(insert_grant, grant)
    directory = StoreDirectory(world.store)
    login = await directory.by_session(SessionClaims(me.person, None, grant.id), now)
    callers = [login, await directory.by_key(read_only, now), await directory.signed_in(me.person, me.organisation)]
    assert [await directory.again(required(caller), now) for caller in callers] == callers
    assert await directory.again(required(login), now + 600) is None
    await world.store.write(revoke_grant, grant=grant.id, now=now)
    assert [await directory.again(required(caller), now) for caller in callers] == [None, *callers[1:]]
    await world.leave(me.person, me.organisation)
    assert [await directory.again(required(caller), now) for caller in callers] == [None, None, None]


def required(caller: Caller | None) -> Caller:
    assert caller is not None
    return caller
