"""The pages of payments: what came in, refunds, disputes, payouts and the account, of an organisation with a simulated account."""

import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

import pytest

from registry.caller import Role
from storage.connect_accounts import attach_connect_account
from tests.console.test_csv_download import file_of
from tests.pages.browser import Browser, Seen
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site
from tests.pages.trail import trail
from transports.upstream import deliver_in_process

CHARGES, REFUNDS, DISPUTES = "/console/money/charges", "/console/money/refunds", "/console/money/disputes"
PAYOUTS, ACCOUNT = "/console/money/payouts", "/console/money/payment-account"


@dataclass
class Till:
    """The account of Fjord at the processor, and Ada at the console."""

    site: Site
    browser: Browser
    account: str

    async def ask(self, path: str, *, told: bool = True, **body: object) -> Mapping[str, object]:
        """What a payer, a bank or the processor does; the service is told of it."""
        sandbox = self.site.service.payments.sandbox
        assert sandbox is not None
        whose = {} if path.startswith("accounts/") else {"account": self.account}
        made = cast("Mapping[str, object]", await sandbox.control("POST", path, {**whose, **body}))
        if told:
            await self.tell()
        return made

    async def tell(self) -> None:
        """The service is told of everything that has happened at the processor."""
        sandbox = self.site.service.payments.sandbox
        assert sandbox is not None
        while await sandbox.deliver(partial(deliver_in_process, self.site.app)):
            pass

    async def charge(self, amount: int = 1490, *, told: bool = True, outcome: str = "succeeded") -> str:
        body = {"amount": amount, "currency": "EUR", "fee": amount // 100, "outcome": outcome}
        return str((await self.ask("charges", told=told, **body))["id"])

    async def fault(self, path: str, trouble: str) -> None:
        sandbox = self.site.service.payments.sandbox
        assert sandbox is not None
        await sandbox.control("POST", "faults", {"trouble": trouble, "path": path, "times": 9, "after": True})

    async def refunds(self) -> list[int]:
        """The amounts that went back at the processor."""
        sandbox = self.site.service.payments.sandbox
        assert sandbox is not None
        return [refund.amount for refund in sandbox.state.book(self.account).refunds.values()]

    async def evidence(self, dispute: str) -> Mapping[str, str]:
        """What the processor holds of an answer."""
        sandbox = self.site.service.payments.sandbox
        assert sandbox is not None
        return sandbox.state.book(self.account).disputes[dispute].evidence

    async def form_of(self, charge: str, **typed: str) -> Seen:
        """The question that the form of a refund leads to."""
        shown = await self.browser.get(f"{REFUNDS}?charge={charge}")
        return await self.browser.send(shown.page.form(REFUNDS, "refund"), **typed)


@pytest.fixture
async def till(site: Site, hers: Browser, fjord: str) -> AsyncGenerator[Till]:
    processor, sandbox, now = site.service.pipeline.deps.payments, site.service.payments.sandbox, site.clock.now()
    assert sandbox is not None
    account = (await processor.create_account(key="till", email=ADA_ADDRESS, country="DE", metadata={})).id
    await sandbox.control("POST", f"accounts/{account}", {"do": "enable"})
    await site.service.store.write(
        attach_connect_account, organisation=fjord, account=account, kind="express", status="active", as_of=now, now=now
    )
    yield Till(site, hers, account)


@pytest.mark.long
async def test_charges_say_what_came_in_with_fees_and_filters_that_stay_in_the_address(till: Till) -> None:
    await till.charge(1490)
    await till.charge(2000, outcome="declined")
    disputed = await till.charge(500)
    await till.ask("disputes", charge=disputed)
    seen = await till.browser.get(CHARGES)
    assert "With these 3 payments €19.90 came in, and nothing went back. 1 is disputed. 1 failed." in seen.page.text
    assert "€0.14" in seen.page.text and "The card was declined" in seen.page.text and "no balance to show" in seen.page.text
    failed = await till.browser.get(f"{CHARGES}?state=failed&paid=other")
    assert "With this payment nothing came in" in failed.page.text and "€14.90" not in failed.page.text
    till.site.clock.advance(1)
    for place in range(25):
        await till.charge(100, told=place == 24)
    first = await till.browser.get(f"{CHARGES}?state=succeeded")
    following = next(tag.attributes["href"] for tag in first.page.tags if tag.attributes.get("rel") == "next")
    assert following.startswith(f"{CHARGES}?state=succeeded&after=ch_")
    last = await till.browser.get(following)
    assert "With this payment €14.90 came in" in last.page.text and 'rel="next"' not in last.page.html
    rows = await file_of(till.browser, f"{CHARGES}?state=succeeded&paid=other", "charges")
    assert [(row["amount"], row["currency"], row["status"]) for row in rows] == [("100", "EUR", "succeeded")] * 25 + [
        ("1490", "EUR", "succeeded")
    ]
    none = await till.browser.get(f"{CHARGES}?from=2031-01-01")
    assert "Nothing fits" in none.page.text


@pytest.mark.long
async def test_a_refund_is_asked_first_with_what_is_lost_and_made_once(till: Till) -> None:
    charge = await till.charge(1490)
    seen = await till.browser.get(CHARGES)
    assert f'href="{REFUNDS}?charge={charge}"' in seen.page.html
    asked = await till.form_of(charge, amount="5,00", reason="duplicate")
    assert "Give this money back?" in asked.page.text and "€5.00 of the charge" in asked.page.text and await till.refunds() == []
    form = asked.page.form(REFUNDS, "refund")
    for _ in range(2):
        done = await till.browser.send(form)
        assert done.path == f"{REFUNDS}?charge={charge}&done=refunded" and "With this refund €5.00 went back" in done.page.text
    assert await till.refunds() == [500]
    await till.tell()
    rows = await file_of(till.browser, f"{REFUNDS}?state=succeeded", "refunds")
    assert [(row["charge"], row["amount"], row["reason"]) for row in rows] == [(charge, "500", "duplicate")]
    left = await till.browser.get(f"{REFUNDS}?charge={charge}")
    assert "Left to give back €9.90" in left.page.text
    for wrong in ("99", "abc", "1.999", "0", "0,00"):
        refused = await till.form_of(charge, amount=wrong)
        assert (refused.status, refused.page.form(REFUNDS, "refund").fields["amount"]) == (400, wrong)
        assert "at most what is left" in (refused.page.wrong("amount") or "")
    nought = await till.browser.post(REFUNDS, {**form.fields, "do": "refund", "once": "", "amount": "0"})
    assert nought.status == 400 and await till.refunds() == [500]


async def test_an_outcome_that_nobody_knows_is_asked_for_with_the_same_key(till: Till) -> None:
    charge = await till.charge(1490)
    form = (await till.form_of(charge, amount="3")).page.form(REFUNDS, "refund")
    await till.fault("/v1/refunds", "closed")
    lost = await till.browser.send(form)
    assert lost.status == 502 and "did not say whether it was done" in lost.page.text
    again = lost.page.form(REFUNDS, "refund")
    assert again.fields["once"] == form.fields["once"] and again.buttons == [("Ask for the outcome", "", "")]
    await till.tell()
    told = await till.browser.send(again)
    assert told.path == f"{REFUNDS}?charge={charge}&done=refunded" and await till.refunds() == [300]


@pytest.mark.long
async def test_whoever_signed_in_long_ago_moves_no_money(till: Till) -> None:
    charge = await till.charge(1490)
    await till.charge(4900, outcome="reviewed")
    dispute = f"{DISPUTES}/{(await till.ask('disputes', charge=await till.charge(700)))['id']}"
    refund = (await till.browser.get(f"{REFUNDS}?charge={charge}")).page.form(REFUNDS, "refund")
    payouts = (await till.browser.get(PAYOUTS)).page
    payout, schedule = payouts.form(PAYOUTS, "pay"), payouts.form(PAYOUTS, "schedule")
    account = (await till.browser.get(ACCOUNT)).page
    leave, review = account.form(ACCOUNT, "dashboard"), account.form(ACCOUNT, "approve")
    till.site.clock.advance(15 * 60 + 1)
    for page in (f"{REFUNDS}?charge={charge}", PAYOUTS, ACCOUNT, dispute):
        shown = await till.browser.get(page)
        assert "You signed in more than 15 minutes ago" in shown.page.text
        assert {form.fields.get("do") for form in shown.page.forms if form.action == page.partition("?")[0]} - {None} == {"again"}
    led = await till.browser.send(refund, amount="1")
    assert led.path == f"/auth/sign-in?next=/console/money/refunds%3Fcharge%3D{charge}"
    for form, typed in ((payout, {"amount": "1", "currency": "EUR"}), (schedule, {"interval": "manual"}), (leave, {}), (review, {})):
        assert (await till.browser.send(form, **typed)).path.startswith("/auth/sign-in")
    for page, do, button in ((dispute, "answer", "Keep as a draft"), (ACCOUNT, "approve", None)):
        await till.site.sign_in(till.browser, ADA_ADDRESS, page)
        form = (await till.browser.get(page)).page.form(page, do)
        till.site.clock.advance(15 * 60 + 1)
        typed = {"service_date": "20 November 2026"} if do == "answer" else {}
        assert (await till.browser.send(form, button, **typed)).path == f"/auth/sign-in?next={page}"
    moved = ("operator_billing_submit_dispute_evidence", "operator_billing_approve_fraud_review", "operator_billing_create_refund")
    paid = ("operator_billing_create_manual_payout", "operator_billing_update_payout_schedule", "operator_billing_connect_dashboard_link")
    assert await trail(till.site, *moved, *paid) == []


@pytest.mark.long
async def test_disputes_say_until_when_they_wait_and_are_answered_as_a_draft_and_for_good(till: Till) -> None:
    charge = await till.charge(1490)
    dispute = str((await till.ask("disputes", charge=charge, reason="product_not_received"))["id"])
    listed = await till.browser.get(DISPUTES)
    found = re.search(r"1 dispute over €14\.90 waits for your answer: (\d+) days left\.", listed.page.text)
    assert found is not None and "I did not get it" in listed.page.text
    till.site.clock.advance(86_400)
    page = f"{DISPUTES}/{dispute}"
    await till.site.sign_in(till.browser, ADA_ADDRESS, page)
    seen = await till.browser.get(page)
    assert f"waits for your answer: {int(found[1]) - 1} days left" in seen.page.text
    form, other_tab = seen.page.form(page, "answer"), (await till.browser.get(page)).page.form(page, "answer")
    empty = await till.browser.send(form, "Keep as a draft")
    assert empty.status == 400 and empty.page.wrong("uncategorized_text")
    assert "At most 20,000 characters; line breaks are kept." in seen.page.text and "together have at most 150,000" in seen.page.text
    draft = await till.browser.send(form, "Keep as a draft", service_date="20 November 2026")
    assert draft.path == f"{page}?done=draft" and "The bank has not seen it" in draft.page.text
    again = draft.page.form(page, "answer")
    again.fields["product_description"] = "x" * 20_001
    long = await till.browser.send(again, "Keep as a draft")
    assert long.status == 400 and "20000" in (long.page.wrong("product_description") or "")
    told = "Attached in Norway\r\non 20 November:\r\n" + "ü" * 19_000
    again = draft.page.form(page, "answer")
    again.fields["access_activity_log"] = told
    asked = await till.browser.send(again, "Send to the bank", service_date="20 November 2026")
    assert "You answer with: Use of the eSIM, When the eSIM was delivered." in asked.page.text
    sent = await till.browser.send(asked.page.form(page, "answer"))
    assert await till.evidence(dispute) == {"service_date": "20 November 2026", "access_activity_log": told.replace("\r\n", "\n")}
    assert sent.path == f"{page}?done=submitted" and "The bank decides" in sent.page.text
    assert [one for one in sent.page.forms if one.action == page] == []
    late = await till.browser.send(other_tab, "Keep as a draft", service_date="later")
    assert late.status == 409 and "the bank takes it once" in late.page.text
    assert "No dispute waits for you." in (await till.browser.get(DISPUTES)).page.text
    assert (await till.browser.get(f"{DISPUTES}/du_none")).status == 404


@pytest.mark.long
async def test_a_payout_is_asked_first_made_once_and_one_that_is_too_large_says_so(till: Till) -> None:
    await till.charge(10_000, outcome="available")
    large = await till.browser.send((await till.browser.get(PAYOUTS)).page.form(PAYOUTS, "pay"), amount="500", currency="eur")
    refused = await till.browser.send(large.page.form(PAYOUTS, "pay"))
    assert refused.page.form(PAYOUTS, "pay").fields["amount"] == "500"
    assert "at most what can be paid out" in (refused.page.wrong("amount") or "")
    asked = await till.browser.send(refused.page.form(PAYOUTS, "pay"), amount="20.50", currency="EUR")
    assert "Pay this out to your bank?" in asked.page.text and "€20.50 go to the bank account" in asked.page.text
    form = asked.page.form(PAYOUTS, "pay")
    for _ in range(2):
        done = await till.browser.send(form)
        assert done.path == f"{PAYOUTS}?done=paid" and "With this payout €20.50 went to your bank" in done.page.text


@pytest.mark.long
async def test_two_tabs_lose_no_schedule(till: Till) -> None:
    form = (await till.browser.get(PAYOUTS)).page.form(PAYOUTS, "schedule")
    kept = await till.browser.send(form, interval="weekly", weekday="friday")
    assert kept.path == f"{PAYOUTS}?done=scheduled" and "You are paid every week, on Friday." in kept.page.text
    old = await till.browser.send(form, interval="monthly", month_day="3")
    assert (old.status, old.page.form(PAYOUTS, "schedule").fields["interval"]) == (412, "monthly")
    missing = await till.browser.send(kept.page.form(PAYOUTS, "schedule"), interval="monthly")
    assert missing.status == 400 and missing.page.wrong("month_day")
    assert "You are paid every week, on Friday." in (await till.browser.get(PAYOUTS)).page.text


@pytest.mark.long
async def test_the_account_says_how_it_stands_and_leads_on(till: Till) -> None:
    seen = await till.browser.get(ACCOUNT)
    assert "Payers can pay you, and you are paid out." in seen.page.text
    away = await till.browser.send(seen.page.form(ACCOUNT, "dashboard"))
    assert "lets in whoever opens it first" in away.page.text and "/sandbox/payments/" in away.page.html
    await till.ask(f"accounts/{till.account}", do="restrict", due=["external_account"])
    short = await till.browser.get(ACCOUNT)
    assert "nobody can pay you yet" in short.page.text and "a bank account" in short.page.text


@pytest.mark.long
async def test_a_payment_that_is_held_up_is_let_through_after_a_question_or_given_back(till: Till) -> None:
    charge = await till.charge(4900, outcome="reviewed")
    seen = await till.browser.get(ACCOUNT)
    assert "1 payment waits until somebody has looked at it." in seen.page.text
    assert f'href="{REFUNDS}?charge={charge}"' in seen.page.html
    asked = await till.browser.send(seen.page.form(ACCOUNT, "approve"))
    assert "Let this payment through?" in asked.page.text
    done = await till.browser.send(asked.page.form(ACCOUNT, "approve"))
    assert done.path == f"{ACCOUNT}?done=approved" and "No payment is held up." in done.page.text


async def test_without_an_account_every_list_says_what_to_do(hers: Browser) -> None:
    for path in (CHARGES, REFUNDS, DISPUTES, PAYOUTS):
        seen = await hers.get(path)
        assert (seen.status, "Nobody can pay you yet" in seen.page.text) == (200, True), path
        assert f'href="{ACCOUNT}"' in seen.page.html
    seen = await hers.get(ACCOUNT)
    assert "so nobody can pay you" in seen.page.text
    away = await hers.send(seen.page.form(ACCOUNT, "begin"))
    assert "It asks who you are" in away.page.text and "/sandbox/payments/" in away.page.html


async def test_a_member_is_not_led_to_the_pages_of_the_account(till: Till, fjord: str) -> None:
    await till.site.join(await till.site.person("bo@fjord.example"), fjord, Role.MEMBER)
    async with till.site.browser() as browser:
        seen = await till.site.sign_in(browser, "bo@fjord.example", ACCOUNT)
        assert "Only admins of your organisation may do this." in seen.page.text
        assert [tag.attributes for tag in seen.page.tags if tag.name == "button" and "disabled" in tag.attributes]
