"""GET and POST /v1/affiliates/me."""

import re
from dataclasses import replace
from typing import Any

import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from operations.setup.affiliates import REFERRAL_ALPHABET, attach_referral, join_affiliates
from registry.caller import Restrictions, Role, Tier
from storage.affiliates import Affiliate, affiliate_of
from storage.engine.sql import Connection
from tests.contract.stage import ServiceHouse
from tests.world import CountingIds, Credentials

ME = "/v1/affiliates/me"


async def ask(house: ServiceHouse, secret: str, method: str = "GET") -> tuple[int, dict[str, Any]]:
    async with house.world.client(secret) as http:
        answer = await http.request(method, ME, json={} if method == "POST" else None)
    return answer.status_code, answer.json()


@pytest.mark.rule("4.9.41")
async def test_before_it_joins_an_organisation_has_no_code(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.FREE, Role.MEMBER)
    assert await ask(house, caller.secret) == snapshot(
        (
            200,
            {
                "object": "affiliate",
                "joined": False,
                "code": None,
                "link": None,
                "referral_count": 0,
                "earnings": [],
                "payout_status": "not_joined",
                "created_at": None,
            },
        )
    )


@pytest.mark.rule("4.9.42")
async def test_joining_gives_a_code_and_a_link_and_repeating_it_gives_the_same(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.FREE, Role.MEMBER)
    joined = await ask(house, caller.secret, "POST")
    status, body = joined
    assert status == 201
    assert {**body, "code": "-", "link": body["link"].removesuffix(body["code"])} == snapshot(
        {
            "object": "affiliate",
            "joined": True,
            "code": "-",
            "link": "https://reseller.test/auth/sign-up?ref=",
            "referral_count": 0,
            "earnings": [],
            "payout_status": "no_earnings",
            "created_at": "2027-01-15T12:00:00Z",
        }
    )
    house.world.clock.advance(3600)
    assert await ask(house, caller.secret, "POST") == (200, joined[1])
    assert await ask(house, caller.secret) == (200, joined[1])


async def test_a_code_has_eight_characters_that_nobody_takes_for_one_another(house: ServiceHouse) -> None:
    assert (len(REFERRAL_ALPHABET), set(REFERRAL_ALPHABET) & set("0O1I")) == (32, set())
    codes = {(await ask(house, (await house.world.caller()).secret, "POST"))[1]["code"] for _ in range(20)}
    assert len(codes) == 20
    assert all(re.fullmatch(f"[{REFERRAL_ALPHABET}]{{8}}", code) for code in codes)


async def test_two_organisations_have_two_codes_and_see_only_their_own(house: ServiceHouse) -> None:
    first, second = await house.world.caller(), await house.world.caller()
    await ask(house, first.secret, "POST")
    assert (await ask(house, second.secret))[1]["joined"] is False
    assert (await ask(house, second.secret, "POST"))[1]["code"] != (await ask(house, first.secret))[1]["code"]


class OneByte(CountingIds):
    """Draws the same code twice, and then others."""

    def bytes(self, count: int) -> bytes:
        self.count += 1
        return bytes([7 if self.count <= 2 else self.count]) * count


async def test_a_code_that_is_somebody_else_s_is_drawn_again(house: ServiceHouse) -> None:
    world = house.world
    ids, first, second = OneByte(world.clock), await world.organisation(), await world.organisation()

    def both(connection: Connection) -> list[tuple[Affiliate, bool]]:
        return [join_affiliates(connection, organisation=each, now=1.0, ids=ids) for each in (first, second)]

    (one, new), (other, new_too) = await world.store.write(both)
    assert new and new_too
    assert (one.code, other.code) == (REFERRAL_ALPHABET[7] * 8, REFERRAL_ALPHABET[3] * 8)


async def test_the_referrals_are_counted(house: ServiceHouse) -> None:
    world = house.world
    caller = await world.caller()
    code = (await ask(house, caller.secret, "POST"))[1]["code"]
    brought = [await world.caller() for _ in range(3)]
    for each in brought:
        await world.store.write(attach_referral, organisation=each.organisation, person=each.person, code=code, now=world.clock.now())
    assert (await ask(house, caller.secret))[1]["referral_count"] == 3
    assert (await ask(house, brought[0].secret))[1]["referral_count"] == 0


async def test_without_the_built_in_provider_the_link_is_the_sign_in_page_with_the_code(house: ServiceHouse) -> None:
    world = house.world
    caller = await world.caller()
    site = replace(world.pipeline.deps.site, sign_in_url="https://id.example.com/sign-in?app=a%20b&x=")
    world.pipeline.deps = replace(world.pipeline.deps, own_identity=False, site=site)
    _, body = await ask(house, caller.secret, "POST")
    assert body["link"] == f"https://id.example.com/sign-in?app=a+b&x=&ref={body['code']}"


async def test_a_key_that_may_only_read_sees_and_does_not_join(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    _, reader = await house.world.key(caller.person, caller.organisation, restrictions=Restrictions(read_only=True))
    assert (await ask(house, reader))[0] == 200
    status, body = await ask(house, reader, "POST")
    assert (status, body["code"]) == (403, "credential_restricted")
    assert await house.world.store.read(affiliate_of, organisation=caller.organisation) is None


async def through_tools(house: ServiceHouse, caller: Credentials, tool: str) -> dict[str, Any]:
    return (await house.mcp(CATALOGUE.operations[tool], caller.secret, {})).body


@pytest.mark.rule("4.9.42")
async def test_the_tools_say_the_same(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    joined = await through_tools(house, caller, "affiliates_me_create")
    assert joined["joined"] is True
    assert await through_tools(house, caller, "affiliates_me_create") == joined
    assert await through_tools(house, caller, "affiliates_me_get") == (await ask(house, caller.secret))[1] == joined
