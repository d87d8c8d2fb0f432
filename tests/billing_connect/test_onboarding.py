"""POST .../connect/begin, under both of its paths: one Express account, and a fresh link each time."""

import asyncio
from typing import Any

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from storage.access_grants import AccessGrant, insert_grant
from storage.connect_accounts import attach_connect_account, find_connect_account
from tests.billing_connect.asking import (
    BILLING_PATH,
    brought,
    call_connect,
    connected_accounts,
    let_go,
    member_session,
    onboarded,
    person,
    trouble,
)
from tests.contract.stage import ServiceHouse
from tests.stage import without_request_id

PATHS = ("/v1/invoices/payments/connect/begin", f"{BILLING_PATH}/connect/begin")


@pytest.mark.rule("4.4.40")
@pytest.mark.parametrize("path", PATHS)
async def test_the_first_call_makes_an_express_account_and_links_to_its_pages(house: ServiceHouse, path: str) -> None:
    session, organisation = await person(house)
    status, body = await call_connect(house, session, "POST", path, {"country": "NO"})
    (account,) = await connected_accounts(house)
    assert (account.kind, account.country, account.metadata) == ("express", "NO", {"organisation": organisation})
    assert body["url"].startswith("https://reseller.test/sandbox/payments/")
    assert (status, {**body, "url": "", "account_id": ""}) == snapshot(
        (200, {"url": "", "account_id": "", "expires_at": 1800014700, "status": "pending"})
    )
    assert body["account_id"] == account.id
    found = await house.world.store.read(find_connect_account, organisation=organisation)
    assert found == (organisation, account.id, "express", "pending", 0)


@pytest.mark.rule("4.4.41")
@pytest.mark.rule("4.5.52")
async def test_later_calls_give_fresh_links_to_the_same_account(house: ServiceHouse) -> None:
    session, _ = await person(house)
    said = [await call_connect(house, session, "POST", path, {}) for path in PATHS * 2]
    assert [status for status, _ in said] == [200] * 4
    assert len({body["account_id"] for _, body in said}) == 1 and len({body["url"] for _, body in said}) == 4
    assert len(await connected_accounts(house)) == 1


@pytest.mark.long
async def test_many_who_begin_at_once_in_different_countries_make_one_account(house: ServiceHouse) -> None:
    session, _ = await person(house, Tier.ENTERPRISE)
    said = await asyncio.gather(*(call_connect(house, session, "POST", PATHS[0], {"country": ("NO", "DE")[n % 2]}) for n in range(8)))
    assert len(await connected_accounts(house)) == 1
    assert {status for status, _ in said} <= {200, 400} and 200 in {status for status, _ in said}


@pytest.mark.parametrize("kind", ["timeout", "closed", "error", "garbage"])
async def test_an_account_that_was_made_and_not_heard_of_is_found_again(house: ServiceHouse, kind: Any) -> None:
    session, organisation = await person(house)
    trouble(house, kind, "/v1/accounts", method="POST", after=True)
    status, body = await call_connect(house, session, "POST", PATHS[0], {})
    assert (status, body["code"], body["outcome_unknown"]) == (502, "OUTCOME_UNKNOWN", True)
    assert await house.world.store.read(find_connect_account, organisation=organisation) is None
    house.world.payments.faults.queue.clear()
    status, body = await call_connect(house, session, "POST", PATHS[0], {})
    (account,) = await connected_accounts(house)
    assert (status, body["account_id"]) == (200, account.id)


async def test_a_processor_that_takes_no_more_calls_makes_no_account(house: ServiceHouse) -> None:
    session, organisation = await person(house)
    trouble(house, "rate_limited")
    status, body = await call_connect(house, session, "POST", PATHS[0], {})
    assert (status, body["code"]) == (502, "payments_error")
    assert await house.world.store.read(find_connect_account, organisation=organisation) is None
    assert await connected_accounts(house) == []


async def test_an_account_whose_link_failed_is_kept(house: ServiceHouse) -> None:
    session, organisation = await person(house)
    trouble(house, "error", "/v1/account_links")
    status, body = await call_connect(house, session, "POST", PATHS[0], {})
    assert (status, body["code"]) == (502, "payments_error")
    (account,) = await connected_accounts(house)
    assert (await house.world.store.read(find_connect_account, organisation=organisation) or pytest.fail()).account == account.id


async def test_a_country_in_lower_case_is_told_how_it_is_written(house: ServiceHouse) -> None:
    session, _ = await person(house)
    status, body = await call_connect(house, session, "POST", PATHS[0], {"country": "no"})
    assert (status, body["param"], body["hint"].partition(". ")[0]) == (400, "country", 'Write "NO", in upper case')


async def test_without_a_country_the_account_is_in_the_one_of_onboarding(house: ServiceHouse) -> None:
    session, _ = await person(house)
    named = {"name": "Fjord", "country": "DE", "operator_type": "mvno"}
    status, body = await call_connect(house, session, "POST", "/v1/onboarding/org", named)
    assert status == 200, body
    assert (await call_connect(house, session, "POST", PATHS[0], {}))[0] == 200
    assert [account.country for account in await connected_accounts(house)] == ["DE"]


@pytest.mark.rule("4.4.42")
@pytest.mark.parametrize("given", ["standard", "express", 5, True, None, ""])
async def test_an_account_type_is_taken_and_ignored(house: ServiceHouse, given: object) -> None:
    session, _ = await person(house)
    assert (await call_connect(house, session, "POST", PATHS[0], {"account_type": given}))[0] == 200
    assert [account.kind for account in await connected_accounts(house)] == ["express"]


@pytest.mark.rule("4.5.52")
@pytest.mark.rule("4.4.40")
@pytest.mark.parametrize("path", PATHS)
async def test_an_api_key_begins_nothing_and_neither_does_a_login_that_may_only_read(house: ServiceHouse, path: str) -> None:
    world = house.world
    caller = await world.caller(Tier.ENTERPRISE)
    status, body = await call_connect(house, caller.secret, "POST", path, {})
    assert (status, body["code"]) == (401, "unauthorized")
    assert (await call_connect(house, None, "POST", path, {}))[0] == 401
    now = world.clock.now()
    grant = AccessGrant(world.ids.new("gnt_"), caller.person, caller.organisation, "client", "A program", "read", "", now, now + 3600)
    await world.store.write(insert_grant, grant)
    status, body = await call_connect(house, f"login.{caller.person}.{grant.id}", "POST", path, {})
    assert (status, body["code"]) == (403, "credential_restricted")
    assert await connected_accounts(house) == []


async def test_whoever_brought_a_standard_account_is_told_where_to_go(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    own = await brought(house, caller)
    status, body = await call_connect(house, await member_session(house, caller), "POST", PATHS[1], {})
    assert status == 409
    assert without_request_id(body) == snapshot(
        {
            "error": "Your organisation connected a Standard account, whose owner signs in at the processor itself; nothing was done",
            "code": "payments_account_standard",
            "hint": "Sign in at the payment processor itself, with the login of that account",
        }
    )
    assert [account.id for account in await connected_accounts(house)] == [own]
    trouble(house, "error", "/v1/accounts/*")
    assert (await call_connect(house, await member_session(house, caller), "POST", PATHS[1], {}))[1]["code"] == "payments_account_standard"


@pytest.mark.parametrize("path", PATHS)
async def test_whoever_brought_an_account_and_let_the_service_go_unheard_gets_one_of_ours(house: ServiceHouse, path: str) -> None:
    caller = await house.world.caller()
    own = await brought(house, caller)
    house.world.clock.advance(60)
    await let_go(house, own)
    status, body = await call_connect(house, await member_session(house, caller), "POST", path, {"country": "NO"}, sure=True)
    assert (status, body["status"]) == (200, "pending") and body["account_id"] != own
    found = await house.world.store.read(find_connect_account, organisation=caller.organisation)
    assert found == (caller.organisation, body["account_id"], "express", "pending", 0)


async def test_links_lead_back_to_the_page_that_was_named(house: ServiceHouse) -> None:
    session, _ = await person(house)
    for given in ({}, {"return_url": "https://fjord.example/a?b=c#d"}, {"refresh_url": "https://fjord.example/again"}):
        assert (await call_connect(house, session, "POST", PATHS[0], given))[0] == 200


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"return_url": "http://fjord.example"}, "return_url"),
        ({"refresh_url": "ftp://fjord.example"}, "refresh_url"),
        ({"return_url": "https://user:pw@fjord.example"}, "return_url"),
        ({"country": "UK"}, "country"),
    ],
)
async def test_what_is_wrong_is_named_and_no_account_is_made(house: ServiceHouse, given: dict[str, object], param: str) -> None:
    session, _ = await person(house)
    status, body = await call_connect(house, session, "POST", PATHS[0], given)
    assert (status, body["param"].partition(".")[0]) == (400, param)
    assert await connected_accounts(house) == []


async def test_each_organisation_has_an_account_of_its_own(house: ServiceHouse) -> None:
    mine, theirs = await house.world.caller(), await house.world.caller()
    assert await onboarded(house, mine) != await onboarded(house, theirs)
    assert len(await connected_accounts(house)) == 2


async def test_an_account_is_attached_to_one_organisation_alone(house: ServiceHouse) -> None:
    callers = [await house.world.caller() for _ in range(8)]
    now = house.world.clock.now()

    async def attach(organisation: str) -> bool:
        said = {"account": "acct_1Own", "kind": "standard", "status": "active"}
        return await house.world.store.write(attach_connect_account, organisation=organisation, **said, as_of=now, now=now)

    done = await asyncio.gather(*(attach(caller.organisation) for caller in callers))
    assert sorted(done) == [False] * 7 + [True]
