"""Headers, sizes, hosts and origins: whatever can be read in two ways is refused (abuse case 37)."""

import pytest

from tests.http.asking import ask, bearer_fields, json_body
from tests.world import HOST, ORIGIN, World
from transports.http.request import HttpRules

BODY = b'{"name":"x"}'


@pytest.mark.cases
@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "idempotency-key",
        "x-idempotency-key",
        "x-confirm-token",
        "content-type",
        "host",
        "content-length",
        "origin",
        "transfer-encoding",
    ],
)
@pytest.mark.parametrize("other", [b"1", b"2"])
async def test_a_header_that_decides_something_may_come_once(world: World, name: str, other: bytes) -> None:
    caller = await world.caller()
    twice = [(name.encode(), b"1"), (name.encode(), other)]
    rest = [header for header in [bearer_fields(caller.secret), *json_body(BODY)] if header[0] != name.encode()]
    answer = await ask(world.door, "POST", b"/v1/notes", [*twice, *rest], [BODY], host=None if name == "host" else HOST.encode())
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert name in answer.body.decode()


@pytest.mark.cases
@pytest.mark.parametrize(
    "headers",
    [
        [(b"content-length", b"12"), (b"transfer-encoding", b"chunked")],
        [(b"transfer-encoding", b"chunked"), (b"content-length", b"0")],
        [(b"transfer-encoding", b"gzip, chunked")],
        [(b"transfer-encoding", b"identity")],
        [(b"transfer-encoding", b"")],
        [(b"content-length", b"+12")],
        [(b"content-length", b"-1")],
        [(b"content-length", b"0x0c")],
        [(b"content-length", b"12, 12")],
        [(b"content-length", b"")],
        [(b"content-length", "١٢".encode())],
        [(b"content-length", b"9" * 40)],
        [(b"x-note", b"a\r\n b")],
        [(b"x-note", b"a\x00b")],
        [(b"x-note", b"a\x7f")],
        [(b"x-confirm-token", b"a\x1bb")],
    ],
)
async def test_a_body_has_one_length_and_a_header_one_line(world: World, headers: list[tuple[bytes, bytes]]) -> None:
    caller = await world.caller()
    answer = await ask(
        world.door, "POST", b"/v1/notes", [bearer_fields(caller.secret), (b"content-type", b"application/json"), *headers], [BODY]
    )
    assert (answer.status, answer.code) == (400, "invalid_request")


async def test_a_tab_inside_a_header_is_no_control_character(world: World) -> None:
    assert (await ask(world.door, headers=[(b"x-note", b"a\tb \xe9")])).status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD"])
@pytest.mark.parametrize("header", [(b"content-length", b"2"), (b"transfer-encoding", b"chunked")])
async def test_a_body_where_none_belongs_is_refused_rather_than_ignored(world: World, method: str, header: tuple[bytes, bytes]) -> None:
    caller = await world.caller()
    answer = await ask(world.door, method, b"/v1/notes/x", [bearer_fields(caller.secret), header], [b"{}"])
    assert (answer.status, answer.pieces_left) == (400, 1)


ISSUE = b"/v1/subscribers/issue-from-inventory"


@pytest.mark.cases
@pytest.mark.rule("4.2.48")
@pytest.mark.parametrize(
    ("names", "status"),
    [
        ({b"idempotency-key": b"a"}, 200),
        ({b"x-idempotency-key": b"a"}, 200),
        ({b"idempotency-key": b"a", b"x-idempotency-key": b"a"}, 200),
        ({b"idempotency-key": b"a", b"x-idempotency-key": b"b"}, 400),
        ({b"idempotency-key": b"", b"x-idempotency-key": b"b"}, 400),
        ({b"idempotency-key": b""}, 400),
        ({b"idempotency-key": b"a b"}, 400),
        ({b"idempotency-key": b"\xe9"}, 400),
        ({b"idempotency-key": b"k" * 255}, 200),
        ({b"idempotency-key": b"k" * 256}, 400),
        ({}, 400),
    ],
)
async def test_the_key_is_taken_under_both_names_and_must_be_one(world: World, names: dict[bytes, bytes], status: int) -> None:
    caller = await world.caller()
    answer = await ask(world.door, "POST", ISSUE, [bearer_fields(caller.secret), *names.items()])
    assert answer.status == status


async def test_the_two_names_of_the_key_name_one_call(world: World) -> None:
    caller = await world.caller()
    first = await ask(world.door, "POST", ISSUE, [bearer_fields(caller.secret), (b"idempotency-key", b"k")])
    again = await ask(world.door, "POST", ISSUE, [bearer_fields(caller.secret), (b"x-idempotency-key", b"k")])
    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers


@pytest.mark.parametrize(
    ("value", "challenge"),
    [
        (None, 'Bearer realm="connectivity"'),
        (b"Basic YTpi", 'Bearer realm="connectivity"'),
        (b"ak_0123", 'Bearer realm="connectivity"'),
        (b"", 'Bearer realm="connectivity"'),
        (b"Bearer", 'Bearer realm="connectivity", error="invalid_token"'),
        (b"Bearer ", 'Bearer realm="connectivity", error="invalid_token"'),
        (b"Bearer    ", 'Bearer realm="connectivity", error="invalid_token"'),
        (b"Bearer ak_0123", 'Bearer realm="connectivity", error="invalid_token"'),
        (b"Bearer \xff", 'Bearer realm="connectivity", error="invalid_token"'),
        (b"Bearer a.b.c", 'Bearer realm="connectivity", error="invalid_token"'),
    ],
)
async def test_a_401_tells_whether_a_credential_was_presented(world: World, value: bytes | None, challenge: str) -> None:
    answer = await ask(world.door, "GET", b"/v1/notes", [] if value is None else [(b"authorization", value)])
    assert (answer.status, answer.code, answer.headers["www-authenticate"]) == (401, "unauthorized", challenge)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
async def test_the_scheme_is_read_in_any_case(world: World, scheme: str) -> None:
    caller = await world.caller()
    answer = await ask(world.door, "GET", b"/v1/notes", [(b"authorization", f"{scheme} {caller.secret}".encode())])
    assert answer.status == 200


async def test_a_token_in_the_query_never_authenticates(world: World) -> None:
    caller = await world.caller()
    answer = await ask(world.door, "GET", f"/v1/notes?access_token={caller.secret}".encode())
    assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Bearer realm="connectivity"')
    both = await ask(world.door, "GET", f"/v1/notes?access_token={caller.secret}".encode(), [bearer_fields(caller.secret)])
    assert (both.status, both.code) == (400, "unknown_field")
    assert caller.secret not in both.body.decode()


RULES = HttpRules(hosts=frozenset())


async def test_the_url_is_taken_up_to_its_limit(world: World) -> None:
    path = b"/v1/notes?prefix="
    caller = await world.caller()
    fits = path + b"x" * (RULES.url_bytes - len(path))
    assert (await ask(world.door, "GET", fits, [bearer_fields(caller.secret)])).status == 200
    answer = await ask(world.door, "GET", fits + b"x", [bearer_fields(caller.secret)])
    assert (answer.status, answer.code) == (414, "uri_too_long")


async def test_all_headers_together_are_taken_up_to_their_limit(world: World) -> None:
    spent = len("host") + len(HOST) + 4 + len("x-note") + 4
    fits = b"x" * (RULES.header_bytes - spent)
    assert (await ask(world.door, headers=[(b"x-note", fits)])).status == 200
    answer = await ask(world.door, headers=[(b"x-note", fits + b"x")])
    assert (answer.status, answer.code) == (431, "headers_too_large")


async def test_a_credential_is_taken_up_to_its_limit(world: World) -> None:
    fits = b"Bearer " + b"x" * (RULES.authorization_bytes - 7)
    assert (await ask(world.door, headers=[(b"authorization", fits)])).status == 200
    answer = await ask(world.door, headers=[(b"authorization", fits + b"x")])
    assert (answer.status, answer.code) == (431, "headers_too_large")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"reseller.test", 401),
        (b"RESELLER.test:8443", 401),
        (b"reseller.test.", 401),
        (b"127.0.0.1:8000", 401),
        (None, 400),
        (b"", 421),
        (b"evil.test", 421),
        (b"reseller.test.evil.test", 421),
        (b"evil.test:80@reseller.test", 421),
        (b"reseller.test@evil.test", 421),
        (b"reseller.test:", 401),
        (b"reseller.test:80:80", 421),
        (b"reseller.test:abc", 421),
        (b"reseller.test/x", 421),
        (b"[::1]", 421),
        (b"[::1", 421),
        (b"\xff", 421),
    ],
)
async def test_only_our_hosts_are_served(world: World, host: bytes | None, status: int) -> None:
    assert (await ask(world.door, target=b"/v1/notes", host=host)).status == status
    assert (await ask(world.door, host=host)).status == 200, "a load balancer probes by address"


async def test_the_refusal_of_a_host_names_the_settings_that_list_hosts(world: World) -> None:
    answer = await ask(world.door, target=b"/v1/notes", host=b"evil.test")
    assert b"SERVICE_BASE_URL or SERVICE_ALLOWED_HOSTS" in answer.body


def test_an_address_of_version_six_is_a_host_without_its_brackets() -> None:
    rules = HttpRules(hosts=frozenset({"::1"}))
    assert [rules.serves(host) for host in ("[::1]", "[::1]:80", "[::1]x", "[::2]", "[::1]:")] == [True, True, False, False, True]


def test_a_star_serves_every_host() -> None:
    assert HttpRules(hosts=frozenset({"*"})).serves("anything.test:1")


@pytest.mark.parametrize(
    ("origin", "status"),
    [(ORIGIN.encode(), 200), (b"null", 403), (b"https://evil.test", 403), (ORIGIN.encode() + b".evil.test", 403), (b"", 403)],
)
async def test_only_pages_of_our_origins_may_call(world: World, origin: bytes, status: int) -> None:
    answer = await ask(world.door, headers=[(b"origin", origin)])
    assert answer.status == status
    assert status == 200 or answer.code == "origin_not_allowed"
