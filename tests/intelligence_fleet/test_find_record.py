"""find_record: one thing by what somebody has of it, within what they may list, and without a call to the charging system."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Role, Tier
from simulators.network.entities import Line
from storage.orders import find_order
from storage.people import ensure_person
from tests.contract.invoices import invoice
from tests.contract.orders import numbered
from tests.network_facts import ACCOUNT, SIBLING
from tests.stage import OperatorStage, open_operator

RECORDS = "/v1/records"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[OperatorStage]:
    """The fleet has been listed."""
    async with open_operator(tmp_path, CATALOGUE, OperatorStage, tier=Tier.ENTERPRISE) as made:
        assert (await made.http.get("/v1/fleet/lines", params={"countOnly": True})).status_code == 200
        yield made


async def records(http: httpx.AsyncClient, q: str) -> dict[str, Any]:
    said = await http.get(RECORDS, params={"q": q})
    assert said.status_code == 200, said.text
    return said.json()


async def hits(http: httpx.AsyncClient, q: str) -> list[tuple[str, str]]:
    return [(record["kind"], record["id"]) for record in (await records(http, q))["data"]]


async def narrowed(stage: OperatorStage, **restrictions: Any) -> httpx.AsyncClient:
    _, secret = await stage.world.key(stage.who.person, stage.who.organisation, restrictions=Restrictions(**restrictions))
    return await stage.clients.enter_async_context(stage.world.client(secret))


def first_line(stage: OperatorStage, account: int = ACCOUNT) -> Line:
    return next(line for line in stage.lines(account) if line.status == "ACTIVE")


@pytest.mark.long
async def test_a_line_is_found_by_any_piece_of_its_numbers_and_nobody_asks_the_network(stage: OperatorStage) -> None:
    line, asked = first_line(stage), len(stage.sent())
    number = line.numbers[-1].number
    for piece in (line.iccid, line.iccid[6:15], line.imsi[-7:], number, number[2:], f"+{number[:3]} {number[3:6]}-{number[6:]}"):
        assert ("line", line.iccid) in await hits(stage.http, piece), piece
    assert (await hits(stage.http, number))[0] == ("line", line.iccid)
    (found,) = (await records(stage.http, line.iccid))["data"]
    assert found == {"kind": "line", "id": line.iccid, "title": line.iccid, "detail": "ACTIVE"}
    (by_imsi,) = (await records(stage.http, line.imsi))["data"]
    assert by_imsi["detail"] == f"ACTIVE, {line.imsi}"
    assert len(stage.sent()) == asked


@pytest.mark.long
async def test_a_piece_that_many_lines_have_shows_twenty_and_says_so(stage: OperatorStage) -> None:
    answer = await records(stage.http, first_line(stage).iccid[:6])
    assert (len(answer["data"]), answer["more"]) == (20, True)
    assert await records(stage.http, first_line(stage).iccid[:3]) == {"object": "record_list", "data": [], "more": False}


@pytest.mark.long
async def test_orders_invoices_and_intents_are_found_by_number_and_id(stage: OperatorStage) -> None:
    order = (await numbered(stage.world, stage.who))["number"]
    billed = (await invoice(stage.world, stage.who))["id"]
    number = (await stage.http.get(f"/v1/invoices/{billed}")).json()["invoice_number"]
    intent = (await stage.http.post("/v1/connectivity/intents", json={}, headers={"Idempotency-Key": "k"})).json()["id"]
    for q, found in (
        (order, ("order", order)),
        (f" {order.upper()} ", ("order", order)),
        (number.lower(), ("invoice", billed)),
        (billed, ("invoice", billed)),
        (intent, ("intent", intent)),
    ):
        assert await hits(stage.http, q) == [found]
    (sold,) = (await records(stage.http, order))["data"]
    assert (sold["title"], sold["detail"].split(", ", 1)[1]) == ("Nordic 5 GB", "ready, 14.90 EUR")
    tool = await stage.tool("find_record", {"q": order})
    assert tool["structuredContent"] == await records(stage.http, order)
    stranger = await stage.beside(account=SIBLING)
    assert [await hits(stranger, q) for q in (order, number, billed, intent, first_line(stage).iccid)] == [[]] * 5


@pytest.mark.long
async def test_people_are_found_by_a_piece_of_name_or_address_and_those_named_whole_come_first(stage: OperatorStage) -> None:
    store, ids = stage.world.store, []
    for address, name in (("berg@fjord.test", "Adam Bergström"), ("ada@fjord.test", "Berg")):
        ids.append(await store.write(ensure_person, address=address, id=stage.world.ids.new("usr_"), now=1.0, name=name))
        await stage.world.join(ids[-1], stage.who.organisation, Role.MEMBER)
    assert await hits(stage.http, "BERG") == [("person", ids[1]), ("person", ids[0])]
    assert await hits(stage.http, "ada@fj") == [("person", ids[1])] and await hits(stage.http, "GSTRÖM") == [("person", ids[0])]
    assert await hits(await stage.beside(account=SIBLING), "berg") == []
    assert await hits(await narrowed(stage, toolsets=("fleet", "storefronts")), "berg") == []
    assert await hits(await narrowed(stage, toolsets=("fleet", "setup")), "berg") == [("person", ids[1]), ("person", ids[0])]


@pytest.mark.long
async def test_a_buyer_is_found_by_the_whole_address_alone_until_erased(stage: OperatorStage) -> None:
    order = (await numbered(stage.world, stage.who))["number"]
    row = await stage.world.store.read(find_order, order=order)
    assert row is not None
    (buyer,) = (await records(stage.http, "ADA@example.com"))["data"]
    assert (buyer["kind"], buyer["id"], buyer["detail"]) == ("buyer", order, "1 paid orders") and "@" not in str(buyer)
    assert await hits(stage.http, "ada@example") == [] == await hits(stage.http, "da@example.com")
    assert await hits(await stage.beside(account=SIBLING), "ada@example.com") == []
    erased = await stage.confirmed(f"/v1/storefronts/{row.storefront}/erase-buyer", {"email": "ada@example.com"}, "POST")
    assert erased.json()["erased"] == 1
    assert await hits(stage.http, "ada@example.com") == [] and await hits(stage.http, order) == [("order", order)]


@pytest.mark.long
async def test_a_restricted_key_finds_only_what_it_may_list(stage: OperatorStage) -> None:
    mine, other = [line for line in stage.lines() if line.status == "ACTIVE"][:2]
    order = (await numbered(stage.world, stage.who))["number"]
    said = await stage.http.post("/v1/tags/trucks/lines", json={"iccids": [mine.iccid]}, headers={"Idempotency-Key": "tag"})
    assert said.status_code == 200, said.text
    for restrictions in ({"iccids": (mine.iccid,)}, {"tags": ("trucks",)}):
        http = await narrowed(stage, **restrictions)
        assert await hits(http, mine.iccid) == [("line", mine.iccid)], restrictions
        assert [await hits(http, q) for q in (other.iccid, other.imsi, order, "ada@example.com")] == [[]] * 4
        assert await records(http, mine.iccid[:6]) == await records(http, mine.iccid)
    assert await hits(await narrowed(stage, account_ids=(SIBLING,)), mine.iccid) == []
    assert await hits(await narrowed(stage, account_ids=(ACCOUNT,)), mine.iccid) == [("line", mine.iccid)]
    assert await hits(await narrowed(stage, toolsets=("fleet",)), order) == []
    refused = await (await narrowed(stage, toolsets=("storefronts",))).get(RECORDS, params={"q": order})
    assert (refused.status_code, refused.json()["code"]) == (403, "credential_restricted")


@pytest.mark.long
async def test_an_organisation_without_a_connection_finds_what_is_not_a_line(stage: OperatorStage) -> None:
    alone = await stage.world.caller(Tier.FREE)
    async with stage.world.client(alone.secret) as http:
        assert await hits(http, first_line(stage).iccid) == []
        assert await hits(http, alone.person) == [("person", alone.person)]
        for q in ("", "x", "   ", "x" * 255):
            said = await http.get(RECORDS, params={"q": q})
            assert (said.status_code, said.json()["param"]) == (400, "q"), q
        assert (await http.get(RECORDS)).status_code == 400
        for q in ("%%%%", "____", "\\|%", "12%4", "||||"):
            assert await hits(http, q) == []
