"""One key, one eSIM: two servers and the command line on one database file, at both doors, with a server killed in the middle."""

import json
import signal
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

from tests.abuse.canaries import JsonObject, bearer_headers, call_tool
from tests.cli.reseller import printed
from tests.harness.processes import Running, running, start, stop

INTENTS = "/v1/connectivity/intents"
PLAN: JsonObject = {"plan": "test_eu_1gb", "metadata": {"order": "1042"}}
OPEN = {"SERVICE_BURST_LIMIT": "false"}


def issue(base_url: str, secret: str, key: str) -> httpx.Response:
    headers = bearer_headers(secret, **{"Idempotency-Key": key})
    return httpx.post(base_url + INTENTS, json=PLAN, headers=headers, timeout=60)


def issue_by_tool(server: Running, secret: str, key: str) -> JsonObject:
    with httpx.Client(timeout=60) as http:
        return call_tool(http, server.mcp_url, secret, "create_connectivity_intent", {**PLAN, "idempotency_key": key})


def count(database: Path, table: str) -> int:
    with closing(sqlite3.connect(database)) as raw:
        return int(raw.execute(f"select count(*) from {table}").fetchone()[0])


def all_at_once(calls: Sequence[Callable[[], JsonObject]]) -> list[JsonObject]:
    """Every call in a thread of its own."""
    with ThreadPoolExecutor(len(calls)) as threads:
        futures: list[Future[JsonObject]] = [threads.submit(call) for call in calls]
        return [future.result() for future in futures]


@pytest.mark.long
def test_two_servers_both_doors_and_the_command_line_draw_one_esim_for_one_key(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data, OPEN) as first, running(data, OPEN) as second:
        secret = first.api_key
        assert secret is not None and second.api_key is None
        for server in (first, second):
            issue_by_tool(server, secret, "warm")  # the MCP server is made by its first request
        calls: list[Callable[[], JsonObject]] = []
        for server in (first, second) * 12:
            calls.append(lambda server=server: issue(server.base_url, secret, "k").json())
            calls.append(lambda server=server: issue_by_tool(server, secret, "k"))
        bodies = all_at_once(calls)
        words = ("--plan", "test_eu_1gb", "--metadata", '{"order": "1042"}', "--idempotency-key", "k")
        bodies.append(json.loads(printed("call", "create_connectivity_intent", *words, "--data", data, "--json", cwd=tmp_path)))
    ids = {body["id"] for body in bodies if "id" in body}
    assert len(ids) == 1 and len(bodies) == 49
    assert {body.get("code") for body in bodies if "id" not in body} <= {"idempotency_in_progress"}
    for table in ("intent", "event", "claim"):
        assert count(data / "service.db", table) == 2  # this one and the one that warmed up


@pytest.mark.long
def test_a_server_killed_in_the_middle_leaves_every_key_with_one_esim(tmp_path: Path) -> None:
    data, keys = tmp_path / "data", [f"kill-{number}" for number in range(120)]
    answered: dict[str, bytes] = {}
    with running(data, OPEN) as other:
        secret = other.api_key
        assert secret is not None
        victim = start(data, OPEN)

        def order(key: str) -> None:
            with suppress(httpx.HTTPError):  # the killed server's callers hear nothing
                answer = issue(victim.base_url, secret, key)
                assert answer.status_code == 201
                answered[key] = answer.content
                if len(answered) == 20:
                    victim.process.send_signal(signal.SIGKILL)

        with ThreadPoolExecutor(12) as threads:
            list(threads.map(order, keys))
        assert stop(victim, signal.SIGKILL) == -signal.SIGKILL
        retried = {key: issue(other.base_url, secret, key) for key in keys}
    assert 20 <= len(answered) < len(keys)
    assert {answer.status_code for answer in retried.values()} == {201}
    assert {key: retried[key].content for key in answered} == answered
    assert len({answer.json()["esim"]["iccid"] for answer in retried.values()}) == len(keys)
    for table in ("intent", "event", "claim"):
        assert count(data / "service.db", table) == len(keys)
    with closing(sqlite3.connect(data / "service.db")) as raw:
        assert raw.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert raw.execute("select used from quota").fetchall() == [(len(keys),)]  # replays are free
