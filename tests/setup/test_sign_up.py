"""POST /v1/signup and /v1/signup/verify."""

import re
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import httpx
import pytest
from inline_snapshot import snapshot

from registry.caller import Role
from storage.affiliates import insert_affiliate, referral_of
from storage.organisations import list_members, list_organisations, memberships_of
from storage.people import find_by_address
from tests.setup.signing_up import ADA, VERIFY, asking, begun, code_line, open_office, other_than, sign_up, signed_up, verify, without_id
from tests.stage import opened, opened_on_both
from tests.world import World

world = opened(open_office)
either = opened_on_both(open_office)


@pytest.fixture
async def http(world: World) -> AsyncGenerator[httpx.AsyncClient]:
    async with asking(world) as client:
        yield client


async def person_of(world: World, address: str) -> str:
    person = await world.store.read(find_by_address, address=address)
    assert person is not None
    return person


@pytest.mark.rule("4.9.10")
async def test_a_sign_up_mails_a_code_and_answers_with_the_token_it_goes_with(world: World, http: httpx.AsyncClient) -> None:
    answer = await sign_up(http)
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    assert answer.json().keys() == {"client_token", "expires_in_seconds"} and answer.json()["expires_in_seconds"] == 600
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", answer.json()["client_token"])
    [letter] = await world.letters()
    assert (letter.to, letter.subject) == (ADA, "Your code to sign up")
    assert letter.text.replace(code_line(letter), "CODE") == snapshot("""\
Somebody, probably you, is signing up at https://reseller.test with this e-mail address. The code is

CODE

It is good for 10 minutes and works once.

If it was not you, ignore this mail: without the code nothing happens. Nobody of ours will ask you for it.
""")


@pytest.mark.rule("4.9.11")
async def test_the_code_makes_an_organisation_of_the_free_tier_and_no_credential(world: World, http: httpx.AsyncClient) -> None:
    token, code = await begun(world, http, name="Ada Berg")
    answer = await verify(http, token, code)
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    assert "set-cookie" not in answer.headers
    [organisation] = await world.store.read(list_organisations)
    assert answer.json() == (
        {
            "object": "organization",
            "organization_id": organisation.id,
            "name": "Fjord Mobile",
            "referral": None,
            "sign_in_url": "https://reseller.test/auth/sign-in",
        }
    )
    assert (organisation.name, organisation.tier, organisation.mode) == ("Fjord Mobile", "free", None)
    [member] = await world.store.read(list_members, organisation=organisation.id)
    assert (member.person_id, member.role) == (await person_of(world, ADA), Role.ADMIN)


async def test_somebody_known_gets_one_more_organisation(world: World, http: httpx.AsyncClient) -> None:
    first = await signed_up(world, http)
    second = await signed_up(world, http, "ADA@Fjord.example", organization_name="Fjord Data")
    person = await person_of(world, ADA)
    mine = await world.store.read(memberships_of, person=person)
    assert [(member.organisation_id, member.name) for member in mine] == [
        (first["organization_id"], "Fjord Mobile"),
        (second["organization_id"], "Fjord Data"),
    ]


@pytest.mark.rule("7.19")
@pytest.mark.rule("4.9.12")
async def test_a_wrong_code_may_be_tried_again(world: World, http: httpx.AsyncClient) -> None:
    token, code = await begun(world, http)
    wrong = await verify(http, token, other_than(code))
    assert wrong.status_code == 400
    assert without_id(wrong)[1] == snapshot(
        {
            "error": "code: not the code that was mailed for this token, or it is not good any more",
            "code": "form_code_incorrect",
            "param": "code",
            "hint": "Check the six digits and try again; after 5 tries or 10 minutes begin again to get another code",
        }
    )
    assert (await verify(http, token, f" {code[:3]} {code[3:]} ")).status_code == 201


async def test_two_who_verify_at_once_make_one_organisation(either: World) -> None:
    async with asking(either) as http:
        token, code = await begun(either, http)
        answers: list[httpx.Response] = []

        async def once() -> None:
            answers.append(await verify(http, token, code))

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(once)
    assert sorted(answer.status_code for answer in answers) == [201, 400, 400, 400]
    assert {answer.json()["code"] for answer in answers if answer.status_code == 400} == {"form_code_incorrect"}
    assert len(await either.store.read(list_organisations)) == 1


async def test_two_sign_ups_of_one_address_at_once_make_one_person(either: World) -> None:
    async with asking(either) as http:
        proofs = [await begun(either, http, organization_name=f"Fjord {number}") for number in range(3)]
        async with anyio.create_task_group() as tasks:
            for token, code in proofs:
                tasks.start_soon(verify, http, token, code)
    mine = await either.store.read(memberships_of, person=await person_of(either, ADA))
    assert sorted(member.name for member in mine) == ["Fjord 0", "Fjord 1", "Fjord 2"]


@pytest.mark.cases
@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"email": "ada@"}, "email"),
        ({"email": "Ada <ada@fjord.example>"}, "email"),
        ({"email": "ada@fjord.example\n"}, "email"),
        ({"email": "ada@fjord.example, other@fjord.example"}, "email"),
        ({"email": '"ada berg"@fjord.example'}, "email"),
        ({"email": "ada@-fjord.example"}, "email"),
        ({"email": "ada@fjord." + "e" * 64}, "email"),
        ({"organization_name": "   "}, "organization_name"),
        ({"organization_name": "Fjord\r\nBcc: other@fjord.example"}, "organization_name"),
        ({"organization_name": "Fjord \u202eelibom"}, "organization_name"),
        ({"organization_name": "Fjord\U000e0061"}, "organization_name"),
        ({"organization_name": "\u200d \u200c"}, "organization_name"),
        ({"name": "Ada\x1b[31m"}, "name"),
        ({"name": "Ada\u2028Berg"}, "name"),
        ({"referral_code": "NOBODYS1"}, "referral_code"),
    ],
)
async def test_what_is_wrong_is_named_and_nothing_is_mailed(
    world: World, http: httpx.AsyncClient, given: dict[str, str], param: str
) -> None:
    answer = await sign_up(http, **given)
    assert (answer.status_code, answer.json()["param"]) == (400, param)
    assert await world.letters() == []


async def test_an_address_that_a_browser_lets_through_is_taken(world: World, http: httpx.AsyncClient) -> None:
    for email in ("o'neil+tag@fjord.example", "a..b@x"):
        await signed_up(world, http, email)
    assert [letter.to for letter in await world.letters()] == ["o'neil+tag@fjord.example", "a..b@x"]


async def affiliate(world: World, code: str, organisation: str | None = None) -> str:
    organisation = organisation or await world.organisation(name="Broker")
    await world.store.write(insert_affiliate, organisation=organisation, code=code, now=world.clock.now())
    return organisation


async def test_a_referral_code_is_attached(world: World, http: httpx.AsyncClient) -> None:
    broker = await affiliate(world, "BR2KER22")
    made = await signed_up(world, http, referral_code="BR2KER22")
    referral = await world.store.read(referral_of, organisation=made["organization_id"])
    assert made["referral"] == "attached"
    assert referral is not None and referral.affiliate == broker


async def test_one_s_own_code_makes_the_organisation_and_is_not_attached(world: World, http: httpx.AsyncClient) -> None:
    mine = (await signed_up(world, http))["organization_id"]
    await affiliate(world, "MYSELF22", mine)
    made = await signed_up(world, http, referral_code="MYSELF22")
    assert made["referral"] == "self"
    assert await world.store.read(referral_of, organisation=made["organization_id"]) is None


async def test_a_call_that_verifies_twice_over_with_other_fields_is_refused_unspent(world: World, http: httpx.AsyncClient) -> None:
    token, code = await begun(world, http)
    body: dict[str, Any] = {"client_token": token, "code": code}
    for more in ({"email": "eve@fjord.example"}, {"organization_name": "Eve"}, {"scopes": ["admin"]}):
        refused = await http.post(VERIFY, json={**body, **more})
        assert (refused.status_code, refused.json()["code"]) == (400, "unknown_field")
    assert (await http.post(VERIFY, json=body)).status_code == 201
