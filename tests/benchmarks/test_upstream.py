"""The measurements of calls to the charging system compare like with like."""

from typing import cast

import httpx
import orjson
import pytest

from benchmarks.names import CLIENT, HTTPX, HTTPX_TUNED, OURS, PROXY, UPSTREAM
from benchmarks.rivals.fleet import ACCOUNT, RESELLER, iccid, line, rule
from benchmarks.rivals.gateway import listed, shown
from benchmarks.rivals.upstream import STRANGER, Bodies, speaking
from benchmarks.tables import Row
from benchmarks.upstream_page import LINE, LINES, RULES, SOME, aims, section
from clients.http import Outbound
from clients.ocs.client import Ocs, OcsPool
from clients.ocs.link import OcsSettings
from clients.ocs.subscribers import Subscriber
from operations.upstream.account_lines import subscriber_number
from operations.upstream.lines import public_line_row
from registry.errors import OcsNotFound
from tests.clients.clock import ManualClock


def client(lines: int, tariff_bytes: int) -> Ocs:
    app = speaking(Bodies(lines, tariff_bytes))
    outbound = Outbound(transport=httpx.ASGITransport(app))  # pyright: ignore[reportArgumentType]  # its scope is a plain dict
    return OcsPool(outbound, OcsSettings("http://ocs.example/v1"), ManualClock()).for_token("measured")


async def test_the_stand_in_speaks_the_wire_that_the_client_reads() -> None:
    ocs = client(30, 200_000)
    found = await ocs.subscriber.list_subscriber(ACCOUNT)
    assert (len(found.get("subscriberList", [])), found.get("hasMore")) == (30, False)
    assert (await ocs.subscriber.get_single_subscriber(iccid(7), by="iccid")).get("accountId") == ACCOUNT
    assert (await ocs.subscriber.get_single_subscriber(iccid(STRANGER), by="iccid")).get("accountId") != ACCOUNT
    with pytest.raises(OcsNotFound):
        await ocs.subscriber.get_single_subscriber(iccid(STRANGER + 1), by="iccid")
    assert (await ocs.reseller.get_reseller_info()).get("id") == RESELLER
    assert [row.get("id") for row in await ocs.reseller.list_reseller_account()] == [RESELLER]


async def test_the_stand_in_prices_come_whole_through_a_stream() -> None:
    stream = await client(1, 200_000).tariffs.stream_customer_tariff(RESELLER)
    rules = orjson.loads(b"".join([part async for part in stream]))
    assert rules[:2] == [rule(0), rule(1)]
    assert len(rules) > 300


def test_the_rivals_show_a_line_as_the_service_does() -> None:
    rows = [cast(Subscriber, line(number)) for number in (3, 1, 2)]
    assert shown(line(1)) == public_line_row(rows[1])
    assert listed((line(number) for number in (3, 1, 2)), ACCOUNT) == sorted(map(public_line_row, rows), key=subscriber_number)
    assert b"pin" not in orjson.dumps(shown(line(1)))


def made_up() -> list[Row]:
    """Two rounds in which this service is ten times as fast as httpx, and takes 1.2 times as long as asking directly."""
    speeds = {OURS: 1000, HTTPX: 100, HTTPX_TUNED: 100, PROXY: 1200, CLIENT: 2000, UPSTREAM: 9000}
    found: list[Row] = []
    for number in range(2):
        for name, speed in speeds.items():
            figures = {"requests": speed, "seconds": 1.0, "errors": 0, "cpu_us": 1e6 / speed, "p50_ms": 1e3 / speed, "p99_ms": 1e4 / speed}
            found += [{"case": LINE, "contestant": name, "connections": c, "round": number, **figures} for c in (1, 16, 64)]
        for case in (RULES, LINES, SOME):
            for name in (OURS, HTTPX, HTTPX_TUNED, UPSTREAM):
                figures = {"ms": 120.0 if name == OURS else 100.0, "cpu_ms": 50.0, "idle_mb": 70.0, "added_mb": 4.0}
                found.append({"case": case, "contestant": name, "connections": 1, "round": number, **figures})
    return found


def test_the_aims_are_judged_by_ratios_of_the_same_round() -> None:
    assert [(aim.reached, aim.met) for aim in aims(made_up())] == [
        ("10.00", True),
        ("10.00", True),
        ("1.20", True),
        ("0.89 ms", False),
    ]


def test_the_section_shows_every_contestant_and_every_answer() -> None:
    page = section(made_up())
    assert "| c=64 | FastAPI + httpx tuned | **10.00** (10.00 - 10.00) |" in page
    assert "| 50 MB of prices | this service | 120 | **1.20** (1.20 - 1.20) | 50 | 70 | 4 |  |" in page
    assert all(name in page for name in (LINES, SOME, PROXY, CLIENT, UPSTREAM))
