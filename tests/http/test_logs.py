"""The request log and the fault log: allow-listed fields, masked text."""

import asyncio
import logging

import orjson
import psycopg
import pytest
from inline_snapshot import snapshot

from tests.http.asking import ask, bearer_fields
from tests.world import NOON, SettableClock, World
from transports.http.door import HttpDoor
from transports.http.request import HttpRules
from transports.logs import LibraryLog, Logs, RequestLine

LINE = RequestLine(NOON, "req_1", "GET", "/v1/notes/{name}", "get_note", 200, 1.25, "http", "org_1", "")
CANARIES = [
    "ak_0123456789012345678901234567890123456789abcdef",
    "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    "LPA:1$smdp.example.com$ABC-DEF",
    "8988303000000912345",
    "ord_kgw5wx6xbfn5se6vwx37hczgm3",
    "tuc_01234567890123456789abcdef",
    "somebody@example.com",
    "+4915112345678",
    "262011234567890",
    "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
    "the loaded secret",
]


class Written:
    def __init__(self, **options: bool) -> None:
        self.pieces: list[bytes] = []
        self.logs = Logs(self.pieces.append, SettableClock(), secrets=["the loaded secret", " "], **options)

    def text(self) -> str:
        self.logs.flush()
        return b"".join(self.pieces).decode()


def test_a_request_is_one_line_of_json() -> None:
    written = Written()
    written.logs.request(LINE)
    assert written.text().count("\n") == 1
    assert orjson.loads(written.text()) == snapshot(
        {
            "time": "2027-01-15T12:00:00.000Z",
            "level": "info",
            "request_id": "req_1",
            "method": "GET",
            "path": "/v1/notes/{name}",
            "operation": "get_note",
            "status": 200,
            "ms": 1.25,
            "surface": "http",
            "organisation": "org_1",
            "code": "",
            "client": "",
            "key": "",
        }
    )


def test_a_line_has_the_level_of_its_status_and_what_a_proxy_calls_the_request() -> None:
    levels = list[str]()
    for status in (200, 404, 429, 500, 502, 503, 504):
        written = Written()
        written.logs.request(LINE._replace(status=status, client="203.0.113.9", key="key_1", client_request_id="edge-1", trace="ab" * 16))
        record = orjson.loads(written.text())
        levels.append(record["level"])
        assert [record[name] for name in ("client", "key", "client_request_id", "trace")] == ["203.0.113.9", "key_1", "edge-1", "ab" * 16]
    assert levels == ["info", "info", "info", "error", "warning", "warning", "warning"]


def test_a_person_at_a_terminal_gets_one_short_line_at_once() -> None:
    written = Written(human=True)
    written.logs.request(LINE)
    assert b"".join(written.pieces) == b"12:00:00.000 200 GET    get_note  1.2 ms  org_1 req_1\n"


async def test_lines_wait_for_one_write() -> None:
    written = Written()
    for _ in range(100):
        written.logs.request(LINE)
    assert written.pieces == []
    written.logs.flush()
    assert len(written.pieces) == 1
    assert written.pieces[0].count(b"\n") == 100


async def test_a_waiting_line_is_written_without_another_one() -> None:
    done = asyncio.Event()
    logs = Logs(lambda piece: done.set(), SettableClock(), delay=0.0)
    logs.request(LINE)
    await asyncio.wait_for(done.wait(), 60)


async def test_many_lines_are_written_before_the_buffer_grows_large() -> None:
    written = Written()
    for _ in range(1000):
        written.logs.request(LINE)
    assert len(written.pieces) >= 2


def fail(text: str) -> Exception:
    try:
        try:
            raise ValueError(text)
        except ValueError as error:
            raise RuntimeError(f"outer {text}") from error
    except RuntimeError as error:
        return error


@pytest.mark.parametrize("canary", CANARIES)
def test_a_fault_tells_its_type_and_place_and_no_secret(canary: str) -> None:
    written = Written()
    written.logs.fault("req_1", "get_note", fail(f'before "{canary}" after'))
    assert canary not in written.text()
    record = orjson.loads(written.text())
    assert [error["type"] for error in record["errors"]] == ["RuntimeError", "ValueError"]
    assert "before" in record["errors"][0]["text"]
    assert "after" in record["errors"][0]["text"]
    assert record["errors"][1]["frames"][-1].startswith("test_logs.py:")
    assert (record["request_id"], record["operation"]) == ("req_1", "get_note")


@pytest.mark.postgres
def test_an_error_of_postgresql_tells_its_code_and_no_value_of_the_row(postgres: str) -> None:
    written = Written()
    with psycopg.connect(postgres) as connection:
        connection.execute("create temporary table line (name text unique)")
        connection.execute("insert into line values ('a name of somebody')")
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("insert into line values ('a name of somebody')")
    written.logs.fault("req_1", "an_operation", refused.value)
    told = orjson.loads(written.text())["errors"][0]["text"]
    assert told == 'duplicate key value violates unique constraint "line_name_key" (23505)'


def test_an_id_with_a_long_run_of_digits_stays_whole_and_a_subscribers_identity_does_not() -> None:
    written, id = Written(), "req_01mcckg2g000000000000001fg"
    written.logs.event("refused", request_id=id, text=f"about {id} of 001010123456789")
    record = orjson.loads(written.text())
    assert record["request_id"] == id
    assert record["text"] == f"about {id} of ***imsi***"


@pytest.mark.parametrize("canary", CANARIES)
def test_what_the_server_library_says_is_masked_too(canary: str) -> None:
    written = Written()
    logger = logging.Logger("server")
    logger.addHandler(LibraryLog(written.logs))
    logger.error("failed for %s", canary, exc_info=fail(canary))
    logger.info("not for us")
    assert canary not in written.text()
    assert orjson.loads(written.text())["level"] == "error"


async def test_no_path_query_body_or_credential_of_a_request_reaches_the_log(world: World) -> None:
    written, caller = Written(), await world.caller()
    door = HttpDoor(world.pipeline, rules=HttpRules(hosts=frozenset({"*"})), log=written.logs.request, fault=written.logs.fault)
    raw = orjson.dumps({"name": "canary-body", "canary-field": 1})
    typed = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(raw))]
    await ask(door, "GET", b"/v1/notes/canary-path?canary-query=1", [bearer_fields(caller.secret), (b"x-note", b"canary-header")])
    await ask(door, "GET", b"/canary-path?canary-query=1", [bearer_fields("canary-token")])
    await ask(door, "CANARY", b"/v1/notes", [bearer_fields("canary-token")])
    await ask(door, "POST", b"/v1/notes", [bearer_fields(caller.secret), *typed], [raw])
    await ask(door, "GET", b"/v1/broken", [bearer_fields(caller.secret)])
    text = written.text()
    assert "canary" not in text.lower()
    assert caller.secret not in text
    assert "somebody@example.com" not in text
    assert [orjson.loads(line).get("status", "fault") for line in text.splitlines()] == [400, 404, 405, 400, "fault", 500]


async def test_a_401_is_logged_although_it_has_no_audit_row(world: World) -> None:
    await ask(world.door, "GET", b"/v1/notes", [bearer_fields("x")])
    line = world.lines[-1]
    assert (line.status, line.code, line.operation, line.organisation) == (401, "unauthorized", "list_notes", "")
