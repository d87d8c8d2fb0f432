"""What was broken once: odd names, odd addresses, and memberships that end at the same moment."""

import asyncio
import base64
from pathlib import Path

import pytest

from operations.people.consents import consent_question
from operations.people.session_tokens import new_console_token
from registry.caller import Role
from storage.access_grants import grants_of
from storage.members import end_membership
from tests.databases import NO_POSTGRES, migrated_postgres, required_database
from tests.identity.house import IdentityHouse, open_identity_house
from tests.identity.test_client_documents import programs_page

PEOPLE = 24


@pytest.mark.cases
@pytest.mark.postgres
@pytest.mark.parametrize("name", [b"\0:secret", b"%00:secret", b"a%0Ab:secret", b"\xc3\xa9:secret"])
async def test_a_program_whose_name_no_database_can_hold_is_unknown(tmp_path: Path, name: bytes) -> None:
    with required_database(migrated_postgres()) as url:
        async with open_identity_house(tmp_path, url=url) as house:
            form = {"grant_type": "refresh_token", "refresh_token": "rt_x"}
            answer = await house.post("/auth/token", form, Authorization=f"Basic {base64.b64encode(name).decode()}")
            assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


@pytest.mark.parametrize(
    "uri",
    [
        "https://1.2.3.999/callback",
        "https://[:::]/callback",
        "https://0x7f.1/callback",
        "https://2130706433/callback",
        "program://[zz/callback",
        "program://host:99999999/",
    ],
)
async def test_an_address_that_a_browser_reads_otherwise_or_not_at_all_is_no_redirect_uri(tmp_path: Path, uri: str) -> None:
    async with programs_page(tmp_path) as (house, page):
        page.shows(redirect_uris=[uri])
        for presented in (uri, None):
            answer = await house.ask(page.url, redirect_uri=presented)
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client")
        assert (await house.register(redirect_uris=[uri])).status_code == 400


@pytest.mark.parametrize("name", ["\u3164", "\u2800 \u115f\u1160", "\uffa0\u200b"])
async def test_a_name_that_nobody_can_see_is_none(house: IdentityHouse, name: str) -> None:
    client_id = (await house.program(client_name=name))["client_id"]
    assert "client_name" not in (await house.register(client_name=name)).json()
    token = await house.request_token(client_id)
    found = await consent_question(house.deps, token=token, now=house.world.clock.now())
    assert found is not None and found.client_name == "program.test"


@pytest.mark.long
@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
async def test_a_consent_at_the_moment_of_leaving_leaves_nothing_for_coming_back(tmp_path: Path, engine: str) -> None:
    with migrated_postgres() as url:
        if engine == "postgresql" and url is None:
            pytest.skip(NO_POSTGRES)
        async with open_identity_house(tmp_path, url=url if engine == "postgresql" else None) as house:
            await asyncio.gather(*[allow_while_leaving(house) for _ in range(PEOPLE)])


async def allow_while_leaving(house: IdentityHouse) -> None:
    """Two consents of somebody who is removed meanwhile: no grant is left, whichever came first."""
    world, deps, now = house.world, house.deps, house.world.clock.now()
    person, organisation = await world.person(), house.organisation
    await world.join(person, organisation, Role.MEMBER)
    await asyncio.gather(
        new_console_token(deps, person=person, organisation=organisation, now=now),
        world.store.write(end_membership, person=person, organisation=organisation, now=now),
        new_console_token(deps, person=person, organisation=organisation, now=now),
        return_exceptions=True,
    )
    assert await world.store.read(grants_of, person=person, now=now) == []
