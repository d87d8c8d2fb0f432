"""Bodies: read after authentication, counted, and JSON that means one thing (abuse cases 32 and 33)."""

import orjson
import pytest

from registry.caller import Tier
from tests.http.asking import GONE, RawAnswer, ask, bearer_fields, json_body
from tests.world import World

LIMIT = 256 * 1024


async def post(world: World, raw: bytes) -> RawAnswer:
    caller = await world.caller()
    return await ask(world.door, "POST", b"/v1/notes", [bearer_fields(caller.secret), *json_body(raw)], [raw])


def padded(size: int) -> bytes:
    """A valid body of exactly so many bytes."""
    return b'{"name":"x"' + b" " * (size - 12) + b"}"


async def test_a_body_is_taken_up_to_its_limit(world: World) -> None:
    assert (await post(world, padded(LIMIT))).status == 201
    answer = await post(world, padded(LIMIT + 1))
    assert (answer.status, answer.code, answer.pieces_left) == (413, "body_too_large", 1)


async def test_a_body_without_a_length_is_counted_while_it_streams(world: World) -> None:
    caller = await world.caller()
    head = [bearer_fields(caller.secret), (b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    fits = [padded(LIMIT)[start : start + 65536] for start in range(0, LIMIT, 65536)]
    assert (await ask(world.door, "POST", b"/v1/notes", head, fits)).status == 201
    answer = await ask(world.door, "POST", b"/v1/notes", head, [*[b" " * 65536] * 5, b" " * 65536, b" " * 65536])
    assert (answer.status, answer.code, answer.pieces_left) == (413, "body_too_large", 2)


async def test_a_caller_without_a_credential_is_refused_before_the_body_is_read(world: World) -> None:
    for length in (b"12", b"99999999999"):
        answer = await ask(world.door, "POST", b"/v1/notes", [(b"content-length", length)], [b'{"name":"x"}'])
        assert (answer.status, answer.pieces_left) == (401, 1)


@pytest.mark.parametrize("pieces", [[GONE], [b'{"na', GONE], [b'{"na', b'me":', GONE]])
async def test_a_client_that_hangs_up_is_no_fault_and_changes_nothing(world: World, pieces: list[bytes | None]) -> None:
    caller = await world.caller()
    answer = await ask(world.door, "POST", b"/v1/notes", [bearer_fields(caller.secret), *json_body(b'{"name":"x"}')], pieces)
    assert (answer.status, answer.code) == (400, "client_disconnected")
    assert world.faults == []
    assert world.lines[-1].code == "client_disconnected"
    listed = await ask(world.door, "GET", b"/v1/notes", [bearer_fields(caller.secret)])
    assert orjson.loads(listed.body)["data"] == []


@pytest.mark.cases
@pytest.mark.rule("2.0.1")
@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        (b"application/json", 201),
        (b"Application/JSON; charset=UTF-8", 201),
        (b'application/json;charset="utf-8"', 201),
        (b"application/json; charset=latin-1", 415),
        (b"application/json; boundary=x", 415),
        (b"application/jsonp", 415),
        (b"application/problem+json", 415),
        (b"application/x-www-form-urlencoded", 415),
        (b"text/plain", 415),
        (b"", 415),
        (None, 415),
    ],
)
async def test_a_body_is_json_and_says_so(world: World, content_type: bytes | None, status: int) -> None:
    caller = await world.caller()
    named = [] if content_type is None else [(b"content-type", content_type)]
    answer = await ask(
        world.door, "POST", b"/v1/notes", [bearer_fields(caller.secret), (b"content-length", b"12"), *named], [b'{"name":"x"}']
    )
    assert answer.status == status
    assert status == 201 or answer.code == "unsupported_media_type"


@pytest.mark.parametrize(("coding", "status"), [(b"identity", 201), (b"gzip", 415), (b"br, identity", 415), (b"", 415)])
async def test_a_compressed_body_is_refused(world: World, coding: bytes, status: int) -> None:
    caller = await world.caller()
    raw = b'{"name":"x"}'
    answer = await ask(
        world.door, "POST", b"/v1/notes", [bearer_fields(caller.secret), *json_body(raw), (b"content-encoding", coding)], [raw]
    )
    assert answer.status == status


async def test_a_post_without_input_needs_no_body_and_no_type(world: World) -> None:
    caller = await world.caller()
    answer = await ask(
        world.door,
        "POST",
        b"/v1/subscribers/issue-from-inventory",
        [bearer_fields(caller.secret), (b"idempotency-key", b"k"), (b"content-length", b"0")],
    )
    assert answer.status == 200


@pytest.mark.cases
@pytest.mark.parametrize(
    "quantity",
    [
        "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "-0", "0", "-0.0", "1000000.0001", "true", '"5"', "9" * 30, "9" * 5000,
        "9007199254740992", "[5]", "{}", "5.", ".5", "05", "+5", "0x5", "5e", "١",
    ],
)  # fmt: skip
async def test_a_quantity_is_a_finite_number_inside_its_range(world: World, quantity: str) -> None:
    answer = await post(world, b'{"name":"x","quantity_mb":' + quantity.encode() + b"}")
    assert (answer.status, set(orjson.loads(answer.body)) >= {"error", "code", "request_id"}) == (400, True)
    assert world.faults == []


@pytest.mark.parametrize("quantity", ["0.001", "5", "1e3", "1000000", "1000000.0"])
async def test_a_quantity_inside_its_range_is_taken(world: World, quantity: str) -> None:
    assert (await post(world, b'{"name":"x","quantity_mb":' + quantity.encode() + b"}")).status == 201


@pytest.mark.cases
@pytest.mark.parametrize(
    "raw",
    [
        b'{"name":"x","name":"x"}',
        b'{"name":"x","\\u006eame":"y"}',
        b'{"name":"x","tags":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"name":"x","tags":' + b"[" * 33 + b"]" * 33 + b"}",
        b"[" * 200_000,
        b'{"a":' * 40_000,
        b'{"name":"x","quantity_mb":' + b"5" * 5000 + b"}",
        b'{"name":"\\ud800"}',
        b'{"name":"\\udc00\\ud800"}',
        b'{"\\ud800":1}',
        b'{"name":"a\\u0000b"}',
        b'{"name":"a\x00b"}',
        b'{"name":"' + b"x" * (64 * 1024 + 1) + b'"}',
        b'{"name":"x","tags":[' + b'"",' * 20_000 + b'""]}',
        b'\xef\xbb\xbf{"name":"x"}',
        b'{"name":"\xff"}',
        '{"name":"x"}'.encode("utf-16"),
        b'{"name":"x"} {}',
        b'{"name":"x",}',
        b"{'name':'x'}",
        b'["name"]',
        b'"x"',
        b"null",
        b"5",
        b" ",
        b'{"name":"x","nmae":"y"}',
        b"{}",
    ],
)
async def test_json_that_is_not_plain_is_a_bad_request_and_never_a_fault(world: World, raw: bytes) -> None:
    answer = await post(world, raw)
    assert (answer.status, set(orjson.loads(answer.body)) >= {"error", "code", "request_id"}) == (400, True)
    assert world.faults == []


async def test_a_query_on_an_operation_with_a_body_is_refused(world: World) -> None:
    caller = await world.caller()
    raw = b'{"name":"x"}'
    answer = await ask(world.door, "POST", b"/v1/notes?name=y", [bearer_fields(caller.secret), *json_body(raw)], [raw])
    assert (answer.status, answer.code) == (400, "unknown_field")


@pytest.mark.parametrize(
    "query", [b"limit=0", b"limit=101", b"limit=1&limit=2", b"limit=x", b"limit=%ff", b"limit=\xff", b"limt=1", b"a&" * 200]
)
async def test_a_query_that_cannot_be_meant_is_refused(world: World, query: bytes) -> None:
    caller = await world.caller()
    assert (await ask(world.door, "GET", b"/v1/notes?" + query, [bearer_fields(caller.secret)])).status == 400


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "header"),
    [
        ("DELETE", b"/v1/notes/x?confirm_token=abc", b"", "confirm_token", "X-Confirm-Token"),
        ("DELETE", b"/v1/notes/x?confirmToken=abc", b"", "confirmToken", "X-Confirm-Token"),
        ("DELETE", b"/v1/notes/x?X-Confirm-Token=abc", b"", "X-Confirm-Token", "X-Confirm-Token"),
        ("POST", b"/v1/notes", b'{"name":"x","idempotency_key":"k"}', "idempotency_key", "Idempotency-Key"),
        ("POST", b"/v1/notes?idempotencyKey=k", b'{"name":"x"}', "idempotencyKey", "Idempotency-Key"),
    ],
)
async def test_a_header_that_came_as_a_field_is_told_where_it_belongs(
    world: World, method: str, path: bytes, body: bytes, field: str, header: str
) -> None:
    caller = await world.caller(Tier.PRO)
    head = [bearer_fields(caller.secret), *(json_body(body) if body else [])]
    answer = await ask(world.door, method, path, head, [body])
    said = orjson.loads(answer.body)
    assert (answer.status, said["code"], said["param"]) == (400, "unknown_field", field)
    assert said["error"].endswith(f"it is the header {header}") and f"as the header {header}" in said["hint"]
    assert "abc" not in said["error"] + said["hint"]


async def test_a_confirm_token_means_nothing_where_none_is_asked_for(world: World) -> None:
    answer = await post(world, b'{"name":"x","confirm_token":"abc"}')
    assert (answer.code, orjson.loads(answer.body)["hint"]) == ("unknown_field", "Remove it. Known fields: name, quantity_mb, tags")
