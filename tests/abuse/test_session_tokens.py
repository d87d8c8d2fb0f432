"""Attacks with session tokens of an external identity provider, at the HTTP and the MCP door: cases 23, 26 and 27.

Every way to forge one is in tests/clients/identity/test_tokens.py."""

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
from tests.clients.identity.provider import EC_KEY, ISSUER, OTHER_RSA_KEY, RSA_KEY, KeysProvider, b64, claims, ec_jwk, rsa_jwk, signed_token
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


FORGED = {
    "unsigned": lambda door: unsigned(said(door), "none"),
    "the public key as a shared secret": lambda door: with_public_key_as_secret(said(door)),
    "signed by somebody else": lambda door: signed_token(said(door), key=OTHER_RSA_KEY),
    "for another audience": lambda door: signed_token(said(door, aud="https://api.other.test")),
    "for the other door": lambda door: signed_token(said("mcp" if door == "http" else "http")),
    "expired": lambda door: signed_token(said(door, iat=IAT - 900, exp=int(NOON) - 5)),
    "not valid yet": lambda door: signed_token(said(door, nbf=int(NOON) + 6)),
}


@pytest.mark.cases
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


@pytest.mark.cases
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


@pytest.mark.long
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
