"""The pages of money, on the demo: what was used and is to be paid, invoices to the cent, and how the organisation bills."""

import re
import time
from dataclasses import dataclass

import httpx
import pytest

from registry.caller import Tier
from tests.console.conftest import DemoConsole
from tests.console.test_csv_download import file_of
from tests.pages.browser import Browser, Seen
from tests.pages.site import Site

NEW = "/console/money/invoices/new"
CONFIG = "/console/money/billing-config"
STRANGE_SIM = "8988303000000912345"
"""A SIM that is none of the demo's."""
MONEY = re.compile(r"[€$]([0-9,]+)\.([0-9]{2})")
INVOICE_PAGE = re.compile(r"/console/money/invoices/(inv_[0-9a-z]{26})")


@dataclass
class BilledMonth:
    """A month of 2025 with records: 1.5 GB of a SIM of nobody, and two GB and a byte of one that an account has."""

    name: str
    period: str
    sim: str
    account: int


def billed_month(api: httpx.Client, month: int, name: str) -> BilledMonth:
    line = api.get("/v1/fleet/lines", params={"limit": 1, "fields": ["account_id"]}).json()["data"][0]
    events = [
        {"id": f"{month}-{iccid}", "iccid": iccid, "occurred_at": f"2025-{month:02d}-15T12:00:00Z", "bytes_up": 1, "bytes_down": down}
        for iccid, down in ((STRANGE_SIM, 1_499_999_999), (line["iccid"], 2_000_000_000))
    ]
    assert api.post("/v1/cdr/ingest", json={"events": events}).json()["received"] == 2
    periods = api.get("/v1/invoices/periods").json()["data"]
    period = next(each["id"] for each in periods if (each["year"], each["month"]) == (2025, month))
    return BilledMonth(f"{name} 2025", period, line["iccid"], line["account_id"])


def amounts(text: str) -> list[int]:
    """Every amount of money in a text, in cents."""
    return [int(whole.replace(",", "") + cents) for whole, cents in MONEY.findall(text)]


def row_of(seen: Seen, name: str) -> str:
    """The text of the row that has `name` in its head."""
    rows = re.findall(r"<tr\b[^>]*>(.*?)</tr>", seen.page.html, re.DOTALL)
    found = [row for row in rows if 'scope="row"' in row and name in row.partition("</th>")[0]]
    assert len(found) == 1, (name, found)
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


async def made_invoice(demo: Browser, month: BilledMonth, **typed: str) -> str:
    """The path of a draft that was made by the form."""
    seen = await demo.get(f"{NEW}?period={month.period}")
    seen = await demo.send(seen.page.form(NEW, "create"), **typed)
    assert (seen.status, seen.path[-13:]) == (200, "?done=created"), seen.page.text
    return seen.path.removesuffix("?done=created")


@pytest.mark.long
async def test_an_account_is_billed_from_the_overview_and_its_invoice_is_right_to_the_cent_until_it_is_paid(
    demo: Browser, demo_server: DemoConsole
) -> None:
    month = billed_month(demo_server.api, 3, "March")
    overview = f"/console/money?month={month.period}"
    seen = await demo.get(overview)
    assert row_of(seen, month.name).startswith("March 2025 Closed, not invoiced 3.5 GB – – –")
    assert row_of(seen, "No account known").startswith("No account known 1 1.5 GB Not yet – – –")
    link = f"{NEW}?period={month.period}&account={month.account}"
    assert link in [tag.attributes.get("href") for tag in seen.page.tags]

    form = (await demo.get(link)).page.form(NEW, "create")
    assert (form.fields["period_id"], form.fields["account_ids"]) == (month.period, str(month.account))
    typed = {"price_per_gb_cents": "2,49", "currency": "EUR", "recipient_name": "Fjord Ferries AS", "recipient_email": "pay@fjord.example"}
    first, again = [await demo.send(form, **typed) for _ in range(2)]
    assert (first.status, again.path) == (200, first.path)
    page, id = first.path.removesuffix("?done=created"), INVOICE_PAGE.findall(first.path)[0]
    whole = demo_server.api.get(f"/v1/invoices/{id}").json()
    assert (whole["total_cents"], whole["subtotal_cents"], whole["line_items_total"]) == (503, 498, 1)
    assert "This draft asks Fjord Ferries AS for €5.03, for the data of March 2025." in first.page.text
    assert row_of(first, "Sum of the lines").endswith("€4.98") and row_of(first, "Total").endswith("€5.03")
    figures = first.page.html[first.page.html.index("<tbody>") : first.page.html.index("</tfoot>")]
    price, line, subtotal, tax, fee, total = amounts(re.sub(r"<[^>]+>", " ", figures))
    assert (price, line, subtotal, subtotal + tax + fee) == (249, subtotal, whole["subtotal_cents"], total)
    assert row_of(await demo.get(overview), str(month.account)).count("€4.98") == 1

    asked = await demo.send(first.page.form(page, "send"))
    assert "The payment processor mails it to Fjord Ferries AS, pay@fjord.example, who is asked to pay €5.03." in asked.page.text
    assert demo_server.api.get(f"/v1/invoices/{id}").json()["status"] == "draft"
    sent = [await demo.send(asked.page.form(page, "send")) for _ in range(2)]
    assert [seen.path for seen in sent] == [f"{page}?done=sent"] * 2
    assert "€5.03 for the data of March 2025 is still to be paid by Fjord Ferries AS. The last day for it is" in sent[0].page.text
    assert "The payment processor tells when it is paid; nobody can set it by hand." in sent[0].page.text
    document = await demo.get(f"{page}/document")
    assert document.answer.content == demo_server.api.get(f"/v1/invoices/{id}/pdf").content
    assert (document.answer.headers["content-type"], document.answer.content[:5]) == ("application/pdf", b"%PDF-")
    assert document.answer.headers["content-disposition"].startswith("attachment;")

    bill = (await demo.get(demo_server.api.get(f"/v1/invoices/{id}").json()["payment_url"])).page
    await demo.send(next(form for form in bill.forms if "do" in [name for _, name, _ in form.buttons]))
    for _ in range(600):
        seen = await demo.get(page)
        if "is paid, by" in seen.page.text:
            break
        time.sleep(0.05)
    assert "€5.03 for the data of March 2025 is paid, by Fjord Ferries AS." in seen.page.text
    assert "It is paid: give the money back by a refund instead." in seen.page.text
    assert row_of(await demo.get(overview), month.name).startswith("March 2025 Invoiced 3.5 GB – – €5.03")


@pytest.mark.long
async def test_a_draft_is_edited_by_one_of_two_tabs_and_voided_after_a_question(demo: Browser, demo_server: DemoConsole) -> None:
    month = billed_month(demo_server.api, 4, "April")
    page = await made_invoice(demo, month, price_per_gb_cents="10", currency="USD")
    seen = await demo.get(page)
    assert "The payment processor will mail it, so save the name" in seen.page.text
    form = seen.page.form(page, "edit")
    wrong = await demo.send(form, recipient_email="nobody", recipient_name="Nordwind")
    assert wrong.status == 400 and wrong.page.wrong("recipient_email")
    assert wrong.page.form(page, "edit").fields["recipient_name"] == "Nordwind"
    past = await demo.send(form, due_at="2024-02-30")
    assert (past.page.wrong("due_at") or "").startswith("This is no day to pay by.")
    saved = [await demo.send(form, recipient_name="Nordwind", recipient_email="a@nordwind.example", due_at="2027-05-31") for _ in range(2)]
    assert [each.path for each in saved] == [f"{page}?done=edited"] * 2
    late = await demo.send(form, recipient_name="Südwind")
    assert (late.status, late.page.form(page, "edit").fields["recipient_name"]) == (412, "Südwind")
    assert "You have changed this yourself at" in late.page.text
    unsent = await demo.send(seen.page.form(page, "send"))
    assert (unsent.status, "You have changed this yourself at" in unsent.page.text) == (412, True)
    void = await demo.send(seen.page.form(page, "void"))
    assert (void.status, "Somebody has changed this" in void.page.text) == (412, True)
    look = await demo.get(f"{page}/document")
    assert look.answer.headers["content-type"].startswith("text/html") and "DRAFT INVOICE" in look.page.text
    assert "default-src 'none'" in look.answer.headers["content-security-policy"] and "31 May 2027" in look.page.text
    asked = await demo.send((await demo.get(page)).page.form(page, "void"))
    assert "The draft of $35.35 to Nordwind is given up. It cannot be undone" in asked.page.text
    assert demo_server.api.get(f"/v1/invoices/{page[-30:]}").json()["status"] == "draft"
    voided = [await demo.send(asked.page.form(page, "void")) for _ in range(2)]
    assert [each.path for each in voided] == [f"{page}?done=voided"] * 2
    assert "is void: nothing is owed on it." in voided[0].page.text and "It is void already." in voided[0].page.text


async def test_notes_keep_their_lines_and_are_not_changed_by_saving_what_a_browser_sends_of_them(
    demo: Browser, demo_server: DemoConsole
) -> None:
    """A browser ends each line of a text area with CR and LF (HTML, 4.10.22.4 constructing the entry list)."""
    page = await made_invoice(demo, billed_month(demo_server.api, 6, "June"), price_per_gb_cents="2", currency="EUR")
    path, typed = f"/v1/invoices/{page[-30:]}", "Thank you.\r\n\r\nBank: NO93"
    found = list[httpx.Response]()
    for notes in (f"{typed}\r\n", typed):
        saved = await demo.post(page, {**(await demo.get(page)).page.form(page, "edit").fields, "notes": notes})
        assert saved.path == f"{page}?done=edited"
        assert ">Thank you.\n\nBank: NO93</textarea>" in saved.page.html
        found.append(demo_server.api.get(path))
    assert [each.json()["notes"] for each in found] == ["Thank you.\n\nBank: NO93"] * 2
    assert len({each.headers["etag"] for each in found}) == 1
    assert "<p>Thank you.<br><br>Bank: NO93<br></p>" in (await demo.get(f"{page}/document")).page.html


async def test_the_list_has_its_filters_in_the_address_and_says_what_is_owed(demo: Browser, demo_server: DemoConsole) -> None:
    month = billed_month(demo_server.api, 5, "May")
    await made_invoice(demo, month, price_per_gb_cents="2", currency="EUR", recipient_name="Hansen & Sønn")
    seen = await demo.get(f"{NEW}?period={month.period}")
    typed = {"price_per_gb_cents": "3", "currency": "USD", "recipient_name": "<b>Hansen</b>", "account_ids": ""}
    asked = await demo.send(seen.page.form(NEW, "create"), **typed)
    assert "1 invoice of this month is not void." in asked.page.text
    assert (await demo.send(asked.page.form(NEW, "create"))).path.endswith("?done=created")
    listed = await demo.get(f"/console/money/invoices?period={month.period}&recipient=HANSEN&status=draft")
    assert "2 invoices" in listed.page.text and "€7.07, $10.61 in 2 drafts that nobody has yet" in listed.page.text
    assert "<b>Hansen</b>" in listed.page.text
    rows = await file_of(demo, f"/console/money/invoices?period={month.period}&recipient=HANSEN&status=draft", "invoices")
    assert [(row["recipient_name"], row["total_cents"], row["currency"]) for row in rows] == [
        ("<b>Hansen</b>", "1061", "USD"), ("Hansen & Sønn", "707", "EUR"),
    ]  # fmt: skip
    assert "No invoice matches" in (await demo.get(f"/console/money/invoices?period={month.period}&status=paid")).page.text
    german = await demo.http.get(f"/console/money/invoices?period={month.period}", headers={"Accept-Language": "de"})
    assert "Entwurf" in german.text and "7,07" in german.text


@pytest.mark.long
async def test_how_one_bills_is_changed_in_one_of_two_tabs_and_what_is_no_price_is_refused(demo: Browser, demo_server: DemoConsole) -> None:
    form = (await demo.get(CONFIG)).page.form(CONFIG, "change")
    wrong = await demo.send(form, price_per_gb_cents="two")
    assert (wrong.status, wrong.page.wrong("price_per_gb_cents")) == (
        400,
        "This is no price. Write it with at most two places, such as 2.50.",
    )
    assert (await demo.send(form, invoice_prefix="A B")).page.wrong("invoice_prefix")
    saved = [await demo.send(form, price_per_gb_cents="2,5", currency="EUR", invoice_prefix="FJORD") for _ in range(2)]
    assert [each.path for each in saved] == [f"{CONFIG}?done=changed"] * 2
    assert "New invoices ask €2.50 for a GB, have numbers that begin with FJORD" in saved[0].page.text
    assert demo_server.api.get("/v1/invoices/config").json()["price_per_gb_cents"] == 250
    late = await demo.send(form, price_per_gb_cents="9")
    assert (late.status, late.page.form(CONFIG, "change").fields["price_per_gb_cents"]) == (412, "9")
    assert "You have changed this yourself at" in late.page.text
    assert (await demo.send(late.page.form(CONFIG, "change"))).path == f"{CONFIG}?done=changed"
    assert demo_server.api.get("/v1/invoices/config").json()["price_per_gb_cents"] == 900
    begun = await demo.send(saved[0].page.form(CONFIG, "begin"))
    assert "Yes: the payment processor mails your invoices" in saved[0].page.text
    assert any("/sandbox/payments/" in tag.attributes.get("href", "") for tag in begun.page.tags)


async def test_money_of_a_free_organisation_says_what_to_do_next_and_why_buttons_are_off(site: Site, browser: Browser) -> None:
    await site.organisation(await site.person("free@fjord.example"), "Free", tier=Tier.FREE)
    await site.sign_in(browser, "free@fjord.example", "/console")
    assert "No month has call records yet" in (await browser.get("/console/money")).page.text
    assert "There is no invoice yet" in (await browser.get("/console/money/invoices")).page.text
    assert "There is no month to bill yet" in (await browser.get(NEW)).page.text
    config = (await browser.get(CONFIG)).page
    assert "No: you have no account at the payment processor." in config.text
    assert "The tier or role that you have does not carry this." in config.text
    assert config.form(CONFIG, "begin").buttons[0][0] == "Begin at the payment processor"
    site.clock.advance(16 * 60)
    assert [form.fields["do"] for form in (await browser.get(CONFIG)).page.forms if form.action == CONFIG] == ["change", "again"]
    for path in ("/console/money/invoices/inv_none", "/console/money/invoices/inv_none/document"):
        assert (await browser.get(path)).status == 404
