"""gzip for those who take it, and where it is never used."""

import gzip
import zlib

import httpx
import orjson
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from tests.http.asking import ask, bearer_fields
from tests.pages.site import Site
from tests.world import HOST, World
from transports.http.compression import may_be_compressed

TAKES = (b"accept-encoding", b"gzip, deflate, br")


async def notes_of(world: World, count: int) -> list[tuple[bytes, bytes]]:
    caller = await world.caller(Tier.ENTERPRISE)
    async with world.client(caller.secret) as http:
        for number in range(count):
            assert (await http.post("/v1/notes", json={"name": f"note-{number:03}-{'x' * 50}"})).status_code == 201
    return [bearer_fields(caller.secret)]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_long_answer_is_compressed_for_those_who_take_it(world: World, method: str) -> None:
    headers = await notes_of(world, 20)
    plain = await ask(world.door, target=b"/v1/notes?limit=100", headers=headers)
    coded = await ask(world.door, method, target=b"/v1/notes?limit=100", headers=[*headers, TAKES])
    assert (coded.headers["content-encoding"], coded.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert "content-encoding" not in plain.headers and plain.headers["vary"] == "Accept-Encoding"
    assert int(coded.headers["content-length"]) < len(plain.body) // 3
    if method == "GET":
        assert len(coded.body) == int(coded.headers["content-length"])
        assert gzip.decompress(coded.body) == plain.body
    else:
        assert coded.body == b""


async def test_a_short_answer_is_sent_as_it_is(world: World) -> None:
    answer = await ask(world.door, target=b"/v1/notes", headers=[*await notes_of(world, 2), TAKES])
    assert "content-encoding" not in answer.headers and "vary" not in answer.headers


@pytest.mark.cases
@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (b"gzip", True),
        (b"GZIP;q=1.0", True),
        (b"x-gzip", True),
        (b"*", True),
        (b"br, gzip ; q=0.001", True),
        (b"identity, *;q=0.5", True),
        (b"", False),
        (b"br", False),
        (b"identity", False),
        (b"gzip;q=0", False),
        (b"gzip;q=0.000", False),
        (b"gzip;q=0, *", False),
        (b"*;q=0", False),
        (b"gzip;q=nan", False),
        (b"gzip;q=2", False),
        (b"gzip;", True),
    ],
)
async def test_the_weights_of_a_client_are_obeyed(world: World, given: bytes, taken: bool) -> None:
    headers = [*await notes_of(world, 20), (b"accept-encoding", given)]
    answer = await ask(world.door, target=b"/v1/notes?limit=100", headers=headers)
    assert answer.status == 200
    assert (answer.headers.get("content-encoding") == "gzip") is taken


async def test_an_answer_in_pieces_is_compressed_as_it_goes(world: World) -> None:
    headers = {"authorization": f"Bearer {(await world.caller()).secret}", "accept-encoding": "gzip"}
    async with (
        httpx.AsyncClient(transport=httpx.ASGITransport(app=world.door), base_url=f"http://{HOST}") as http,
        http.stream("GET", "/v1/streams", headers=headers) as answer,
    ):
        coded = b"".join([part async for part in answer.aiter_raw()])
    assert answer.headers["content-encoding"] == "gzip" and "content-length" not in answer.headers
    assert len(coded) < 10_000
    assert gzip.decompress(coded) == b" " * 2_100_000


async def test_a_refusal_and_what_is_no_text_are_sent_as_they_are(world: World) -> None:
    headers = [bearer_fields((await world.caller()).secret), TAKES]
    for target in (b"/v1/notes?limit=" + b"9" * 2000, b"/v1/picture", b"/v1/broken"):
        try:
            answer = await ask(world.door, target=target, headers=headers)
        except RuntimeError:
            continue
        assert "content-encoding" not in answer.headers


def test_answers_with_secrets_and_answers_to_changes_are_never_compressed() -> None:
    refused = {name for name, operation in CATALOGUE.operations.items() if operation.read_only and not may_be_compressed(operation)}
    assert refused >= {"list_connectivity_intents", "get_connectivity_intent", "list_subscribers", "get_subscriber"}
    assert refused >= {"get_storefront_order", "list_storefront_buyer_orders", "get_intelligence_share", "list_api_keys"}
    assert not [each.id for each in CATALOGUE.operations.values() if not each.read_only and may_be_compressed(each)]
    assert not refused & {"get_invoice", "list_invoices", "list_connectivity_plans", "get_tariff", "cdr_aggregate"}


@pytest.mark.parametrize("path", ["/auth/sign-in", "/auth/sign-up", "/shop/nowhere"])
async def test_pages_of_people_and_shops_are_never_compressed(site: Site, path: str) -> None:
    answer = await ask(site.app, target=path.encode(), headers=[TAKES, (b"accept", b"text/html")], host=b"127.0.0.1")
    assert len(answer.body) > 1024
    assert "content-encoding" not in answer.headers


@pytest.mark.long
@pytest.mark.parametrize("path", ["/openapi.json", "/asyncapi.json", "/llms.txt"])
async def test_a_document_is_compressed_once_and_has_a_validator_for_each_coding(site: Site, path: str) -> None:
    target, host = path.encode(), b"127.0.0.1"
    plain = await ask(site.app, target=target, host=host)
    coded = await ask(site.app, target=target, host=host, headers=[TAKES])
    assert gzip.decompress(coded.body) == plain.body
    assert coded.headers["etag"] != plain.headers["etag"]
    assert {each.headers["vary"] for each in (plain, coded)} == {"Accept-Encoding"}
    for given, tags in ((TAKES, coded), (TAKES, plain), (None, plain), (None, coded)):
        headers = [(b"if-none-match", tags.headers["etag"].encode()), *([] if given is None else [given])]
        answer = await ask(site.app, target=target, host=host, headers=headers)
        assert (answer.status, answer.body, answer.headers["vary"]) == (304, b"", "Accept-Encoding")
        assert answer.headers["etag"] == (coded if given else plain).headers["etag"]


@pytest.mark.long
async def test_pages_of_the_reference_are_compressed(site: Site) -> None:
    plain = await ask(site.app, target=b"/docs", host=b"127.0.0.1")
    coded = await ask(site.app, target=b"/docs", host=b"127.0.0.1", headers=[TAKES])
    assert zlib.decompress(coded.body, 31) == plain.body
    assert (coded.headers["content-encoding"], coded.headers["vary"], plain.headers["vary"]) == (
        "gzip",
        "Accept-Encoding",
        "Accept-Encoding",
    )


async def test_a_client_that_knows_gzip_sees_the_same_answer(world: World) -> None:
    headers = await notes_of(world, 20)
    plain = await ask(world.door, target=b"/v1/notes?limit=100", headers=headers)
    secret = headers[0][1].decode().removeprefix("Bearer ")
    async with world.client(secret) as http:
        assert isinstance(http, httpx.AsyncClient)
        assert (await http.get("/v1/notes", params={"limit": 100})).json() == orjson.loads(plain.body)
