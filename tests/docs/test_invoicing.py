"""Every command of the pages on invoices and payments, in their order, against a service on the embedded default."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.invoicing.cdr_ingest import ingest_cdr_events
from tests.docs.blocks import ROOT, blocks
from tests.docs.reader import as_reader, done
from tests.running import Running, running

PAGE = "invoicing.md"
RECORDS = """id,iccid,occurred_at,bytes_up,bytes_down,network,country
cdr-0001,8988303000000912345,2026-10-03T09:00:00Z,1200000,48800000,Orange,FR
cdr-0002,8988303000000912345,2026-10-04T09:00:00Z,0,950000000,Orange,FR
cdr-0003,8988303000000912352,2026-10-05T09:00:00Z,5,7,Telekom,DE
"""


@pytest.fixture(scope="module")
def service(place: Path) -> Iterator[Running]:
    (place / "records.csv").write_text(RECORDS)
    with running(place / "invoicing", {}) as server:
        yield server


def test_the_page_leads_from_records_to_a_stored_pdf(service: Running, place: Path) -> None:
    whole = "\n".join(block.text for block in blocks("sh", document=PAGE))
    said = done(place, whole + '\necho "invoice $invoice"', **as_reader(service))
    assert '"stored":1' in said
    assert '"total_bytes":50000000' in said
    assert "Nordwind Reisen GmbH" in said
    assert "DRAFT INVOICE" in (place / "draft.html").read_text()
    assert (place / "invoice.pdf").read_bytes().startswith(b"%PDF-")
    invoice = said.rsplit("invoice ", 1)[1].strip()
    shown = done(place, f"reseller call get_invoice --id {invoice}", **as_reader(service))
    # 1,000,000,012 bytes at 1.25 a GB, and 1 % of it.
    figures = json.loads(shown)
    assert (figures["subtotal_cents"], figures["platform_fee_cents"], figures["total_cents"]) == (125, 1, 126)
    assert figures["status"] == "sent"


def test_what_the_page_says_of_batches_is_what_is_declared() -> None:
    text = (ROOT / "docs" / PAGE).read_text()
    assert "at most 1,000 records and 2 MiB" in text
    assert ingest_cdr_events.body_limit == 2 << 20


def test_the_page_on_payments_names_commands_that_there_are(place: Path) -> None:
    for block in blocks("sh", document="payments.md"):
        assert "Usage: reseller" in done(place, block.text)
