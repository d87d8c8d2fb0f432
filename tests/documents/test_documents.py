"""The document of an invoice: a page while it is a draft, then a PDF that is made once."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

from tests.documents.reader import Page, ink, pages_of
from tests.documents.stage import ask_document, invoiced
from tests.world import HOST

HOSTILE = '<img src=x onerror=alert(1)> #strong[x] $x^2$ "@import" & Söhne'


def amount(cents: int) -> str:
    return f"{cents // 100:,}.{cents % 100:02d}"


@pytest.mark.rule("4.4.29")
async def test_a_draft_is_a_page_with_the_figures_of_the_invoice(tmp_path: Path) -> None:
    async with invoiced(tmp_path, 3, recipient="Nordwind Reisen GmbH") as desk:
        answer, invoice = await desk.document(), await desk.read()
    page = Page(answer.text)
    assert answer.headers["content-type"] == "text/html"
    assert answer.headers["content-disposition"] == 'inline; filename="FJ-2027-000001.html"'
    assert "DRAFT INVOICE FJ-2027-000001" in page.text
    assert "This is a draft" in page.text
    assert "Billed to Nordwind Reisen GmbH" in page.text
    assert "Period 1 Dec 2026 to 31 Dec 2026" in page.text
    assert "Price per GB 1.25 EUR" in page.text
    assert [row for row in page.cells if row] == [
        [
            str(number),
            line["iccid"],
            "Orange (FR)" if line["network"] else "",
            f"{line['bytes_up']:,}",
            f"{line['bytes_down']:,}",
            f"{line['bytes_total'] / 1e9:.3f}",
            amount(line["amount_cents"]),
        ]
        for number, line in enumerate(invoice["line_items"], 1)
    ]
    assert f"Subtotal {amount(invoice['subtotal_cents'])} EUR" in page.text
    assert "Tax (0 %) 0.00 EUR" in page.text
    assert f"Platform fee (1.00 %) {amount(invoice['platform_fee_cents'])} EUR" in page.text
    assert f"Total {amount(invoice['total_cents'])} EUR" in page.text


async def test_the_page_runs_nothing_and_fetches_nothing(tmp_path: Path) -> None:
    async with invoiced(tmp_path, 1, recipient=HOSTILE, notes="</style><script>alert(1)</script>\n= Head") as desk:
        answer = await desk.document()
    page = Page(answer.text)
    assert set(page.elements) & {"script", "img", "link", "iframe", "object", "form", "a"} == set()
    assert not [name for name in page.attributes if name.startswith("on") or name in ("src", "href")]
    assert HOSTILE in page.text
    assert "</style><script>alert(1)</script>" in page.text
    policy = answer.headers["content-security-policy"]
    style = re.search(r"<style>(.*?)</style>", answer.text, re.S)
    assert style is not None

    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy == (f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.rule("4.4.29")
async def test_a_sent_invoice_is_a_pdf_with_the_same_figures(tmp_path: Path) -> None:
    async with invoiced(tmp_path, 60, recipient="Nordwind Reisen GmbH", notes="PO 4711") as desk:
        draft = Page((await desk.document()).text)
        sent = await desk.send()
        answer, invoice = await desk.document(), await desk.read()
    assert sent["pdf_url"] == f"https://{HOST}/v1/invoices/{desk.invoice}/pdf"
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.headers["content-disposition"] == 'attachment; filename="FJ-2027-000001.pdf"'
    pages = pages_of(answer.content)
    assert len(pages) == 2
    assert [f"Page {number} of 2" in page for number, page in enumerate(pages, 1)] == [True, True]
    whole = " ".join(pages)
    for row in filter(None, draft.cells):
        assert " ".join(cell for cell in row if cell) in whole
    for text in ("INVOICE FJ-2027-000001", "Fjord Mobile", "Nordwind Reisen GmbH", "PO 4711", "1 GB = 1,000,000,000 bytes"):
        assert text in whole
    assert "DRAFT" not in whole
    assert f"Total {amount(invoice['total_cents'])} EUR" in whole
    assert f"Due on 14 Feb 2027: {amount(invoice['total_cents'])} EUR." in whole
    assert 0.01 < ink(answer.content, 0) < 0.5


async def test_the_pdf_is_made_once_and_stays_when_the_invoice_is_voided(tmp_path: Path) -> None:
    async with invoiced(tmp_path, 2, recipient="Nordwind Reisen GmbH") as desk:
        await desk.send()
        first = (await desk.document()).content
        desk.world.clock.advance(86_400)
        await ask_document(desk.http, "PATCH", f"/v1/invoices/{desk.invoice}", {"status": "sent"})
        await ask_document(desk.http, "DELETE", f"/v1/invoices/{desk.invoice}")
        assert (await desk.document()).content == first


async def test_a_draft_that_was_voided_is_a_page_that_says_so(tmp_path: Path) -> None:
    async with invoiced(tmp_path, 1) as desk:
        await ask_document(desk.http, "DELETE", f"/v1/invoices/{desk.invoice}")
        page = Page((await desk.document()).text)
    assert "This invoice is void: nothing is owed on it." in page.text
    assert "No recipient is named on this invoice." in page.text


@pytest.mark.cases
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (HOSTILE, HOSTILE),
        ('#panic("x") ] } \\ *bold* _it_ `raw` // no', '#panic("x") ] } \\ *bold* _it_ `raw` // no'),
        ('=HYPERLINK("https://evil.example")', '=HYPERLINK("https://evil.example")'),
        ("株式会社 Nord", "Nord"),
    ],
)
async def test_a_hostile_name_is_text_in_the_pdf(tmp_path: Path, name: str, shown: str) -> None:
    async with invoiced(tmp_path, 1, recipient=name) as desk:
        await desk.send()
        (text,) = pages_of((await desk.document()).content)
    assert shown in text


async def test_an_issuers_name_cannot_turn_or_hide_what_follows(tmp_path: Path) -> None:
    async with invoiced(tmp_path, 1, name="Fjord\u202e Mobile\u200b\x07 AS") as desk:
        page = Page((await desk.document()).text)
        await desk.send()
        (text,) = pages_of((await desk.document()).content)
    assert "Fjord Mobile AS" in page.text
    assert "Fjord Mobile AS" in text


@pytest.mark.long
async def test_five_hundred_lines_make_one_document(tmp_path: Path) -> None:
    async with invoiced(tmp_path, 500, recipient="Nordwind Reisen GmbH") as desk:
        await desk.send()
        content, invoice = (await desk.document()).content, await desk.read()
    pages = pages_of(content)
    assert len(pages) > 9
    assert all(f"Page {number} of {len(pages)}" in page for number, page in enumerate(pages, 1))
    found = {iccid for page in pages for iccid in re.findall(r"\b8988303\d{12}\b", page)}
    assert found == {line["iccid"] for line in invoice["line_items"]}
    assert f"Total {amount(invoice['total_cents'])} EUR" in pages[-1]
