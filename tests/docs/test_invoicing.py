"""Every command of the pages on invoices and payments, in their order, against a service on the embedded default."""

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from operations.invoicing.call_records import ingest_cdr_events
from tests.docs.blocks import blocks
from tests.docs.reader import as_reader, done
from tests.harness.processes import ROOT, Running

PAGE = "invoicing.md"
ANOTHER = 'reseller keys create key --org "$(reseller org create Nordwind --tier enterprise --email admin@nordwind.example)"'
IMPORTED = "lines 3, stored 2, skipped 1, bad 0"


@pytest.mark.long
def test_the_page_leads_from_records_to_a_stored_pdf(server: Running, place: Path) -> None:
    whole = "\n".join(block.text for block in blocks("sh", document=PAGE))
    said = done(place, whole + '\necho "invoice $invoice"', **as_reader(server))
    assert '"stored":1' in said
    assert '"total_bytes":50000000' in said
    assert IMPORTED in said
    assert IMPORTED in (ROOT / "docs" / PAGE).read_text()
    assert '"status": "sent"' in said
    assert "Nordwind Reisen GmbH" in said
    assert "DRAFT INVOICE" in (place / "draft.html").read_text()
    assert (place / "invoice.pdf").read_bytes().startswith(b"%PDF-")
    invoice = said.rsplit("invoice ", 1)[1].strip()
    shown = done(place, f"reseller call get_invoice --id {invoice}", **as_reader(server))
    # 1,000,000,012 bytes at 1.25 a GB, and 1 % of it.
    figures = json.loads(shown)
    assert (figures["subtotal_cents"], figures["platform_fee_cents"], figures["total_cents"]) == (125, 1, 126)
    assert figures["status"] == "void"


def test_what_the_page_says_of_batches_is_what_is_declared() -> None:
    text = (ROOT / "docs" / PAGE).read_text()
    assert "at most 1,000 records and 2 MiB" in text
    assert ingest_cdr_events.body_limit == 2 << 20


@pytest.mark.long
def test_an_account_is_let_in_as_the_page_on_payments_says(server: Running, place: Path) -> None:
    [block] = blocks("sh", document="payments.md")
    begin, complete = block.text.strip().splitlines()
    other = {**as_reader(server), "RESELLER_API_KEY": done(place, ANOTHER).split()[0]}
    page = json.loads(done(place, begin, **other))["url"]
    back = httpx.post(page, data={"account": "new", "do": "allow"}).headers["location"]
    given = parse_qs(urlsplit(back).query)
    assert urlsplit(back).path == "/auth/payments"
    said = done(place, complete, **other, code=given["code"][0], state=given["state"][0])
    assert json.loads(said)["status"] == "active"
