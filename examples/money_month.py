"""A month of money: call records in, an invoice out, paid on the processor's page; every figure is recomputed from the records.

    reseller serve
    RESELLER_API_KEY=ak_... python examples/money_month.py http://127.0.0.1:8000 --rows 20000

The processor is the simulated one of a service without SERVICE_PAYMENTS_KEY. Records are made for last month, 5,000 SIMs at most.
`--records FILE` keeps them; without it they are in a directory that is deleted at the end.
"""

import argparse
import csv
import html
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx

HERE = Path(__file__).resolve().parent
PATIENCE = 60
NETWORKS = (("Orange", "FR"), ("Telekom", "DE"), ("Movistar", "ES"))


def last_month(now: datetime) -> tuple[datetime, datetime]:
    """Its first moment, and the first of the month after it."""
    end = datetime(now.year, now.month, 1, tzinfo=UTC)
    start = (end - timedelta(days=1)).replace(day=1)
    return start, end


def write_records(path: Path, rows: int, start: datetime, end: datetime) -> None:
    """Records of a fleet: one SIM in three stays on one network, and one record in fifty comes twice."""
    dice = random.Random(rows)
    sims = [f"8988303{number:012d}" for number in range(min(5000, max(1, rows // 20)))]
    span = int((end - start).total_seconds())
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "iccid", "occurred_at", "bytes_up", "bytes_down", "network", "country"])
        for number in range(rows):
            sim = dice.randrange(len(sims))
            network, country = NETWORKS[0 if sim % 3 == 0 else dice.randrange(3)]
            moment = start + timedelta(seconds=dice.randrange(span))
            row = [f"cdr-{number:08d}", sims[sim], moment.isoformat(), dice.randrange(10**6), dice.randrange(10**8), network, country]
            out.writerow(row)
            if number % 50 == 0:
                out.writerow(row)


class Service:
    """The operations, over HTTP."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None, **query: Any) -> Any:
        """What an operation answers."""
        said = self.http.request(method, f"/v1/{path}", json=body, params=query)
        if said.is_error:
            sys.exit(f"{method} {path}: {said.status_code} {said.json().get('error', said.text)}\n{said.json().get('hint', '')}")
        return said.json()

    def connect(self) -> str:
        """An account at the processor, let in on its own page (OAuth); one that is there already stays."""
        status = self.ask("GET", "operator-billing/connect/status")
        if status["status"] == "active":
            return status["account_id"]
        begun = self.ask("POST", "operator-billing/connect/oauth/begin", {})
        back = press(self.http, begun["url"], "allow")
        given = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}
        self.ask("POST", "operator-billing/connect/oauth/complete", {"code": given["code"], "state": given["state"]})
        return self.ask("GET", "operator-billing/connect/status")["account_id"]


def press(http: httpx.Client, url: str, button: str) -> str:
    """Open a page of the processor, take the first of every choice, press a button of its form, and say where that leads."""
    page = http.get(url)
    form = re.search(r"<form[^>]*action=\"([^\"]*)\"[^>]*>(.*?)</form>", page.text, re.S)
    if page.is_error or form is None:
        sys.exit(f"{urlsplit(url).path}: {page.status_code}, and no form to press {button} in")
    choices = re.findall(r"<select[^>]*name=\"([^\"]*)\"[^>]*>\s*<option[^>]*value=\"([^\"]*)\"", form[2])
    answer = http.post(urljoin(url, html.unescape(form[1])), data={**dict(choices), "do": button})
    return answer.headers.get("location", url)


def settled(service: Service, invoice: str) -> dict[str, Any]:
    """The invoice once the processor's word has come."""
    since = time.monotonic()
    while time.monotonic() - since < PATIENCE:
        found: dict[str, Any] = service.ask("GET", f"invoices/{invoice}")
        if found["status"] == "paid":
            return found
        time.sleep(0.2)
    sys.exit("the payment was not told within a minute")


def run(url: str, key: str, rows: int, records: Path) -> int:
    start, end = last_month(datetime.now(UTC))
    write_records(records, rows, start, end)
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as http:
        service = Service(http)
        began = time.monotonic()
        reseller = [sys.executable, "-m", "transports.cli", "cdr", "import", str(records), "--url", url]
        imported = subprocess.run(reseller, check=False, cwd=HERE.parent)  # the key is in its environment, as in ours
        if imported.returncode != 0:
            return imported.returncode
        print(f"imported in {time.monotonic() - began:.1f} s")
        service.ask("PUT", "invoices/config", {"currency": "EUR", "price_per_gb_cents": 125, "invoice_prefix": "MONTH"})
        print("connected account", service.connect())
        month = {"year": start.year, "month": start.month}
        period = next(p for p in service.ask("GET", "invoices/periods")["data"] if {"year": p["year"], "month": p["month"]} == month)
        print(f"period {start:%Y-%m} is {period['status']}")
        draft = service.ask("POST", "invoices", {"period_id": period["id"]})
        recipient = {"recipient_name": "Nordwind Reisen GmbH", "recipient_email": "billing@nordwind.example"}
        service.ask("PATCH", f"invoices/{draft['id']}", recipient)
        sent = service.ask("PATCH", f"invoices/{draft['id']}", {"status": "sent"})
        print(f"invoice {sent['invoice_number']} over {sent['total_cents']} cents is {sent['status']}; pay at {sent['payment_url']}")
        press(http, sent["payment_url"], "pay")
        paid = settled(service, draft["id"])
        print(f"invoice {paid['invoice_number']} is {paid['status']}")
        document = http.get(f"/v1/invoices/{draft['id']}/pdf")
        print(f"{len(document.content)} bytes of {document.headers['content-type']}")
        bps = service.ask("GET", "invoices/config")["platform_fee_bps"]
    invoice = records.with_suffix(".json")
    invoice.write_text(json.dumps(paid))
    return subprocess.run(
        [sys.executable, str(HERE / "recompute_invoice.py"), str(records), str(invoice), str(bps)], check=False
    ).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--records", type=Path)
    given = parser.parse_args()
    key = os.environ.get("RESELLER_API_KEY", "")
    if not key:
        sys.exit("Set RESELLER_API_KEY to a key: `serve` prints one, `reseller keys create NAME` makes one.")
    if not given.url.startswith("http"):
        sys.exit(f"{given.url} is no address: give the one that `serve` prints, such as http://127.0.0.1:8000.")
    with tempfile.TemporaryDirectory() as folder:
        try:
            return run(given.url, key, given.rows, (given.records or Path(folder) / "records.csv").absolute())
        except httpx.TransportError:
            sys.exit(f"No answer from {given.url}: is `serve` running, and is it the address that it prints?")


if __name__ == "__main__":
    sys.exit(main())
