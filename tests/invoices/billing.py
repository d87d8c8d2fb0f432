"""An organisation that bills its SIMs' data: its calls, and what it knows."""

from dataclasses import dataclass

import httpx

from tests.cdr.records import PERIODS, Json
from tests.world import Credentials, World

INVOICES = "/v1/invoices"
CONFIG = "/v1/invoices/config"
INGEST = "/v1/cdr/ingest"
DECEMBER = 1_796_212_800  # 2026-12-02T12:00:00Z: the month before the world's
SIM = "8988303000000912345"
GB = 1_000_000_000
MADE_ONLY = ("line_count", "largest_lines", "not_billed")
"""What the answer of create_invoice has beside the invoice."""


def sim(number: int) -> str:
    """The ICCID of the SIM with this number; they sort as the numbers do."""
    return f"89883030000{number:08d}"


def invoice_of(made: Json) -> Json:
    return {name: value for name, value in made.items() if name not in MADE_ONLY}


@dataclass(slots=True)
class Billing:
    world: World
    who: Credentials
    http: httpx.AsyncClient
    records: int = 0

    async def use(self, *usage: tuple[str, int, int] | int, at: int = DECEMBER, **more: object) -> None:
        """Records are ingested: (ICCID, up, down) each, or bytes of the one SIM."""
        events: list[Json] = []
        for each in usage:
            iccid, up, down = (SIM, 0, each) if isinstance(each, int) else each
            self.records += 1
            event: Json = {"id": f"cdr-{self.records}", "iccid": iccid, "occurred_at": at, "bytes_up": up, "bytes_down": down}
            events.append(event | more)
        for start in range(0, len(events), 1000):
            answer = await self.http.post(INGEST, json={"events": events[start : start + 1000]})
            assert answer.status_code == 200, answer.text

    async def period(self) -> str:
        return (await self.http.get(PERIODS)).json()["data"][0]["id"]

    async def config(self, **given: object) -> httpx.Response:
        return await self.http.put(CONFIG, json=given)

    async def create(self, period: str | None = None, *, key: str | None = None, **given: object) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return await self.http.post(INVOICES, json={"period_id": period or await self.period(), **given}, headers=headers)

    async def draft(self, *usage: tuple[str, int, int] | int, price: int = 250) -> Json:
        """A draft of a month in which this was used."""
        await self.use(*(usage or (4 * GB,)))
        answer = await self.create(price_per_gb_cents=price)
        assert answer.status_code == 201, answer.text
        return invoice_of(answer.json())

    async def read(self, invoice: str) -> Json:
        answer = await self.http.get(f"{INVOICES}/{invoice}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def update(self, invoice: str, *, key: str | None = None, **given: object) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return await self.http.patch(f"{INVOICES}/{invoice}", json=given, headers=headers)

    async def send(self, invoice: str, *, key: str | None = None, **given: object) -> httpx.Response:
        return await self.update(invoice, key=key, status="sent", **given)

    async def void(self, invoice: str, *, key: str | None = None) -> httpx.Response:
        return await self.http.delete(f"{INVOICES}/{invoice}", headers={} if key is None else {"Idempotency-Key": key})
