"""Attacks with session tokens of an external identity provider, at the HTTP and the MCP door: cases 23 to 27."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives import serialization

from clients.identity.jwks import JwksCache
from clients.identity.session_tokens import HttpAudience, McpAudience, TokenVerifier
from operations.catalogue import CATALOGUE
from registry.caller import Role, Tier
from storage.engine.sql import Command, Connection, Query
from storage.people import PERSON
from tests.clients.identity.provider import (
    EC_KEY,
    ISSUER,
    OTHER_RSA_KEY,
    RSA_KEY,
    KeysProvider,
    SigningKey,
    b64,
    claims,
    ec_jwk,
    rsa_jwk,
    signed_token,
)
from tests.contract.stage import Answered, Input, ServiceHouse, open_service_house
from tests.world import NOON, SITE
from transports.sessions import ProviderSessions

AUDIENCE, PARTY = "https://api.reseller.test", "https://console.reseller.test"
DOORS = ("http", "mcp")
INTENTS, PRODUCTS, PRODUCT, EMPTYING = (
    CATALOGUE.operations[name]
    for name in ("list_connectivity_intents", "list_connectivity_products", "create_connectivity_product", "clean_all_packages")
)
IAT, EXP = int(NOON) - 10, int(NOON) + 600
SIGN_UP = Command(sa.update(PERSON).where(PERSON.c.id == sa.bindparam("person")).values(address=sa.bindparam("signed_up_as")))


class Subject(NamedTuple):
    subject: str | None


SUBJECT = Query(Subject, sa.select(PERSON.c.subject).where(PERSON.c.id == sa.bindparam("person")))


@dataclass(slots=True)
class Scene:
    """A service behind an external identity provider, and a member of one of its organisations who signs in there."""

    house: ServiceHouse
    provider: KeysProvider
    person: str = ""
    organisation: str = ""

    async def call(
        self, door: str, token: str, operation: str = INTENTS.id, given: Input | None = None, key: str | None = None
    ) -> Answered:
        ask = self.house.http if door == "http" else self.house.mcp
        return await ask(CATALOGUE.operations[operation], token, given or {}, key=key)

    async def status(self, door: str, token: str) -> int:
        return (await self.call(door, token)).status


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncGenerator[Scene]:
    async with open_service_house(tmp_path) as house:
        world, provider = house.world, KeysProvider(rsa_jwk("rsa-1"), ec_jwk("ec-1"))
        verifier = TokenVerifier(ISSUER, JwksCache(provider, world.clock.monotonic), world.clock.now)
        audience = HttpAudience(AUDIENCE, frozenset({PARTY}))
        world.pipeline.sessions = ProviderSessions(verifier, audience, McpAudience(SITE.mcp_url))
        scene = Scene(house, provider, await world.person(subject="user_1"), await world.organisation(Tier.PRO))
        await world.join(scene.person, scene.organisation, Role.ADMIN)
        yield scene
        assert world.faults == []


def said(door: str, **changes: object) -> dict[str, object]:
    """Claims that are good at a door, but for the changes; None takes one away."""
    return claims(**{"iat": IAT, "exp": EXP, "azp": None, "aud": AUDIENCE if door == "http" else SITE.mcp_url, **changes})


def unsigned(payload: dict[str, object], alg: str) -> str:
    head = b64(json.dumps({"alg": alg, "typ": "JWT", "kid": "rsa-1"}).encode())
    return f"{head}.{b64(json.dumps(payload).encode())}."


def with_public_key_as_secret(payload: dict[str, object]) -> str:
    public = RSA_KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return signed_token(payload, alg="HS256", key=public)


def with_header(payload: dict[str, object], name: str, value: object, key: SigningKey = RSA_KEY) -> str:
    return signed_token(payload, key=key, **{name: value})  # pyright: ignore[reportArgumentType]


FORGED = {
    "unsigned": lambda door: unsigned(said(door), "none"),
    "unsigned, in capitals": lambda door: unsigned(said(door), "NONE"),
    "unsigned, and says otherwise": lambda door: unsigned(said(door), "RS256"),
    "the public key as a shared secret": lambda door: with_public_key_as_secret(said(door)),
    "signed by somebody else": lambda door: signed_token(said(door), key=OTHER_RSA_KEY),
    "an algorithm that is not the key's": lambda door: signed_token(said(door), alg="PS256"),
    "for another audience": lambda door: signed_token(said(door, aud="https://api.other.test")),
    "for the other door": lambda door: signed_token(said("mcp" if door == "http" else "http")),
    "of another issuer": lambda door: signed_token(said(door, iss="https://id.evil.test")),
    "of an issuer with one slash more": lambda door: signed_token(said(door, iss=ISSUER + "/")),
    "without an end": lambda door: signed_token(said(door, exp=None)),
    "without a beginning": lambda door: signed_token(said(door, iat=None)),
    "without anybody": lambda door: signed_token(said(door, sub=None)),
    "expired": lambda door: signed_token(said(door, iat=IAT - 900, exp=int(NOON) - 5)),
    "not valid yet": lambda door: signed_token(said(door, nbf=int(NOON) + 6)),
    "of the future": lambda door: signed_token(said(door, iat=int(NOON) + 6)),
    "with an unknown extension": lambda door: signed_token(said(door), crit=["surprise"], surprise=1),
    "with a known extension": lambda door: signed_token(said(door), crit=["b64"], b64=False),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("how", FORGED)
async def test_a_forged_token_is_a_401_that_repeats_nothing_of_it(scene: Scene, how: str, door: str) -> None:
    """Case 23."""
    token = FORGED[how](door)
    refused = await scene.call(door, token)
    assert (refused.status, refused.body["code"]) == (401, "token_expired" if how == "expired" else "unauthorized")
    assert not any(part in str(refused.body) for part in token.split(".") if part)
    assert await scene.status(door, signed_token(said(door))) == 200
    assert await scene.status(door, signed_token(said(door), kid="ec-1", alg="ES256", key=EC_KEY)) == 200


@pytest.mark.parametrize("door", DOORS)
async def test_an_end_that_the_library_takes_and_no_token_may_have_is_a_401(scene: Scene, door: str) -> None:
    """Case 24."""
    ends: list[object] = [str(EXP), f" {EXP} ", 10**30, 2**53, float("inf"), True, [EXP], {"at": EXP}, -EXP, 0]
    for end in (*ends, IAT + 24 * 3600 + 1, IAT + 365 * 24 * 3600):
        assert await scene.status(door, signed_token(said(door, exp=end))) == 401, end
    for start in (str(IAT), 10**30, True, 0):
        assert await scene.status(door, signed_token(said(door, iat=start))) == 401, start
    assert await scene.status(door, signed_token(said(door, exp=IAT + 24 * 3600))) == 200


ODD_KIDS = ("../../etc/passwd", "' OR 1=1 --", "k" * 201, "rsa-1\n", "rsa 1", "", "ключ", 7, ["rsa-1"], None)


async def test_a_key_id_is_a_name_in_a_dictionary_and_a_flood_of_them_costs_one_request_in_thirty_seconds(scene: Scene) -> None:
    """Case 25."""
    for door in DOORS:
        for kid in ODD_KIDS:
            assert await scene.status(door, signed_token(said(door), kid=kid)) == 401
        assert await scene.status(door, signed_token(said(door), kid="k" * 10_000)) in (401, 431)
    assert scene.provider.reads == 0
    address, theirs = "http://127.0.0.1:9/keys", rsa_jwk("rsa-1", OTHER_RSA_KEY)
    for door in DOORS:
        for name, value in (("jku", address), ("x5u", address), ("jwk", theirs), ("x5c", ["MIIB"])):
            assert await scene.status(door, with_header(said(door), name, value, key=OTHER_RSA_KEY)) == 401
            assert await scene.status(door, with_header(said(door), name, value)) == 200
    assert scene.provider.reads == 1
    clock = scene.house.world.clock
    for seconds, reads in ((0, 1), (29.9, 1), (0.1, 2), (29.9, 2), (0.1, 3)):
        clock.advance(seconds)
        flood = [scene.status(door, signed_token(said(door), kid=f"k{number}")) for number in range(16) for door in DOORS]
        assert set(await asyncio.gather(*flood)) == {401}
        assert scene.provider.reads == reads
    assert {await scene.status(door, signed_token(said(door))) for door in DOORS} == {200}


async def test_an_outage_of_the_provider_keeps_its_last_good_keys_and_a_rotation_is_seen(scene: Scene) -> None:
    """Case 25: who is signed in stays so while the provider is away, and a key that it took back ends with the next reading."""
    clock, provider = scene.house.world.clock, scene.provider

    def fresh(door: str, kid: str = "rsa-1", key: SigningKey = RSA_KEY) -> str:
        now = int(clock.now())
        return signed_token(said(door, iat=now, exp=now + 600), kid=kid, key=key)

    assert {await scene.status(door, fresh(door)) for door in DOORS} == {200}
    provider.down = True
    for hours in (1, 22.9):
        clock.advance(hours * 3600)
        assert {await scene.status(door, fresh(door)) for door in DOORS} == {200}
        assert {await scene.status(door, fresh(door, kid="rsa-2", key=OTHER_RSA_KEY)) for door in DOORS} == {401}
    clock.advance(3600)
    assert {await scene.status(door, fresh(door)) for door in DOORS} == {401}
    provider.down, provider.keys = False, [rsa_jwk("rsa-2", OTHER_RSA_KEY)]
    clock.advance(30)
    assert {await scene.status(door, fresh(door, kid="rsa-2", key=OTHER_RSA_KEY)) for door in DOORS} == {200}
    assert {await scene.status(door, fresh(door)) for door in DOORS} == {401}
    provider.keys = [rsa_jwk("rsa-3")]
    clock.advance(30)
    assert {await scene.status(door, fresh(door, kid="rsa-3")) for door in DOORS} == {200}
    assert {await scene.status(door, fresh(door, kid="rsa-2", key=OTHER_RSA_KEY)) for door in DOORS} == {401}


NEAR = ("/", "/x", "?a=1", "#x", " ", "\n")


async def test_a_token_without_our_audience_is_good_for_our_own_application_over_http_and_never_over_mcp(scene: Scene) -> None:
    """Case 26."""
    for party, http in ((PARTY, 200), ("https://evil.test", 401), (PARTY + "/", 401), (None, 401), ([PARTY], 401), ("", 401)):
        token = signed_token(said("http", aud=None, azp=party))
        assert (await scene.status("http", token), await scene.status("mcp", token)) == (http, 401), party
    for near in (*(SITE.mcp_url + tail for tail in NEAR), SITE.mcp_url[:-1], SITE.mcp_url.upper(), SITE.base_url, SITE.base_url + "/", ""):
        assert await scene.status("mcp", signed_token(said("mcp", aud=near))) == 401, near
        assert await scene.status("mcp", signed_token(said("mcp", aud=[near, AUDIENCE], azp=PARTY))) == 401, near
    assert await scene.status("mcp", signed_token({**said("mcp", azp=PARTY), "aud": None})) == 401
    both = signed_token(said("http", aud=[AUDIENCE, SITE.mcp_url]))
    assert {await scene.status(door, both) for door in DOORS} == {200}
    _, key = await scene.house.world.key(scene.person, scene.organisation)
    assert await scene.status("mcp", key) == 200


@pytest.mark.parametrize("door", DOORS)
async def test_who_was_removed_or_downgraded_is_so_with_the_next_call_whatever_the_token_says(scene: Scene, door: str) -> None:
    """Case 27."""
    world, product = scene.house.world, dict(PRODUCT.examples[0].input)
    boasts = {"tier": "enterprise", "role": "admin", "scope": "read write admin", "org_role": "org:admin", "permissions": ["*"]}
    token = signed_token(said(door, org_id=scene.organisation, **boasts))

    async def code(operation: str, given: Input, key: str | None = None) -> object:
        answer = await scene.call(door, token, operation, given, key)
        return answer.body.get("code") if answer.status >= 400 else "ok"

    assert await code(PRODUCT.id, product, "one") == "ok"
    await world.move_to(Tier.FREE, scene.organisation)
    assert await code(PRODUCT.id, product, "two") == "upgrade_required"
    assert await code(PRODUCT.id, product, "one") == "upgrade_required"  # a replay shows nothing either
    await world.move_to(Tier.ENTERPRISE, scene.organisation)
    emptied = dict(EMPTYING.examples[0].input)
    assert await code(EMPTYING.id, emptied) == "org_not_connected"
    await world.join(scene.person, scene.organisation, Role.MEMBER)
    assert await code(EMPTYING.id, emptied) == "upgrade_required"
    assert await code(PRODUCTS.id, {}) == "ok"
    await world.leave(scene.person, scene.organisation)
    for operation, given, key in ((PRODUCTS.id, {}, None), (PRODUCT.id, product, "one"), (EMPTYING.id, emptied, None)):
        assert await code(operation, given, key) == "organization_required"
    foreign = await world.organisation(Tier.ENTERPRISE)
    token = signed_token(said(door, org_id=foreign, **boasts))
    assert await code(PRODUCTS.id, {}) == "organization_required"


async def known_by_address(scene: Scene, address: str, *, subject: str | None = None) -> str:
    """Somebody who signed up here by that address, in the scene's organisation."""
    world = scene.house.world
    person = await world.person(subject=subject)
    await world.store.write(lambda connection: connection.run(SIGN_UP, person=person, signed_up_as=address))
    await world.join(person, scene.organisation, Role.MEMBER)
    return person


async def subject_of(scene: Scene, person: str) -> str | None:
    def read(connection: Connection) -> Subject | None:
        return connection.first(SUBJECT, person=person)

    return (await scene.house.world.store.read(read) or Subject("nobody")).subject


def came(door: str, subject: str, email: object = "ada@example.com", verified: object = True) -> str:
    return signed_token(said(door, sub=subject, email=email, email_verified=verified))


@pytest.mark.parametrize("door", DOORS)
async def test_who_signed_up_here_is_linked_to_the_provider_s_name_once_by_a_verified_address(scene: Scene, door: str) -> None:
    person = await known_by_address(scene, "ada@example.com")
    assert await subject_of(scene, person) is None
    assert await scene.status(door, came(door, "ada", "Ada@Example.com")) == 200
    assert await subject_of(scene, person) == "ada"
    assert await scene.status(door, came(door, "ada", None, None)) == 200  # from now on the name will do
    assert (await scene.call(door, came(door, "mallory"))).body["code"] == "organization_required"
    assert await subject_of(scene, person) == "ada"


@pytest.mark.parametrize("verified", [False, None, "true", 1, "1", [True], {}, "yes"], ids=str)
async def test_an_address_that_is_not_verified_links_nobody(scene: Scene, verified: object) -> None:
    person = await known_by_address(scene, "ada@example.com")
    for door in DOORS:
        assert (await scene.call(door, came(door, "mallory", verified=verified))).body["code"] == "organization_required"
    assert await subject_of(scene, person) is None


ODD_ADDRESSES = ("ada@example.com ", "ada@example.com\n", " ada@example.com", "ada", "@", "", 7, ["ada@example.com"], "a" * 250 + "@x.io")


async def test_an_odd_address_links_nobody_and_is_no_reason_to_refuse_the_token(scene: Scene) -> None:
    person = await known_by_address(scene, "ada@example.com")
    kept = await known_by_address(scene, "k@example.com")
    for email in (*ODD_ADDRESSES, "\u212a@example.com", "ada@example.com\x00", "ada@ex\u0430mple.com"):  # a Kelvin sign, a Cyrillic a
        refused = await scene.call("http", came("http", "mallory", email))
        assert (refused.status, refused.body["code"]) == (409, "organization_required"), email
    assert (await subject_of(scene, person), await subject_of(scene, kept)) == (None, None)


async def test_who_has_another_subject_keeps_it(scene: Scene) -> None:
    person = await known_by_address(scene, "ada@example.com", subject="ada")
    other = await known_by_address(scene, "user_1@example.com")
    for door in DOORS:
        assert (await scene.call(door, came(door, "mallory"))).body["code"] == "organization_required"
        assert await scene.status(door, came(door, "user_1", "user_1@example.com")) == 200  # is somebody else already
    assert (await subject_of(scene, person), await subject_of(scene, other)) == ("ada", None)


async def test_first_calls_that_come_together_are_all_of_the_linked_person(scene: Scene) -> None:
    person = await known_by_address(scene, "ada@example.com")
    beside = await known_by_address(scene, "countess@example.com")
    tokens = [came(door, "ada", email) for door in DOORS for email in ("ada@example.com", "countess@example.com") for _ in range(4)]
    answers = await asyncio.gather(*(scene.status(DOORS[number // 8], token) for number, token in enumerate(tokens)))
    assert set(answers) == {200}
    assert sorted([await subject_of(scene, person) or "", await subject_of(scene, beside) or ""]) == ["", "ada"]
