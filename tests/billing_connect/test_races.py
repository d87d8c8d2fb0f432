"""Who gets what when several come at once, and what the processor's events bring, on both databases."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from storage.connect_accounts import find_connect_account
from tests.billing_connect.asking import (
    BILLING_PATH,
    call_connect,
    connected_accounts,
    consented,
    finish_onboarding,
    member_session,
    own_account,
    person,
)
from tests.contract.stage import ServiceHouse, StubProvider
from tests.world import open_world

BEGIN, COMPLETE = f"{BILLING_PATH}/connect/oauth/begin", f"{BILLING_PATH}/connect/oauth/complete"
MANY = 32


@pytest.fixture
async def house(tmp_path: Path, database_url: str | None) -> AsyncGenerator[ServiceHouse]:
    async with open_world(tmp_path, CATALOGUE, url=database_url, limits=Limits(burst_enabled=False), sessions=StubProvider()) as world:
        yield ServiceHouse(world)
        assert world.faults == []


async def account_of(house: ServiceHouse, organisation: str) -> str | None:
    found = await house.world.store.read(find_connect_account, organisation=organisation)
    return None if found is None else found.account


@pytest.mark.long
@pytest.mark.rule("4.4.41")
async def test_many_who_begin_at_once_make_one_account(house: ServiceHouse) -> None:
    session, organisation = await person(house)
    said = await asyncio.gather(*(call_connect(house, session, "POST", f"{BILLING_PATH}/connect/begin", {}) for _ in range(MANY)))
    assert [status for status, _ in said] == [200] * MANY
    (account,) = await connected_accounts(house)
    assert {body["account_id"] for _, body in said} == {account.id, await account_of(house, organisation)}


async def test_an_account_that_many_organisations_bring_at_once_is_one_s(house: ServiceHouse) -> None:
    callers = [await house.world.caller() for _ in range(8)]
    account = await own_account(house)

    async def complete(secret: str, code: str, state: str) -> int:
        return (await call_connect(house, secret, "POST", COMPLETE, {"code": code, "state": state}))[0]

    given = [
        (caller.secret, await consented(house, account), (await call_connect(house, caller.secret, "POST", BEGIN, {}))[1]["state"])
        for caller in callers
    ]
    assert sorted(await asyncio.gather(*(complete(*each) for each in given))) == [200] + [409] * 7
    assert [await account_of(house, caller.organisation) for caller in callers].count(account) == 1


async def test_of_two_accounts_that_an_organisation_gets_at_once_it_has_one(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    session = await member_session(house, caller)
    own = await own_account(house)
    state = (await call_connect(house, caller.secret, "POST", BEGIN, {}))[1]["state"]
    given = {"code": await consented(house, own), "state": state}
    begun, completed = await asyncio.gather(
        call_connect(house, session, "POST", f"{BILLING_PATH}/connect/begin", {}),
        call_connect(house, caller.secret, "POST", COMPLETE, given),
    )
    kept = await account_of(house, caller.organisation)
    assert kept is not None
    told = {body["account_id"] for status, body in (begun, completed) if status == 200}
    assert kept in told
    # Whoever began first was told of an account that gave way at once, since nobody had finished it.
    assert completed[0] in (200, 409) and (completed[0] == 409 or kept == own)


async def test_a_state_is_used_once_by_many_at_once(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    state = (await call_connect(house, caller.secret, "POST", BEGIN, {}))[1]["state"]
    given = {"code": await consented(house, await own_account(house)), "state": state}
    said = await asyncio.gather(*(call_connect(house, caller.secret, "POST", COMPLETE, given) for _ in range(16)))
    assert sorted(status for status, _ in said) == [200] + [400] * 15


async def test_a_code_is_made_once_by_many_at_once(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    await house.world.connect_payments(caller)
    given = {"code": "SPRING-15", "percent_off": 15}
    said = await asyncio.gather(*(call_connect(house, caller.secret, "POST", f"{BILLING_PATH}/promotions", given) for _ in range(16)))
    assert sorted(status for status, _ in said) == [201] + [409] * 15
    assert len((await call_connect(house, caller.secret, "GET", f"{BILLING_PATH}/promotions"))[1]["data"]) == 1


async def test_an_event_tells_of_an_account_before_anybody_asks(house: ServiceHouse) -> None:
    from simulators.processor.onboarding import release_account, restrict_account

    session, organisation = await person(house)
    account = (await call_connect(house, session, "POST", f"{BILLING_PATH}/connect/begin", {}))[1]["account_id"]
    seen: list[str | None] = []

    async def told() -> None:
        await house.world.settle_payments()
        found = await house.world.store.read(find_connect_account, organisation=organisation)
        seen.append(None if found is None else found.status)

    await told()
    await finish_onboarding(house, account)
    await told()
    house.world.clock.advance(1)
    for happens in (restrict_account, release_account):
        async with house.world.payments.turn(writes=True) as state:
            happens(state, account)
        await told()
    assert seen == ["pending", "active", "pending", None]
