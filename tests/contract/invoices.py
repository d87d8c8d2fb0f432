"""What an organisation on the stage has used and billed, and what documented inputs name of it."""

from typing import Any

from operations.invoicing.invoice_creation import InvoiceSpec, make_draft_invoice
from storage.cdr_events import CdrEvent, ingest_cdr
from storage.invoices import list_periods
from tests.world import Credentials, World

Input = dict[str, Any]


async def period(world: World, who: Credentials) -> Input:
    now, organisation = world.clock.now(), who.organisation
    event = CdrEvent("cdr-1", "8988303000000912345", int(now) - 3600, 0, 4 * 10**9, "Nordic Mobile", "NO")
    await world.store.write(ingest_cdr, organisation=organisation, events=[event], now=now, ids=world.ids)
    (found,) = await world.store.read(list_periods, organisation=organisation, most=1)
    return {"period_id": found.id}


async def invoice(world: World, who: Credentials) -> Input:
    month = await period(world, who)
    return {"id": await draft(world, who, month["period_id"])}


async def billed_period(world: World, who: Credentials) -> Input:
    """A month with a draft."""
    month = await period(world, who)
    await draft(world, who, month["period_id"])
    return month


async def draft(world: World, who: Credentials, month: str) -> str:
    wanted = InvoiceSpec(world.ids.new("inv_"), who.organisation, month, 250, 100, None, "Fjord Ferries AS", "accounts@fjord.example")
    return (await world.store.write(make_draft_invoice, wanted=wanted, now=world.clock.now(), deps=world.pipeline.deps)).row.id


INVOICED = {
    "create_invoice": period,
    "list_invoices": billed_period,
    "get_invoice": invoice,
    "update_invoice": invoice,
    "void_invoice": invoice,
    "get_invoice_document": invoice,
}
