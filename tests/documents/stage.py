"""An organisation with call records of a month, and an invoice made of them, through the HTTP door."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from tests.world import World, open_world


@asynccontextmanager
async def invoiced(
    folder: Path, sims: int, *, name: str = "Fjord Mobile", recipient: str | None = None, **texts: str
) -> AsyncGenerator["Desk"]:
    """A draft over so many SIMs; the recipient is set when it is given."""
    async with open_world(folder, CATALOGUE) as world:
        organisation = await world.organisation(Tier.ENTERPRISE, name=name)
        caller = await world.caller(Tier.ENTERPRISE, organisation=organisation)
        async with world.client(caller.secret) as http:
            await ask_document(http, "PUT", "/v1/invoices/config", {"currency": "EUR", "price_per_gb_cents": 125, "invoice_prefix": "FJ"})
            for first in range(0, sims, 1000):
                events = [record(number) for number in range(first, min(sims, first + 1000))]
                await ask_document(http, "POST", "/v1/cdr/ingest", {"events": events})
            period = (await ask_document(http, "GET", "/v1/invoices/periods"))["data"][0]["id"]
            invoice = await ask_document(http, "POST", "/v1/invoices", {"period_id": period})
            if recipient is not None or texts:
                given = ({} if recipient is None else {"recipient_name": recipient}) | texts
                await ask_document(http, "PATCH", f"/v1/invoices/{invoice['id']}", given)
            yield Desk(world, http, invoice["id"])


class Desk:
    """One invoice and the way to it."""

    def __init__(self, world: World, http: httpx.AsyncClient, invoice: str) -> None:
        self.world, self.http, self.invoice = world, http, invoice

    async def send(self) -> dict[str, Any]:
        return await ask_document(self.http, "PATCH", f"/v1/invoices/{self.invoice}", {"status": "sent"})

    async def read(self) -> dict[str, Any]:
        return await ask_document(self.http, "GET", f"/v1/invoices/{self.invoice}")

    async def document(self) -> httpx.Response:
        answer = await self.http.get(f"/v1/invoices/{self.invoice}/pdf")
        assert answer.status_code == 200, answer.text
        return answer


def record(number: int) -> dict[str, object]:
    return {
        "id": f"cdr-{number}",
        "iccid": f"8988303{number * 7919:012d}",
        "occurred_at": "2026-12-10T09:00:00Z",
        "bytes_up": number * 1_234_567 + 5,
        "bytes_down": number * 98_765_432 + 7,
        **({"network": "Orange", "country": "FR"} if number % 2 else {}),
    }


async def ask_document(http: httpx.AsyncClient, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    answer = await http.request(method, path, json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()
