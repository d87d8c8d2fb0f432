"""How often the provider's keys are read, and what outlives an outage."""

import json

import anyio
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from clients.http import Outbound, OutboundFailed
from clients.identity.jwks import BadJwks, JwksCache, JwksUnavailable, jwks_fetch, parse_jwks
from tests.clients.clock import ManualClock
from tests.clients.identity.provider import EC_KEY, OTHER_RSA_KEY, RSA_KEY, KeysProvider, ec_jwk, rsa_jwk
from tests.clients.webhooks.receiver import receiver, status_answer

HOUR = 3600.0


def cached(provider: KeysProvider) -> tuple[JwksCache, ManualClock]:
    clock = ManualClock()
    return JwksCache(provider, clock.monotonic), clock


async def test_keys_are_read_once_and_again_after_300_seconds() -> None:
    provider = KeysProvider(rsa_jwk("a"))
    cache, clock = cached(provider)
    for moment in (0.0, 100.0, 199.9, 0.2):
        clock.advance(moment)
        assert await cache.key("a") is not None
    assert provider.reads == 2


async def test_a_new_key_is_found_once_the_cooldown_is_over() -> None:
    provider = KeysProvider(rsa_jwk("a"))
    cache, clock = cached(provider)
    assert await cache.key("a") is not None
    provider.keys = [rsa_jwk("a"), ec_jwk("b")]
    assert await cache.key("b") is None
    clock.advance(30)
    assert await cache.key("b") is not None
    assert provider.reads == 2


async def test_a_withdrawn_key_is_gone_with_the_next_set() -> None:
    provider = KeysProvider(rsa_jwk("a"), ec_jwk("b"))
    cache, clock = cached(provider)
    assert await cache.key("a") is not None
    provider.keys = [ec_jwk("b")]
    clock.advance(300)
    assert await cache.key("a") is None


async def test_a_flood_of_unknown_ids_costs_one_request_per_30_seconds() -> None:
    provider = KeysProvider(rsa_jwk("a"))
    cache, clock = cached(provider)
    for second in range(90):
        for number in range(20):
            assert await cache.key(f"random-{second}-{number}") is None
        clock.advance(1)
    assert provider.reads == 3


async def test_many_callers_at_once_cause_one_request() -> None:
    provider = KeysProvider(rsa_jwk("a"))
    provider.gate = anyio.Event()
    cache, _ = cached(provider)
    found: list[bool] = []

    async def ask(kid: str) -> None:
        found.append(await cache.key(kid) is not None)

    async with anyio.create_task_group() as group:
        for number in range(64):
            group.start_soon(ask, "a" if number % 2 else f"x{number}")
        await anyio.wait_all_tasks_blocked()
        provider.gate.set()
    assert (provider.reads, found.count(True), found.count(False)) == (1, 32, 32)


async def test_callers_with_a_known_key_do_not_wait_for_a_refresh() -> None:
    provider = KeysProvider(rsa_jwk("a"))
    cache, clock = cached(provider)
    await cache.key("a")
    clock.advance(301)
    provider.gate = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(cache.key, "a")
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(60):
            assert await cache.key("a") is not None
        provider.gate.set()


async def test_a_caller_that_hangs_up_does_not_spend_the_request() -> None:
    provider = KeysProvider(rsa_jwk("a"))
    provider.gate = anyio.Event()
    cache, _ = cached(provider)
    async with anyio.create_task_group() as group:
        group.start_soon(cache.key, "a")
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
        provider.gate.set()
    assert await cache.key("a") is not None
    assert provider.reads == 1


async def test_an_outage_keeps_the_last_good_set_for_a_day() -> None:
    provider = KeysProvider(rsa_jwk("a"))
    cache, clock = cached(provider)
    await cache.key("a")
    provider.down = True
    clock.advance(24 * HOUR - 1)
    assert await cache.key("a") is not None
    assert await cache.key("b") is None
    clock.advance(1)
    with pytest.raises(JwksUnavailable):
        await cache.key("a")
    assert provider.reads == 2


async def test_during_an_outage_the_provider_is_asked_every_30_seconds_and_found_again() -> None:
    provider = KeysProvider(rsa_jwk("a"))
    cache, clock = cached(provider)
    provider.down = True
    for _ in range(60):
        with pytest.raises(JwksUnavailable):
            await cache.key("a")
        clock.advance(1)
    assert provider.reads == 2
    provider.down = False
    assert await cache.key("a") is not None


@pytest.mark.parametrize("answer", [b"<html>", b"{}", b'{"keys": {}}', b'{"keys": []}', b'{"keys": [7]}', b"[" * 100_000, b"\xff"])
async def test_a_broken_answer_keeps_the_last_good_set(answer: bytes) -> None:
    provider = KeysProvider(rsa_jwk("a"))
    cache, clock = cached(provider)
    await cache.key("a")
    provider.answer = answer
    clock.advance(301)
    assert await cache.key("a") is not None
    assert provider.reads == 2


def test_only_signing_keys_of_our_two_algorithms_are_taken() -> None:
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    published = [
        rsa_jwk("rsa"),
        rsa_jwk("rsa-named", alg="RS256", use="sig"),
        ec_jwk("ec"),
        rsa_jwk("encryption", use="enc"),
        rsa_jwk("pss", alg="PS256"),
        rsa_jwk("hmac-by-name", alg="HS256"),
        ec_jwk("p384", ec.generate_private_key(ec.SECP384R1())),
        rsa_jwk("weak", weak),
        {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"},
        {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
        {"kty": "RSA", "kid": "empty"},
        {"kty": "EC", "kid": "off-curve", "crv": "P-256", "x": "AQ", "y": "AQ"},
        {"kty": ["RSA"], "kid": "odd"},
        {name: value for name, value in rsa_jwk("x").items() if name != "kid"},
        rsa_jwk("y", OTHER_RSA_KEY) | {"kid": 7},
    ]
    assert list(parse_jwks(json.dumps({"keys": published}).encode())) == ["rsa", "rsa-named", "ec"]


def test_a_private_key_published_by_mistake_is_taken_as_its_public_part() -> None:
    from jwt.algorithms import ECAlgorithm, RSAAlgorithm

    for private in (RSAAlgorithm.to_jwk(RSA_KEY, as_dict=True), ECAlgorithm.to_jwk(EC_KEY, as_dict=True)):
        (key,) = parse_jwks(json.dumps({"keys": [{**private, "kid": "a"}]}).encode()).values()
        assert not hasattr(key.key, "private_numbers")


async def test_the_set_is_read_over_the_outbound_seam() -> None:
    body = json.dumps({"keys": [rsa_jwk("a")]}).encode()
    outbound = Outbound()
    try:
        async with receiver(status_answer("200 OK", body=body)) as there:
            cache = JwksCache(jwks_fetch(outbound, there.url()), ManualClock().monotonic)
            assert await cache.key("a") is not None
            assert there.requests[0].startswith(b"GET /hook HTTP/1.1\r\n")
    finally:
        await outbound.aclose()


@pytest.mark.parametrize("line", ["302 Found", "404 Not Found", "500 Oops"])
async def test_an_answer_that_is_no_complete_200_is_no_key_set(line: str) -> None:
    outbound = Outbound()
    try:
        async with receiver(status_answer(line, "Location: http://127.0.0.1:9/", body=b'{"keys": []}')) as there:
            with pytest.raises(BadJwks):
                await jwks_fetch(outbound, there.url())()
        async with receiver(status_answer("200 OK", body=b" " * (256 * 1024 + 1))) as there:
            with pytest.raises(BadJwks):
                await jwks_fetch(outbound, there.url())()
        with pytest.raises(OutboundFailed):
            await jwks_fetch(outbound, there.url())()
    finally:
        await outbound.aclose()
