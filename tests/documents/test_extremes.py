"""Texts and figures at their limits: everything is on the document, on its pages, and adds up."""

from pathlib import Path

import pypdfium2
import pytest

from operations.invoicing.invoice_document import INVOICE_SHEET_LIMIT, invoice_sheet, typeset_invoice_pdf
from storage.invoice_lines import InvoiceLineRow
from storage.invoices import Invoice
from tests.documents.reader import Page, pages_of
from tests.documents.stage import invoiced

MOST = 2**53 - 1
MARGIN = 20 / 210
"""Of the width of A4: what the template keeps free at each side."""
PAY = "https://pay.example/i/acct_1TestAccount/" + "test_YWNjdF8xVGVzdA" * 12
INVOICE = Invoice(
    id="inv_1", organisation="org_1", period="per_1", number="INV-2027-000001", status="sent", sending=0, revision=0, discarded=0,
    currency="EUR", price_per_gb_cents=10**9, platform_fee_bps=5000, subtotal_cents=MOST, tax_cents=0, platform_fee_cents=0,
    total_cents=MOST, lines=1, selected=0, connect_account=None, processor_invoice=None, pay_url=PAY, recipient_name="Ä" * 200,
    recipient_email=f"{'e' * 64}@{'d' * 63}.{'d' * 63}.example", notes="ñ" * 2000, document=1, issued_at=1_800_014_400,
    due_at=1_802_606_400, paid_at=None, created=1_800_014_400, updated=1_800_014_400,
)  # fmt: skip


def line(position: int, *, used: int, network: str) -> InvoiceLineRow:
    return InvoiceLineRow("inv_1", position, f"ili_{position}", "8" * 22, used // 2, used - used // 2, used, network, "NO")


def ink_in_the_margins(content: bytes) -> int:
    """Pixels left and right of where the template writes."""
    document = pypdfium2.PdfDocument(content)
    try:
        found = 0
        for page in document:
            drawn = page.render(scale=1, grayscale=True).to_pil()
            width, height = drawn.size
            side = round(width * MARGIN) - 2
            for left in (0, width - side):
                found += sum(drawn.crop((left, 0, left + side, height)).histogram()[:200])
        return found
    finally:
        document.close()


def test_no_text_however_long_its_words_runs_off_the_page() -> None:
    lines = [line(1, used=MOST, network="N" * 64), line(2, used=0, network="Some Long Network Name of the Sea")]
    content = typeset_invoice_pdf(invoice_sheet(INVOICE, lines, issuer="I" * 80, month=202612), 1_800_014_400)
    assert ink_in_the_margins(content) == 0
    text = "".join(pages_of(content)).replace(" ", "")
    assert PAY in text
    assert text.count("Ä") == 200
    assert text.count("ñ") == 2000
    assert "4,503,599,627,370,4954,503,599,627,370,4969,007,199.25590,071,992,547,409.91" in text


async def test_all_of_the_notes_are_printed_however_many_lines_they_have(tmp_path: Path) -> None:
    async with invoiced(tmp_path, 30, recipient="Nordwind", notes="\n".join(f"{number:03}" for number in range(500))) as desk:
        await desk.send()
        pages = pages_of((await desk.document()).content)
    printed = [[word for word in page.split() if len(word) == 3 and word.isdigit()] for page in pages]
    assert [word for words in printed for word in words] == [f"{number:03}" for number in range(500)]
    assert max(len(words) for words in printed) < 60, "more lines than a page is high"
    assert "Months, days and hours are UTC." in pages[-1]


@pytest.mark.long
async def test_sims_that_are_too_many_to_list_are_one_row_with_their_sum(tmp_path: Path) -> None:
    async with invoiced(tmp_path, INVOICE_SHEET_LIMIT + 3) as desk:
        page, invoice = Page((await desk.document()).text), await desk.read()
    *listed, rest = [row for row in page.cells if row]
    lines = invoice["line_items"]
    assert [row[1] for row in listed] == [each["iccid"] for each in lines[:INVOICE_SHEET_LIMIT]]
    others = lines[INVOICE_SHEET_LIMIT:]
    cents = sum(each["amount_cents"] for each in others)
    figures = [f"{sum(each[name] for each in others):,}" for name in ("bytes_up", "bytes_down")]
    used = sum(each["bytes_total"] for each in others)
    assert rest == ["", "3 more SIMs", "", *figures, f"{used / 1e9:,.3f}", f"{cents // 100:,}.{cents % 100:02d}"]
    assert "The first 10,000 SIMs are listed; the last row adds up all others." in page.text
    assert f"on {INVOICE_SHEET_LIMIT + 3:,} SIMs" in page.text
