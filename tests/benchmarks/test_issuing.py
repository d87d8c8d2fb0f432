"""The measurements of issuing compare like with like, at a network that is the sandbox's own."""

import json
from pathlib import Path

import httpx
import pytest

from benchmarks.issuing_cast import TEMPLATE, Tenant, issue
from benchmarks.issuing_page import DRAW, FEW_PLACES, LOOK, SIZED, aims, section
from benchmarks.names import CLIENT, KEYLESS, OURS_POSTGRES, OURS_SQLITE, SQLALCHEMY, SQLITE_TUNED
from benchmarks.rivals.issuing_network import TOKEN, make
from benchmarks.tables import Row
from clients.http import Outbound
from clients.ocs.client import Ocs, OcsPool
from clients.ocs.link import OcsSettings
from operations.caches.account_parts import iccid_in_use
from operations.ledger.stock_snapshot import is_sim_in_stock
from tests.clients.clock import ManualClock

ACCOUNT, OTHER = 9001, 9002


@pytest.fixture
def transport(tmp_path: Path) -> httpx.ASGITransport:
    (tmp_path / "network.json").write_text(json.dumps({ACCOUNT: 3, OTHER: 2}))
    return httpx.ASGITransport(make(tmp_path))


@pytest.fixture
def ocs(transport: httpx.ASGITransport) -> Ocs:
    return OcsPool(Outbound(transport=transport), OcsSettings("http://ocs.example/v1"), ManualClock()).for_token(TOKEN)


async def free(ocs: Ocs, account: int) -> list[str | None]:
    found = await ocs.subscriber.list_subscriber(account)
    assert all(is_sim_in_stock(row) for row in found.get("subscriberList", []))
    return [iccid_in_use(row) for row in found.get("subscriberList", [])]


async def test_a_drawn_esim_leaves_the_account_and_a_new_one_comes_in(ocs: Ocs, transport: httpx.ASGITransport) -> None:
    before = await free(ocs, ACCOUNT)
    drawn = [(await ocs.packages.affect_from_account(TEMPLATE, ACCOUNT, validity_days=30)).get("iccid") for _ in range(5)]
    after = await free(ocs, ACCOUNT)
    assert drawn[:3] == before
    assert len(set(drawn)) == 5
    assert len(after) == 3
    assert set(after).isdisjoint(drawn)
    async with httpx.AsyncClient(transport=transport, base_url="http://ocs.example") as client:
        assert (await client.get("/drawn")).json() == {str(ACCOUNT): 5}


async def test_accounts_do_not_share_their_stock(ocs: Ocs) -> None:
    stock = await free(ocs, OTHER)
    await ocs.packages.affect_from_account(TEMPLATE, ACCOUNT, validity_days=30)
    assert await free(ocs, OTHER) == stock


async def test_the_measured_request_names_account_template_and_key() -> None:
    head, _, body = issue(Tenant("ak_secret", ACCOUNT), "k-1").decode().partition("\r\n\r\n")
    assert head.startswith("POST /v1/subscribers/issue-from-inventory HTTP/1.1\r\n")
    assert "X-Idempotency-Key: k-1" in head
    assert json.loads(body) == {"accountId": ACCOUNT, "packageTemplateId": TEMPLATE, "validityPeriod": 30}
    assert f"Content-Length: {len(body)}" in head


def made_up() -> list[Row]:
    """Two rounds in which this service is twice as fast as whoever does less, but for the client alone."""
    speeds = {OURS_SQLITE: 800, OURS_POSTGRES: 400, SQLALCHEMY: 400, SQLITE_TUNED: 400, KEYLESS: 800, CLIENT: 3200}
    found: list[Row] = []
    for number in range(2):
        for name, speed in speeds.items():
            row = figures(number, speed) | {"case": DRAW, "contestant": name}
            found += [row | {"connections": connections} for connections in (1, 16, 64)]
        ours = {"contestant": OURS_SQLITE, "round": number}
        found += [figures(number, 10 * places) | ours | {"case": FEW_PLACES, "connections": 64, "places": places} for places in (8, 64)]
        for size in (100, 1000, 10_000):
            found.append(ours | {"case": LOOK, "connections": 1, "free": size, "ms": size / 10, "cpu_ms": size / 50})
            found.append(figures(number, 800) | ours | {"case": SIZED, "connections": 16, "free": size})
    return found


def figures(number: int, speed: int) -> dict[str, object]:
    return {"round": number, "requests": speed, "seconds": 1.0, "errors": 0, "cpu_us": 1e6 / speed, "p50_ms": 2.0, "p99_ms": 9.0}


async def test_both_databases_are_judged_beside_what_is_written_by_hand() -> None:
    reached = [(aim.text, aim.reached, aim.met) for aim in aims(made_up())]
    assert len(reached) == 6
    assert reached[4:] == [
        ("Issuing, on SQLite, against FastAPI + httpx + SQLAlchemy, c=64", "2.00", True),
        ("Issuing, on PostgreSQL, against FastAPI + httpx + SQLAlchemy, c=64", "1.00", False),
    ]


async def test_the_section_shows_rivals_places_and_looks() -> None:
    page = section(made_up())
    assert "| c=64 | on SQLite | bare client | **0.25** (0.25 - 0.25) | 800 / 3200 | 1250 / 312 | 2.0 / 2.0 | 9.0 / 9.0 | 0 / 0 |" in page
    assert "with the default of 8, at 64 connections on SQLite: **0.12** (0.12 - 0.12) of that" in page
    assert "| 10,000 | 1000 | 200 | **1.00** (1.00 - 1.00) | 2.0 | 9.0 |" in page
    assert all(name in page for name in (SQLALCHEMY, SQLITE_TUNED, KEYLESS))
