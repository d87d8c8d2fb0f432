"""What is said to a key that may not do something, or to a call that is spelt wrong: true words, and the way on."""

from dataclasses import replace
from typing import Any

import pytest
from inline_snapshot import snapshot

from registry.caller import Restrictions, Role, Tier
from tests.contract.stage import ServiceHouse
from tests.world import Credentials

KEYS, INTENTS, PRODUCTS, MEMBERS = "/v1/api-keys", "/v1/connectivity/intents", "/v1/connectivity/products", "/v1/members"
ACCOUNT = 4711
READ_ONLY = Restrictions(read_only=True)
Json = dict[str, Any]


async def limited(house: ServiceHouse, tier: Tier, role: Role = Role.ADMIN, *, held: Restrictions) -> Credentials:
    caller = await house.world.caller(tier, role)
    return replace(caller, secret=(await house.world.key(caller.person, caller.organisation, restrictions=held))[1])


async def said(house: ServiceHouse, who: Credentials, method: str, path: str, body: Json | None = None) -> tuple[int, Json]:
    async with house.world.client(who.secret) as http:
        answer = await http.request(method, path, json=body, headers={"Idempotency-Key": "k"} if body is not None else {})
    return answer.status_code, answer.json()


def told(answer: tuple[int, Json]) -> tuple[int, str, str, str | None]:
    status, body = answer
    return status, body["code"], body["error"], body.get("hint")


async def test_a_read_only_key_hears_of_the_tier_what_any_key_of_the_organisation_would(house: ServiceHouse) -> None:
    whole = await house.world.caller(Tier.FREE)
    narrow = await limited(house, Tier.FREE, held=READ_ONLY)
    answers = [told(await said(house, who, "POST", PRODUCTS, {})) for who in (whole, narrow)]
    assert answers[0] == answers[1] and answers[0][:2] == (402, "upgrade_required")


@pytest.mark.parametrize("name", ["two\nlines", "bell\x07", "gpj\u202ephoto", " "])
async def test_a_name_that_would_mislead_whoever_reads_the_list_of_keys_is_refused(house: ServiceHouse, name: str) -> None:
    admin = await house.world.caller(Tier.PRO)
    status, body = await said(house, admin, "POST", KEYS, {"name": name})
    assert (status, body["param"]) == (400, "name")
    assert [row["name"] for row in (await said(house, admin, "GET", KEYS))[1]["data"]] == ["test"]


@pytest.mark.parametrize("tier", [Tier.FREE, Tier.ENTERPRISE])
async def test_a_read_only_key_is_told_that_it_may_only_read(house: ServiceHouse, tier: Tier) -> None:
    narrow = await limited(house, tier, held=READ_ONLY)
    assert told(await said(house, narrow, "POST", INTENTS, {"plan": "test_global_1gb"})) == snapshot(
        (
            403,
            "credential_restricted",
            "This credential may only read, and this operation changes something",
            "Use another key, or have an admin make one that may do this",
        )
    )


@pytest.mark.parametrize("held", [READ_ONLY, Restrictions(no_admin=True)])
async def test_a_member_s_key_hears_of_the_role_whatever_the_key_may_do(house: ServiceHouse, held: Restrictions) -> None:
    member = await limited(house, Tier.PRO, Role.MEMBER, held=held)
    assert told(await said(house, member, "POST", MEMBERS, {"email": "a@b.test", "role": "member"}))[:2] == (403, "role_required")


async def test_an_admin_s_key_without_admin_access_is_told_so(house: ServiceHouse) -> None:
    held = Restrictions(no_admin=True)
    admin = await limited(house, Tier.FREE, held=held)
    assert told(await said(house, admin, "GET", "/v1/audit-log"))[1:3] == snapshot(
        ("credential_restricted", "This credential was made without admin access, which your organisation and your role carry")
    )


async def test_an_unknown_field_inside_an_object_is_told_the_fields_of_that_object(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    body = {"name": "t", "restrictions": {"readonly": True}}
    assert told(await said(house, caller, "POST", KEYS, body)) == snapshot(
        (
            400,
            "unknown_field",
            "restrictions.readonly: unknown field",
            "Remove it. Known fields: read_only, toolsets, iccids, account_ids, calls_per_day, tags, spend_per_call, spend_per_day, "
            "spend_per_month, times, approve_above, approval, another_person",
        )
    )


async def test_a_bad_field_inside_an_object_is_told_its_own_rule(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    body = {"name": "t", "restrictions": {"calls_per_day": 0}}
    assert told(await said(house, caller, "POST", KEYS, body))[2:] == snapshot(
        ("restrictions.calls_per_day: got 0; must be >= 1", "Calls per UTC day, 1-1000000, within your organisation's quota.")
    )


async def test_a_key_for_accounts_that_names_none_is_told_to_name_one(house: ServiceHouse) -> None:
    connected = await house.world.caller(Tier.PRO, mode="managed", account=ACCOUNT)
    _, secret = await house.world.key(connected.person, connected.organisation, restrictions=Restrictions(account_ids=(ACCOUNT,)))
    answers = [
        told(await said(house, replace(connected, secret=secret), "GET", f"/v1/subscribers{query}")) for query in ("", "?accountId=1")
    ]
    assert [(error, hint) for _, _, error, hint in answers] == snapshot(
        [
            ("accountId: missing: this API key is restricted to named accounts, so name one", "Give one of: 4711"),
            ("accountId: this API key is restricted to named accounts, and this is none of them", "Give one of: 4711"),
        ]
    )


async def test_a_key_whose_own_calls_are_used_up_is_told_to_use_another_or_wait(house: ServiceHouse) -> None:
    narrow = await limited(house, Tier.FREE, held=Restrictions(calls_per_day=1))
    plans = "/v1/connectivity/plans"
    assert (await said(house, narrow, "GET", plans))[0] == 200
    status, body = await said(house, narrow, "GET", plans)
    assert (status, body["hint"]) == (429, "Use another key, or wait; a larger tier does not change this")
    assert set(body) == {"error", "code", "request_id", "hint", "limit", "used", "reset_at", "upgrade_url"}


async def test_a_key_where_a_login_is_needed_is_told_how_to_log_in(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    assert told(await said(house, caller, "POST", "/v1/affiliates/link", {"referral_code": "ABCD2345"})) == snapshot(
        (
            401,
            "unauthorized",
            "This operation takes a signed-in session, not an API key",
            "Log in with `reseller login`, or take a session token at https://reseller.test/auth/session-token and send it as "
            "Authorization: Bearer <token>",
        )
    )


async def test_a_plan_that_no_tier_of_the_caller_s_has_is_answered_with_the_plans_that_work(house: ServiceHouse) -> None:
    free = await house.world.caller(Tier.FREE)
    assert told(await said(house, free, "POST", INTENTS, {"plan": "nope"})) == snapshot(
        (
            402,
            "upgrade_required",
            "This operation needs write access; the tier free of your organisation does not carry it, pro does",
            "Test plans work on every tier: test_global_1gb, test_eu_1gb",
        )
    )
