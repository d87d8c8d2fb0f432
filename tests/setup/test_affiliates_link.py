"""POST /v1/affiliates/link."""

import asyncio
from typing import Any

import pytest
from inline_snapshot import snapshot

from operations.setup.affiliates import attach_referral, is_referral_code, join_affiliates
from registry.caller import Role, Tier
from registry.errors import Conflict
from storage.affiliates import Referral, referral_of
from tests.contract.stage import ServiceHouse
from tests.world import NOON, Credentials

LINK = "/v1/affiliates/link"
NOBODYS = "ABCD2345"


async def affiliate(house: ServiceHouse) -> tuple[Credentials, str]:
    """An organisation in the programme, and its code."""
    caller = await house.world.caller()
    return caller, await code_of(house, caller.organisation)


async def code_of(house: ServiceHouse, organisation: str) -> str:
    world = house.world
    row, _ = await world.store.write(join_affiliates, organisation=organisation, now=world.clock.now(), ids=world.ids)
    return row.code


async def newcomer(house: ServiceHouse, subject: str = "newcomer", role: Role = Role.ADMIN) -> tuple[str, str]:
    """Somebody who has just signed up with a browser: their session and their organisation."""
    world = house.world
    person, organisation = await world.person(subject=subject), await world.organisation(Tier.FREE)
    await world.join(person, organisation, role)
    return f"session.{subject}.{organisation}", organisation


async def link(house: ServiceHouse, session: str, code: object) -> tuple[int, dict[str, Any]]:
    async with house.world.client(session) as http:
        answer = await http.post(LINK, json={"referral_code": code})
    return answer.status_code, answer.json()


async def brought_by(house: ServiceHouse, organisation: str) -> Referral | None:
    return await house.world.store.read(referral_of, organisation=organisation)


def refused(said: tuple[int, dict[str, Any]]) -> tuple[int, str, str]:
    return said[0], said[1]["code"], said[1]["param"]


@pytest.mark.rule("4.9.40")
async def test_a_new_organisation_says_once_who_brought_it(house: ServiceHouse) -> None:
    by, code = await affiliate(house)
    _, other = await affiliate(house)
    session, organisation = await newcomer(house)
    said = await link(house, session, code)
    status, body = said
    assert (body.pop("organization_id"), body.pop("referral_code")) == (organisation, code)
    assert (status, body) == snapshot((200, {"object": "affiliate_link", "linked_at": "2027-01-15T12:00:00Z"}))
    house.world.clock.advance(7200)
    assert await link(house, session, code) == (200, {**body, "organization_id": organisation, "referral_code": code})
    assert refused(await link(house, session, other)) == (409, "already_referred", "referral_code")
    assert await brought_by(house, organisation) == Referral(by.organisation, code, NOON)


@pytest.mark.rule("8.12")
@pytest.mark.parametrize(("age", "status"), [(0, 200), (1799, 200), (1799.999, 200), (1800, 400), (1800.001, 400), (86_400, 400)])
async def test_a_code_is_attached_strictly_within_thirty_minutes_of_the_service_s_clock(
    house: ServiceHouse, age: float, status: int
) -> None:
    _, code = await affiliate(house)
    session, organisation = await newcomer(house)
    house.world.clock.advance(age)
    said = await link(house, session, code)
    assert said[0] == status
    assert (await brought_by(house, organisation) is not None) == (status == 200)
    if status == 400:
        assert refused(said) == (400, "referral_too_late", "referral_code")
        assert "in the first 30 minutes" in said[1]["error"] and "2027-01-15T12:00:00Z" in said[1]["error"]


async def test_a_code_is_the_same_in_lower_case_and_with_space_around_it(house: ServiceHouse) -> None:
    by, code = await affiliate(house)
    for number, shape in enumerate((code.lower(), f" {code}\n", code.title())):
        session, organisation = await newcomer(house, f"n{number}")
        status, body = await link(house, session, shape)
        assert (status, body["referral_code"]) == (200, code)
        assert (await brought_by(house, organisation) or Referral("", "", 0)).affiliate == by.organisation


@pytest.mark.parametrize("code", [NOBODYS, "abc", "0OI10OI1", "' OR 1=1", "ABCD234", "ABCD23456", "ÀBCD2345", "%%%%%%%%", "________"])
async def test_a_code_that_nobody_has_is_named_and_nothing_is_kept(house: ServiceHouse, code: str) -> None:
    await affiliate(house)
    session, organisation = await newcomer(house)
    assert refused(await link(house, session, code)) == (400, "invalid_request", "referral_code")
    assert await brought_by(house, organisation) is None


@pytest.mark.parametrize("code", ["", None, 5, ["ABCD2345"], "A" * 65, True])
async def test_what_is_no_code_at_all_is_named(house: ServiceHouse, code: object) -> None:
    session, _ = await newcomer(house)
    assert refused(await link(house, session, code)) == (400, "invalid_request", "referral_code")


@pytest.mark.parametrize("whose", ["their own", "another of theirs", "a colleague's"])
async def test_nobody_refers_themselves(house: ServiceHouse, whose: str) -> None:
    world = house.world
    session, organisation = await newcomer(house)
    admin = (await world.pipeline.directory.by_session(await stub(house, session), world.clock.now())) or pytest.fail()
    theirs = organisation if whose == "their own" else await world.organisation()
    if whose == "another of theirs":
        await world.join(admin.principal, theirs, Role.MEMBER)
    if whose == "a colleague's":
        colleague = await world.person()
        await world.join(colleague, organisation, Role.MEMBER)
        await world.join(colleague, theirs, Role.MEMBER)
    code = await code_of(house, theirs)
    assert refused(await link(house, session, code)) == (400, "self_referral", "referral_code")
    assert await brought_by(house, organisation) is None


async def stub(house: ServiceHouse, session: str) -> Any:
    assert house.world.pipeline.sessions is not None
    return await house.world.pipeline.sessions.verify(session, "http")


async def test_a_member_who_is_no_admin_attaches_nothing(house: ServiceHouse) -> None:
    _, code = await affiliate(house)
    session, organisation = await newcomer(house, role=Role.MEMBER)
    status, body = await link(house, session, code)
    assert (status, body["code"]) == (403, "role_required")
    assert await brought_by(house, organisation) is None


async def test_of_many_codes_at_once_one_is_attached_for_good(house: ServiceHouse) -> None:
    codes = [(await affiliate(house))[1] for _ in range(8)]
    session, organisation = await newcomer(house)
    said = await asyncio.gather(*(link(house, session, code) for code in codes))
    assert sorted(status for status, _ in said) == [200] + [409] * 7
    (won,) = [body["referral_code"] for status, body in said if status == 200]
    assert (await brought_by(house, organisation) or Referral("", "", 0)).code == won


async def test_what_a_sign_up_asks_about_a_code(house: ServiceHouse) -> None:
    """The sign-up attaches in the transaction that makes the organisation, when nobody is a member yet."""
    store, (by, code) = house.world.store, await affiliate(house)
    assert await store.read(is_referral_code, code=code.lower())
    assert not await store.read(is_referral_code, code=NOBODYS)
    assert not await store.read(is_referral_code, code="ABCD\x00345")
    fresh, somebody = await house.world.organisation(), await house.world.person()

    async def attaching(person: str, given: str) -> str:
        return await store.write(attach_referral, organisation=fresh, person=person, code=given, now=NOON)

    assert await attaching(somebody, NOBODYS) == "unknown"
    assert await attaching(by.person, code) == "self"
    assert await brought_by(house, fresh) is None
    assert [await attaching(somebody, each) for each in (code, code)] == ["attached", "attached"]
    _, other = await affiliate(house)
    with pytest.raises(Conflict):
        await attaching(somebody, other)
