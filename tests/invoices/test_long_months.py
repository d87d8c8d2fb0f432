"""A month of thousands of SIMs is billed and shown in small steps, between which everybody else is served."""

import asyncio
import threading
import time
from collections.abc import Awaitable
from pathlib import Path

import httpx
import orjson
import pytest
from mcp_types import TextContent

from operations.catalogue import CATALOGUE
from operations.invoicing.invoice_creation import INVOICE_SLICE_LINES
from operations.invoicing.invoices import MANY_INVOICE_LINES
from registry.caller import Tier
from tests.cdr.records import Json
from tests.invoices.billing import INVOICES, Billing, sim
from tests.mcp.house import open_house

SIMS = MANY_INVOICE_LINES + 500


async def share_of_loop(work: Awaitable[httpx.Response]) -> float:
    """What part of the processor time until the answer was there was spent on the event loop's thread."""
    loop, everything = time.thread_time(), time.process_time()
    answer = await work
    share = (time.thread_time() - loop) / (time.process_time() - everything)
    assert answer.status_code == 200, answer.text
    return share


async def turns_of_loop(work: Awaitable[httpx.Response]) -> int:
    """How often others had their turn until the answer was there."""
    task, turns = asyncio.ensure_future(work), 0
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    assert (await task).status_code == 200
    return turns


async def long_invoice(bill: Billing) -> Json:
    """A draft of more lines than are read in one step; the SIM with number n used n bytes."""
    return await bill.draft(*((sim(number), 0, number) for number in range(SIMS)))


async def test_the_write_of_an_invoice_is_not_done_on_the_event_loop(bill: Billing) -> None:
    await bill.use(*((sim(number), 0, number) for number in range(3)))
    period, made, threads = await bill.period(), bill.world.ids.new, set[str]()

    def new(prefix: str) -> str:
        if prefix == "ili_":
            threads.add(threading.current_thread().name)
        return made(prefix)

    bill.world.ids.new = new
    assert (await bill.create(period)).status_code == 201
    assert threads == {"group-commit"}


async def test_a_document_of_many_lines_is_made_beside_the_event_loop(bill: Billing) -> None:
    long = await long_invoice(bill)
    assert await share_of_loop(bill.http.get(f"{INVOICES}/{long['id']}/pdf")) < 0.75


async def test_an_invoice_of_many_lines_is_all_of_them_and_others_have_their_turn_meanwhile(bill: Billing) -> None:
    long = await long_invoice(bill)
    path = f"{INVOICES}/{long['id']}"
    await bill.http.get(path, params={"limit": 1})  # the first answer of an operation waits for its schema
    short_turns = await turns_of_loop(bill.http.get(path, params={"limit": 1}))
    assert await turns_of_loop(bill.http.get(path)) - short_turns >= SIMS // 250
    answer = await bill.http.get(path)
    whole = answer.json()
    assert [(line["iccid"], line["bytes_total"]) for line in whole["line_items"]] == [(sim(number), number) for number in range(SIMS)]
    assert whole["line_items_total"] == SIMS > INVOICE_SLICE_LINES
    assert answer.content == orjson.dumps(whole), "the pieces are the bytes of the whole answer"


async def test_the_pages_of_an_invoice_are_its_lines_and_name_what_comes_next(bill: Billing) -> None:
    long = await long_invoice(bill)
    path, whole = f"{INVOICES}/{long['id']}", await bill.read(long["id"])
    first = await bill.http.get(path, params={"limit": 1000})
    second = await bill.http.get(first.links["next"]["url"])
    assert first.json()["line_items"] + second.json()["line_items"] == whole["line_items"]
    assert "next" not in second.links
    assert {**first.json(), "line_items": []} == {**second.json(), "line_items": []} == {**whole, "line_items": []}
    by_id = await bill.http.get(path, params={"limit": 2, "starting_after": whole["line_items"][1200]["id"]})
    assert by_id.json()["line_items"] == whole["line_items"][1201:1203]
    rest = await bill.http.get(path, params={"starting_after": "100"})
    assert rest.json()["line_items"] == whole["line_items"][100:]
    assert (await bill.http.get(path, params={"starting_after": str(10**30)})).json()["line_items"] == []


@pytest.mark.parametrize("cursor", ["-1", "1.5", "\u0663", "ili_00000000000000000000000000", "' or 1=1"])
async def test_a_cursor_that_names_no_line_is_refused(bill: Billing, cursor: str) -> None:
    path = f"{INVOICES}/{(await bill.draft())['id']}"
    answer = await bill.http.get(path, params={"starting_after": cursor})
    assert (answer.status_code, answer.json()["code"], answer.json()["param"]) == (400, "invalid_request", "starting_after")


async def test_a_tool_call_gets_twenty_lines_the_totals_and_where_they_go_on(tmp_path: Path) -> None:
    async with open_house(tmp_path, catalogue=CATALOGUE) as house:
        caller = await house.world.caller(Tier.PRO)
        async with house.world.client(caller.secret) as http:
            bill = Billing(house.world, caller, http)
            made = await bill.draft(*((sim(number), 0, number) for number in range(25)))
            whole = await bill.read(made["id"])
        async with house.connect(caller, query="?toolsets=invoicing") as client:
            first = await client.call_tool("get_invoice", {"id": made["id"]})
            assert first.meta is not None
            second = await client.call_tool("get_invoice", {"id": made["id"], "starting_after": first.meta["next"]})
    assert (first.structured_content, second.structured_content) == (
        {**whole, "line_items": whole["line_items"][:20]},
        {**whole, "line_items": whole["line_items"][20:]},
    )
    assert [each.text for each in first.content[1:] if isinstance(each, TextContent)] == [
        '20 of 25 lines. There is more: call again with the same arguments and starting_after="20"'
    ]
