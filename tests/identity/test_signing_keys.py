"""The keys that sign session tokens: known before they sign, and as long as anything they signed is good."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import jwt
import pytest

from clients.identity.jwks import parse_jwks
from operations.deps import Deps
from operations.people.signing_keys import make_next_signing_key, signing_key_set, signing_keys_at
from registry.clock import SystemClock
from registry.errors import KeyUnknown
from registry.ids import SystemIds
from storage.sealing import Keyring
from storage.signing_keys import sweep_signing_keys
from tests.cli.reseller import printed
from tests.databases import NO_POSTGRES, migrated_postgres
from tests.identity.house import IdentityHouse, open_identity_house
from tests.world import NOON
from transports.sessions import own_sessions

HOURS = 3600


def kid_of(token: str) -> str:
    return jwt.get_unverified_header(token)["kid"]


async def published(house: IdentityHouse) -> list[str]:
    answer = await house.get("/auth/jwks")
    assert answer.headers["cache-control"] == "public, max-age=300"
    return [key["kid"] for key in answer.json()["keys"]]


async def test_what_is_published_verifies_and_tells_nothing_else(house: IdentityHouse) -> None:
    [key] = (await house.get("/auth/jwks")).json()["keys"]
    assert set(key) == {"kty", "crv", "use", "alg", "kid", "x", "y"}
    assert (key["kty"], key["crv"], key["use"], key["alg"]) == ("EC", "P-256", "sig", "ES256")
    _, tokens = await house.login()
    assert kid_of(tokens["access_token"]) == key["kid"]
    jwt.decode(
        tokens["access_token"],
        jwt.PyJWK(key),
        algorithms=["ES256"],
        options={"verify_exp": False, "verify_aud": False, "verify_iat": False},
    )


async def test_a_new_key_is_published_ten_minutes_before_it_signs_and_an_old_one_a_day_after(house: IdentityHouse) -> None:
    _, tokens = await house.login()
    old = kid_of(tokens["access_token"])
    made = await make_next_signing_key(house.deps, NOON)
    assert made.signs_from == NOON + 600
    assert await published(house) == [made.kid, old]
    house.world.clock.advance(599)
    _, tokens = await house.login()
    assert kid_of(tokens["access_token"]) == old
    house.world.clock.advance(1)
    _, after = await house.login()
    assert kid_of(after["access_token"]) == made.kid
    for token in (tokens, after):
        assert (await house.mcp(token["access_token"])).status_code == 200
    house.world.clock.advance(24 * HOURS - 1)
    assert old in await published(house)
    house.world.clock.advance(1)
    assert await published(house) == [made.kid]
    assert await house.world.store.write(sweep_signing_keys, now=house.world.clock.now() + 1) == 1


async def test_a_key_is_changed_after_90_days_by_itself(house: IdentityHouse) -> None:
    [first] = await published(house)
    house.world.clock.advance(90 * 24 * HOURS - 1)
    assert await published(house) == [first]
    house.world.clock.advance(1)
    second, again = await published(house)
    assert again == first != second


async def test_two_rotations_in_a_row_leave_a_key_that_signs_at_every_moment(house: IdentityHouse) -> None:
    await make_next_signing_key(house.deps, NOON)
    house.world.clock.advance(60)
    await make_next_signing_key(house.deps, house.world.clock.now())
    for _ in range(20):
        house.world.clock.advance(61)
        _, tokens = await house.login()
        assert (await house.mcp(tokens["access_token"])).status_code == 200


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
async def test_of_16_replicas_that_need_a_key_at_once_one_makes_it(tmp_path: Path, engine: str) -> None:
    with migrated_postgres() as url:
        if engine == "postgresql" and url is None:
            pytest.skip(NO_POSTGRES)
        async with open_identity_house(tmp_path, url=url if engine == "postgresql" else None) as house:
            replicas = [another(house.deps) for _ in range(16)]
            found = await asyncio.gather(*(signing_keys_at(replica, NOON) for replica in replicas))
            assert len({keys[0].kid for keys in found}) == 1 and {len(keys) for keys in found} == {1}
            later = NOON + 90 * 24 * HOURS
            found = await asyncio.gather(*(signing_keys_at(replica, later) for replica in replicas))
            assert len({keys[0].kid for keys in found}) == 1 and {len(keys) for keys in found} == {2}


def another(deps: Deps) -> Deps:
    """The same service in another process."""
    return replace(deps, ids=SystemIds(SystemClock()))


async def test_a_key_that_another_replica_made_a_moment_ago_verifies(house: IdentityHouse) -> None:
    here = own_sessions(house.deps)
    _, tokens = await house.login()
    await here.verify(tokens["access_token"], "mcp")
    there = another(house.deps)
    await make_next_signing_key(there, NOON)
    house.world.clock.wall += 600  # to the other replica's clock ten minutes have gone by, and our cache is young
    _, tokens = await house.login()
    await here.verify(tokens["access_token"], "mcp")
    assert kid_of(tokens["access_token"]) == (await signing_keys_at(there, NOON))[0].kid


async def test_the_private_half_opens_with_the_keyring_alone(house: IdentityHouse) -> None:
    [key] = await signing_keys_at(house.deps, NOON)
    assert len(parse_jwks(await signing_key_set(house.deps))) == 1
    with pytest.raises(KeyUnknown):
        Keyring("other:" + "A" * 43 + "=", house.deps.ids.bytes).open(key.private, org_id="service", field=f"signing|{key.kid}")
    assert "d" not in json.loads(key.public)


@pytest.mark.long
def test_the_command_line_makes_the_next_key(tmp_path: Path) -> None:
    printed("org", "create", "Acme", cwd=tmp_path)
    first, second = (printed("keys", "rotate-signing", cwd=tmp_path) for _ in range(2))
    assert first.startswith("made key sig_") and " UTC on" in first
    assert second.split()[2] != first.split()[2]
