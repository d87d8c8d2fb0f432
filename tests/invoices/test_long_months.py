"""A month of thousands of SIMs is billed and shown beside the event loop, which serves everybody else meanwhile."""

import threading
import time
from collections.abc import Awaitable

import httpx
import pytest

from operations.invoicing.invoice.whole import MANY
from tests.invoices.billing import INVOICES, Billing, sim

pytestmark = pytest.mark.anyio
SIMS = MANY + 500


async def share_of_loop(work: Awaitable[httpx.Response]) -> float:
    """What part of the processor time until the answer was there was spent on the event loop's thread."""
    loop, everything = time.thread_time(), time.process_time()
    answer = await work
    share = (time.thread_time() - loop) / (time.process_time() - everything)
    assert answer.status_code == 200, answer.text
    return share


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


@pytest.mark.parametrize("what", ["", "/pdf"])
async def test_an_invoice_of_many_lines_is_read_and_written_out_beside_the_event_loop(bill: Billing, what: str) -> None:
    long = await bill.draft(*((sim(number), 0, number) for number in range(SIMS)))
    assert await share_of_loop(bill.http.get(f"{INVOICES}/{long['id']}{what}")) < 0.75
    lines = (await bill.read(long["id"]))["line_items"]
    assert [line["iccid"] for line in lines] == [sim(number) for number in range(SIMS)]
