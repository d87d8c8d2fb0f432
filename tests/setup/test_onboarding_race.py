"""Organisations that want one account at the same moment, on both databases: one gets it."""

import anyio

from operations.catalogue import CATALOGUE
from storage.organisations import list_organisations
from storage.upstream_connections import assign_account
from tests.contract.stage import ServiceHouse
from tests.setup.newcomer import settle_in
from tests.stage import opened_on_both
from tests.world import Credentials, World, open_world

RIVALS = 4


world = opened_on_both(open_world, CATALOGUE, faultless=True)


async def rush(world: World, rivals: list[Credentials]) -> list[str | None]:
    """All at once; what each is told."""
    reasons: list[str | None] = []

    async def ask(rival: Credentials) -> None:
        async with world.client(rival.secret) as http:
            answer = await http.post("/v1/onboarding/managed-account", json={})
        assert answer.status_code == 200, answer.text
        reasons.append(answer.json()["pending_reason"])

    async with anyio.create_task_group() as group:
        for rival in rivals:
            group.start_soon(ask, rival)
    return sorted(reasons, key=str)


async def connected(world: World) -> list[int]:
    """The accounts of all organisations, however many have each."""
    return sorted(row.account_id for row in await world.store.read(list_organisations) if row.account_id is not None)


async def test_an_account_with_the_names_of_all_goes_to_one(world: World) -> None:
    for account in (8102, 8103, 8104):
        rivals = [await world.caller() for _ in range(RIVALS)]
        network = await world.network()
        network.accounts[account].name = " ".join(rival.organisation for rival in rivals)
        assert await rush(world, rivals) == [None, *["account_conflict"] * (RIVALS - 1)]
    assert await connected(world) == [8102, 8103, 8104]


async def test_spare_accounts_go_to_one_each(world: World) -> None:
    settle_in(ServiceHouse(world), spare_accounts=(8102, 8103, 8104))
    rivals = [await world.caller() for _ in range(RIVALS)]
    assert await rush(world, rivals) == [None, None, None, "account_absent"]
    assert await connected(world) == [8102, 8103, 8104]


async def test_an_account_that_is_assigned_at_this_moment_goes_to_one(world: World) -> None:
    for account in (8102, 8103, 8104):
        rivals = [await world.caller() for _ in range(2)]
        network = await world.network()
        network.accounts[account].name = rivals[0].organisation
        given: list[object] = []

        async def assign(to: str, account: int, given: list[object]) -> None:
            given.append(await world.store.write(assign_account, organisation=to, account_id=account))

        async with anyio.create_task_group() as group:
            group.start_soon(rush, world, rivals[:1])
            group.start_soon(assign, rivals[1].organisation, account, given)
        rows = {row.id: row for row in await world.store.read(list_organisations)}
        taken = rows[rivals[0].organisation].account_id == account
        assert taken is (given[0] != "assigned") and (rows[rivals[1].organisation].assigned_account_id == account) is not taken
