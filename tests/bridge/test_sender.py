"""Who may push (docs/security.md): fail closed, in every combination."""

import logging
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

import httpx
import orjson
import pytest

from registry.ports import SharedSecrets
from tests.bridge.conftest import BRIDGE
from tests.bridge.pushing import OK, PUSH_SECRET, PUSHES, countries, place, remembered, signed_headers
from tests.http.asking import ask, bearer_fields
from tests.network_facts import INTERNAL
from tests.registry.ledgers import audited
from tests.world import SettableClock, World, open_world
from transports.http.door import HttpDoor
from transports.http.request import HttpRules
from transports.logs import LibraryLog, Logs

BODY = orjson.dumps(place())
TYPED = {"content-type": "application/json"}
TOKEN = f"?token={quote(PUSH_SECRET, safe='')}"


async def send(
    http: httpx.AsyncClient, query: str = "", headers: Mapping[str, str] = MappingProxyType({}), *, body: bytes = BODY
) -> httpx.Response:
    return await http.post(PUSHES + query, content=body, headers={**TYPED, **headers})


async def must_refuse(world: World, answer: httpx.Response) -> None:
    """401, and nothing happened."""
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith('Bearer realm="connectivity"')
    assert PUSH_SECRET not in answer.text and INTERNAL not in answer.text
    assert (await remembered(world), await countries(world)) == (0, [])


@pytest.mark.long
async def test_three_ways_lead_in(world: World, upstream: httpx.AsyncClient) -> None:
    ways: list[tuple[str, dict[str, str]]] = [
        ("", {"Authorization": f"Bearer {INTERNAL}"}),
        (TOKEN, {}),
        ("", signed_headers(BODY, world)),
    ]
    for query, headers in ways:
        answer = await send(upstream, query, headers)
        assert (answer.status_code, answer.json()) == (200, OK)
    assert await countries(world) == ["FR"]


@pytest.mark.cases
@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", {}),
        ("", {"Authorization": "Bearer"}),
        ("", {"Authorization": "Bearer " + INTERNAL + "x"}),
        ("", {"Authorization": "Basic " + INTERNAL}),
        ("", {"Authorization": "Bearer " + PUSH_SECRET}),
        ("?token=" + INTERNAL, {}),
        ("?token=", {}),
        ("?token=%20", {}),
        ("?TOKEN=" + quote(PUSH_SECRET), {}),
        ("?access_token=" + quote(PUSH_SECRET), {}),
        (TOKEN + "x", {}),
        (TOKEN + TOKEN.replace("?", "&"), {}),
        (TOKEN + "&token=x", {}),
        ("?" + "&".join(f"a{n}=1" for n in range(101)) + TOKEN.replace("?", "&"), {}),
        (TOKEN, {"webhook-signature": "v1,AAAA"}),
        ("", {"Authorization": f"Bearer {INTERNAL}", "webhook-signature": ""}),
        ("", {"Authorization": f"Bearer {INTERNAL}", "webhook-signature": "v1,AAAA", "webhook-id": "a", "webhook-timestamp": "1800014400"}),
    ],
)
async def test_everything_else_is_a_401(world: World, upstream: httpx.AsyncClient, query: str, headers: dict[str, str]) -> None:
    await must_refuse(world, await send(upstream, query, headers))


async def test_an_api_key_is_no_way_in(world: World, http: httpx.AsyncClient) -> None:
    await must_refuse(world, await send(http))


@pytest.mark.parametrize("change", [{"webhook-id": "msg_2"}, {"webhook-timestamp": "1800014401"}, {"webhook-signature": "v1,AAAA"}])
async def test_a_signature_is_over_all_its_parts(world: World, upstream: httpx.AsyncClient, change: dict[str, str]) -> None:
    await must_refuse(world, await send(upstream, headers={**signed_headers(BODY, world), **change}))


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp"])
async def test_a_signature_needs_its_id_and_time(world: World, upstream: httpx.AsyncClient, missing: str) -> None:
    headers = signed_headers(BODY, world)
    del headers[missing]
    await must_refuse(world, await send(upstream, headers=headers))


async def test_a_signature_of_another_body_or_secret_is_refused(world: World, upstream: httpx.AsyncClient) -> None:
    await must_refuse(world, await send(upstream, body=BODY + b" ", headers=signed_headers(BODY, world)))
    await must_refuse(
        world, await send(upstream, headers=signed_headers(BODY, world, secret="whsec_b3RoZXItc2VjcmV0LW9mLXNvbWVib2R5LWVsc2U="))
    )


@pytest.mark.parametrize(("age", "status"), [(300, 200), (-300, 200), (301, 401), (-301, 401)])
async def test_a_signature_is_good_for_300_seconds(world: World, upstream: httpx.AsyncClient, age: int, status: int) -> None:
    assert (await send(upstream, headers=signed_headers(BODY, world, age=age))).status_code == status


@pytest.mark.parametrize("blank", ["", "   "])
async def test_without_secrets_nobody_gets_in(tmp_path: Path, blank: str) -> None:
    async with open_world(tmp_path, BRIDGE, secrets=SharedSecrets(internal=blank, bridge=blank)) as world, world.client() as http:
        ways: list[tuple[str, dict[str, str]]] = [
            ("", {}),
            ("", {"Authorization": "Bearer "}),
            ("", {"Authorization": f"Bearer {blank}"}),
            ("?token=" + quote(blank), {}),
            ("", signed_headers(BODY, world)),
        ]
        for query, headers in ways:
            await must_refuse(world, await send(http, query, headers))


async def test_each_secret_opens_its_own_way_only(tmp_path: Path) -> None:
    async with open_world(tmp_path, BRIDGE, secrets=SharedSecrets(internal=INTERNAL)) as world, world.client() as http:
        await must_refuse(world, await send(http, "?token=" + INTERNAL))
        await must_refuse(world, await send(http, headers=signed_headers(BODY, world)))
        assert (await send(http, headers={"Authorization": f"Bearer {INTERNAL}"})).status_code == 200


async def test_a_secret_that_is_no_base64_verifies_no_signature_and_still_opens_the_address(tmp_path: Path) -> None:
    plain = "not base64: a plain sentence"
    async with open_world(tmp_path, BRIDGE, secrets=SharedSecrets(bridge=plain)) as world, world.client() as http:
        answer = await send(http, headers=signed_headers(BODY, world))
        assert (answer.status_code, plain in answer.text) == (401, False)
        assert "must be base64" in answer.json()["error"]
        assert (await send(http, f"?token={quote(plain)}")).status_code == 200
        assert world.faults == []


async def test_an_unsigned_body_is_not_read_before_its_sender_is_known(world: World) -> None:
    typed = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]
    answer = await ask(world.door, "POST", PUSHES.encode(), [bearer_fields("wrong"), *typed], [BODY])
    assert (answer.status, answer.pieces_left) == (401, 1)
    answer = await ask(world.door, "POST", (PUSHES + "?token=wrong").encode(), typed, [BODY])
    assert (answer.status, answer.pieces_left) == (401, 1)


async def test_a_body_over_256_kib_is_refused_signed_or_not(world: World, upstream: httpx.AsyncClient) -> None:
    large = b'{"a":"' + b"x" * (256 * 1024) + b'"}'
    assert (await send(upstream, TOKEN, body=large)).status_code == 413
    assert (await send(upstream, body=large, headers=signed_headers(large, world))).status_code == 413


async def test_pushes_have_no_burst_limit(world: World, bridge: httpx.AsyncClient) -> None:
    codes = {(await bridge.post(PUSHES, json={"n": n})).status_code for n in range(150)}
    assert codes == {200}
    assert await remembered(world) == 150


async def test_no_log_line_holds_the_token_of_the_address(world: World) -> None:
    pieces: list[bytes] = []
    logs = Logs(pieces.append, SettableClock(), secrets=[PUSH_SECRET, INTERNAL])
    bare = Logs(pieces.append, SettableClock())  # masking by pattern alone
    door = HttpDoor(world.pipeline, rules=HttpRules(hosts=frozenset({"*"})), log=logs.request, fault=logs.fault)
    typed = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]
    path = PUSHES.encode()
    answers = [
        await ask(door, "POST", path + TOKEN.encode(), typed, [BODY]),
        await ask(door, "POST", path + TOKEN.encode() + b"x", typed, [BODY]),
        await ask(door, "POST", path + TOKEN.encode(), [(b"content-type", b"text/plain"), typed[1]], [BODY]),
        await ask(door, "POST", path + TOKEN.encode() + b"&a=%ff\xff", typed, [BODY]),
        await ask(door, "GET", path + TOKEN.encode()),
        await ask(door, "POST", path + b"x" + TOKEN.encode(), typed, [BODY]),
    ]
    assert [answer.status for answer in answers] == [200, 401, 200, 400, 405, 404]
    for log in (logs, bare):
        logger = logging.Logger("server")
        logger.addHandler(LibraryLog(log))
        logger.error('"POST %s%s HTTP/1.1" 500', PUSHES, TOKEN)
        log.fault("req_1", "receive_bridge4ip_webhook", ValueError(f"{PUSHES}{TOKEN} {PUSHES}?token={PUSH_SECRET}"))
        log.flush()
    text = b"".join(pieces).decode() + "".join(answer.body.decode() for answer in answers)
    for form in (PUSH_SECRET, quote(PUSH_SECRET, safe=""), PUSH_SECRET.removeprefix("whsec_"), INTERNAL):
        assert form not in text


async def test_a_push_that_was_taken_is_recorded_as_the_bridges(world: World, upstream: httpx.AsyncClient) -> None:
    assert (await send(upstream, TOKEN)).status_code == 200
    row = (await world.store.read(audited))[-1]
    assert (row.operation, row.principal, row.outcome, row.organisation) == ("receive_bridge4ip_webhook", "internal", "ok", "")
