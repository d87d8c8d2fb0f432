"""What every answer carries."""

import re

import httpx
import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from registry.limits import Limits, TierLimits
from tests.http.asking import ask, bearer_fields
from tests.http.conftest import HTTP_OPERATIONS
from tests.world import World, open_world
from transports.http.asgi import Receive, Scope, Send
from transports.http.door import InnerApplication

# RFC 9651: a list of strings, each with integer parameters.
KEY = r"[a-z*][a-z0-9_.*-]*"
ITEM = rf'"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"(?:;[ ]*{KEY}=-?[0-9]{{1,15}})*'
LIST = re.compile(rf"{ITEM}(?:[ \t]*,[ \t]*{ITEM})*")


def parameters(value: str) -> dict[str, int]:
    """The parameters of a structured field of one item."""
    assert LIST.fullmatch(value), f"not an RFC 9651 list of strings: {value}"
    return {name: int(number) for name, number in re.findall(rf";[ ]*({KEY})=(-?[0-9]+)", value)}


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/health", 200),
        ("GET", "/v1/notes", 200),
        ("HEAD", "/v1/notes", 200),
        ("POST", "/v1/notes", 400),
        ("GET", "/v1/notes?limit=0", 400),
        ("DELETE", "/v1/notes/x", 202),
        ("GET", "/nope", 404),
        ("PUT", "/health", 405),
        ("GET", "/v1/notes/%zz", 400),
        ("GET", "/" + "x" * 9000, 414),
        ("GET", "/v1/broken", 500),
        ("GET", "/v1/misspelt", 500),
        ("GET", "/v1/split", 500),
    ],
)
async def test_every_answer_carries_the_id_that_the_log_and_the_body_have(
    world: World, http: httpx.AsyncClient, method: str, target: str, status: int
) -> None:
    answer = await http.request(method, target)
    assert answer.status_code == status
    request_id = answer.headers["request-id"]
    assert re.fullmatch(r"req_[0-9a-hjkmnp-tv-z]{26}", request_id)
    assert (world.lines[-1].request_id, world.lines[-1].status) == (request_id, status)
    assert answer.headers["x-content-type-options"] == "nosniff"
    if status >= 400:
        assert answer.headers["content-type"] == "application/json"
        body = answer.json()
        assert body["request_id"] == request_id
        assert body["code"] == world.lines[-1].code
        assert body["error"]


async def test_a_401_a_413_a_415_and_a_421_carry_the_id_too(world: World) -> None:
    caller = await world.caller()
    big = [bearer_fields(caller.secret), (b"content-type", b"application/json"), (b"content-length", b"999999")]
    answers = [
        await ask(world.door, "GET", b"/v1/notes"),
        await ask(world.door, "POST", b"/v1/notes", big),
        await ask(world.door, "POST", b"/v1/notes", [bearer_fields(caller.secret), (b"content-length", b"2")], [b"{}"]),
        await ask(world.door, "GET", b"/v1/notes", host=b"evil.test"),
    ]
    assert [answer.status for answer in answers] == [401, 413, 415, 421]
    for answer in answers:
        assert answer.headers["request-id"].encode() in answer.body


async def test_ids_of_requests_differ(http: httpx.AsyncClient) -> None:
    assert len({(await http.get("/health")).headers["request-id"] for _ in range(5)}) == 5


async def test_the_quota_is_told_in_structured_fields(http: httpx.AsyncClient) -> None:
    answer = await http.get("/v1/notes")
    assert parameters(answer.headers["ratelimit-policy"]) == {"q": 50_000, "w": 86_400}
    assert parameters(answer.headers["ratelimit"]) == {"r": 49_999, "t": 43_200}
    again = await http.get("/v1/notes")
    assert parameters(again.headers["ratelimit"])["r"] == 49_998


async def test_what_is_free_tells_no_quota(http: httpx.AsyncClient, anonymous: httpx.AsyncClient) -> None:
    for answer in (
        await http.get("/health"),
        await anonymous.get("/v1/notes"),
        await http.get("/nope"),
        await http.post("/v1/notes", json={}),
    ):
        assert "ratelimit" not in answer.headers


async def test_an_exhausted_quota_is_a_429_with_the_time_to_wait(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    tiers = {**Limits().tiers, Tier.FREE: TierLimits(2, 5, 10, 10)}
    async with open_world(tmp_path_factory.mktemp("small"), HTTP_OPERATIONS, limits=Limits(tiers=tiers)) as small:
        caller = await small.caller(Tier.FREE)
        async with small.client(caller.secret) as http:
            answers = [await http.get("/v1/notes") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].headers["retry-after"] == "43201"
    assert answers[2].json() == snapshot(
        {
            "error": "The daily quota of 2 calls is used up; it starts again at 2027-01-16T00:00:00Z",
            "code": "quota_exceeded",
            "request_id": "req_01mcckg2g0000000000000000a",
            "limit": 2,
            "used": 2,
            "reset_at": "2027-01-16T00:00:00Z",
            "upgrade_url": "https://reseller.test/upgrade",
        }
    )


async def test_a_burst_is_a_429_with_the_seconds_to_wait(world: World) -> None:
    caller = await world.caller(Tier.FREE)
    async with world.client(caller.secret) as http:
        answers = [await http.get("/v1/notes") for _ in range(11)]
        assert [answer.status_code for answer in answers] == [200] * 10 + [429]
        assert (answers[10].json()["code"], answers[10].headers["retry-after"]) == ("rate_limited", "1")
        world.clock.advance(1)
        assert (await http.get("/v1/notes")).status_code == 200


async def test_what_needs_a_credential_is_never_cached_and_what_is_public_may_be(http: httpx.AsyncClient) -> None:
    assert (await http.get("/v1/notes")).headers["cache-control"] == "no-store"
    assert (await http.get("/nope")).headers["cache-control"] == "no-store"
    assert "cache-control" not in (await http.get("/health")).headers


async def test_an_answer_that_is_not_json_keeps_its_own_type_and_caching(http: httpx.AsyncClient) -> None:
    answer = await http.get("/v1/picture")
    assert answer.text == "<svg/>"
    assert dict(answer.headers) == snapshot(
        {
            "content-type": "image/svg+xml",
            "x-content-type-options": "nosniff",
            "content-length": "6",
            "request-id": "req_01mcckg2g00000000000000008",
            "cache-control": "private, max-age=60",
            "content-disposition": "inline",
            "ratelimit-policy": '"tier";q=50000;w=86400',
            "ratelimit": '"tier";r=49999;t=43200',
        }
    )


async def test_a_page_links_to_the_next_one_until_there_is_none(http: httpx.AsyncClient) -> None:
    names = ["n a", "n&b", "n/c", "né", "nz"]
    for name in names:
        assert (await http.post("/v1/notes", json={"name": name})).status_code == 201
    found: list[str] = []
    target: str | None = "/v1/notes?prefix=n&limit=2"
    while target is not None:
        answer = await http.get(target)
        found += [note["name"] for note in answer.json()["data"]]
        target = answer.links["next"]["url"] if "next" in answer.links else None
        assert answer.json()["has_more"] is (target is not None)
    assert found == sorted(names)


async def test_the_link_keeps_the_query_and_replaces_the_cursor(http: httpx.AsyncClient) -> None:
    for name in ("a", "b>", "c", "d"):
        await http.post("/v1/notes", json={"name": name})
    answer = await http.get("/v1/notes?starting_after=a&limit=1&prefix=")
    assert answer.headers["link"] == '</v1/notes?limit=1&prefix=&starting_after=b%3E>; rel="next"'


async def test_a_confirm_token_travels_in_its_header(http: httpx.AsyncClient) -> None:
    challenge = await http.delete("/v1/notes/x")
    assert (challenge.status_code, challenge.json()["route"]) == (202, "DELETE /v1/notes/{name}")
    token = challenge.json()["confirm_token"]
    assert (await http.delete("/v1/notes/other", headers={"X-Confirm-Token": token})).json()["code"] == "confirm_token_invalid"
    assert (await http.delete("/v1/notes/x", headers={"X-Confirm-Token": token})).status_code == 200
    assert (await http.delete("/v1/notes/x", headers={"X-Confirm-Token": token})).json()["code"] == "confirm_token_invalid"


async def test_a_second_call_with_the_same_key_returns_the_same_bytes(http: httpx.AsyncClient) -> None:
    first, second, other = [await http.post("/v1/notes", json={"name": name}, headers={"Idempotency-Key": "k"}) for name in ("x", "x", "y")]
    assert (first.status_code, first.json()) == (201, {"name": "x", "writes": 1})
    assert (second.status_code, second.content, second.headers["idempotent-replayed"]) == (201, first.content, "true")
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")


async def test_a_fault_of_ours_shows_its_request_id_and_nothing_else(world: World, http: httpx.AsyncClient) -> None:
    answer = await http.get("/v1/broken")
    assert answer.json() == {
        "error": "Internal error; quote the request id when you report it",
        "code": "internal",
        "request_id": answer.headers["request-id"],
    }
    ((request_id, operation, error),) = world.faults
    assert (request_id, operation, type(error)) == (answer.headers["request-id"], "break_down", RuntimeError)


async def test_a_fault_of_the_door_itself_is_answered_reported_and_handed_to_the_server(world: World) -> None:
    caller = await world.caller()
    with pytest.raises(UnicodeEncodeError):
        await ask(world.door, "GET", b"/v1/misspelt", [bearer_fields(caller.secret)])
    ((_, operation, _),) = world.faults
    assert (operation, world.lines[-1].status, world.lines[-1].code) == ("misspell", 500, "internal")


async def test_an_unsigned_push_sees_the_headers_it_has_to_verify(world: World) -> None:
    answer = await ask(world.door, "POST", b"/v1/pushes", [(b"x-signature", b"v1=abc")])
    assert answer.body == b'{"route":"take_push","value":"v1=abc"}'


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    """An inner application that fails below /docs/broken."""
    if scope["path"] == "/docs/broken":
        raise RuntimeError("no page")
    await send({"type": "http.response.start", "status": 203, "headers": [(b"content-type", b"text/html")]})
    if scope["path"] == "/docs/half":
        raise RuntimeError("half a page")
    await send({"type": "http.response.body", "body": b"page"})


@pytest.fixture
def inner() -> InnerApplication:
    return InnerApplication(page, paths=frozenset({"/"}), prefixes=("/docs", "/health"))


async def test_other_paths_go_to_the_inner_application_with_our_request_id(
    world: World, tmp_path_factory: pytest.TempPathFactory, inner: InnerApplication
) -> None:
    async with open_world(tmp_path_factory.mktemp("inner"), HTTP_OPERATIONS, inner=inner) as housed, housed.client() as http:
        for path in ("/", "/docs", "/docs/secret-token"):
            answer = await http.get(path)
            assert (answer.status_code, answer.text) == (203, "page")
            assert answer.headers["request-id"] == housed.lines[-1].request_id
        assert [line.path for line in housed.lines] == ["/", "/docs", "/docs"]
        assert (await http.get("/docsx")).status_code == 404
        assert (await http.get("/health")).json()["ok"] is True
        assert (await http.get("/docs", headers={"Origin": "https://evil.test"})).status_code == 403
        broken = await http.get("/docs/broken")
        assert (broken.status_code, broken.json()["code"]) == (500, "internal")
        assert (await http.get("/docs/half")).status_code == 203
        assert [(line.status, line.path) for line in housed.lines[-2:]] == [(500, "/docs"), (203, "/docs")]
        assert [str(error) for _, _, error in housed.faults] == ["no page", "half a page"]
