"""How an organisation bills."""

import asyncio

import httpx
import pytest
from inline_snapshot import snapshot

from operations.ledger.payment_accounts import platform_fee_bps_of
from storage.connect_accounts import attach_connect_account
from storage.organisations import set_fee_bps
from tests.invoices.billing import CONFIG, Billing


@pytest.mark.rule("2.10.1")
@pytest.mark.rule("4.4.27")
async def test_the_first_read_makes_the_row_with_its_defaults(bill: Billing) -> None:
    answer = await bill.http.get(CONFIG)
    assert answer.status_code == 200
    assert answer.json() == snapshot(
        {
            "org_id": "org_01mcckg2g00000000000000004",
            "currency": "USD",
            "billing_cycle_day": 1,
            "payments_connect_account_id": None,
            "payments_connect_status": "not_connected",
            "platform_fee_bps": 100,
            "price_per_gb_cents": 0,
            "invoice_prefix": "INV",
            "updated_at": 1800014400,
        }
    )
    bill.world.clock.advance(3600)
    assert (await bill.http.get(CONFIG)).json() == answer.json()


async def test_first_reads_at_the_same_time_make_one_row(bill: Billing) -> None:
    answers = await asyncio.gather(*(bill.http.get(CONFIG) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1


@pytest.mark.rule("4.4.28")
async def test_what_is_left_out_stays(bill: Billing) -> None:
    before = (await bill.http.get(CONFIG)).json()
    bill.world.clock.advance(60)
    given = {"currency": "EUR", "price_per_gb_cents": 250, "invoice_prefix": "FJORD"}
    assert (await bill.config(**given)).json() == {**before, **given, "updated_at": before["updated_at"] + 60}
    bill.world.clock.advance(60)
    second = (await bill.config(price_per_gb_cents=0)).json()
    assert (second["currency"], second["price_per_gb_cents"], second["invoice_prefix"]) == ("EUR", 0, "FJORD")
    third = (await bill.config()).json()
    assert {**third, "updated_at": 0} == {**second, "updated_at": 0}
    assert (await bill.http.get(CONFIG)).json() == third


@pytest.mark.cases
@pytest.mark.parametrize(
    "field",
    ["billing_cycle_day", "platform_fee_bps", "payments_connect_account_id", "payments_connect_status", "org_id", "updated_at"],
)
@pytest.mark.rule("4.4.28")
async def test_what_others_set_is_refused_and_says_who_sets_it(bill: Billing, field: str) -> None:
    before = (await bill.http.get(CONFIG)).json()
    for value in (5, "acct_1", "active", None, {}):
        answer = await bill.config(currency="CHF", **{field: value})
        assert (answer.status_code, answer.json()["param"], answer.json()["error"]) == (400, field, f"{field}: cannot be set here")
        assert answer.json()["hint"].endswith(". Leave it out")
    assert (await bill.http.get(CONFIG)).json() == before


@pytest.mark.parametrize("prefix", ["A", "a-Z-0-9", "2026", "-", "X" * 16])
async def test_a_prefix_is_letters_digits_and_hyphens(bill: Billing, prefix: str) -> None:
    assert (await bill.config(invoice_prefix=prefix)).json()["invoice_prefix"] == prefix
    assert (await bill.draft())["invoice_number"] == f"{prefix}-2027-000001"


@pytest.mark.cases
@pytest.mark.parametrize(
    "prefix",
    ['a"; x=\r\n', 'a"', "a;", "a b", "a\n", "\n", "", "X" * 17, "../a", "a/b", "a.b", "a_b", "\u202ea", "\u0661", "ä", "a\x00", 5, ["A"]],
)
async def test_a_prefix_that_could_end_a_header_or_a_path_is_refused(bill: Billing, prefix: object) -> None:
    answer = await bill.config(invoice_prefix=prefix)
    assert answer.status_code == 400
    assert (await bill.http.get(CONFIG)).json()["invoice_prefix"] == "INV"


async def test_each_organisation_has_its_own(bill: Billing, stranger: httpx.AsyncClient) -> None:
    await bill.config(currency="GBP")
    found = (await stranger.get(CONFIG)).json()
    assert (found["currency"], found["org_id"] == bill.who.organisation) == ("USD", False)


async def test_it_shows_the_account_at_the_payment_processor_and_the_fee_of_the_organisation(bill: Billing) -> None:
    world, organisation = bill.world, bill.who.organisation
    now = world.clock.now()
    attached = {"organisation": organisation, "account": "acct_1", "kind": "express", "status": "pending"}
    await world.store.write(attach_connect_account, **attached, as_of=now, now=now)
    await world.store.write(set_fee_bps, organisation=organisation, bps=250)
    found = (await bill.http.get(CONFIG)).json()
    shown = (found["payments_connect_account_id"], found["payments_connect_status"], found["platform_fee_bps"])
    assert shown == ("acct_1", "pending", 250)
    assert await platform_fee_bps_of(world.pipeline.deps, organisation) == 250
    await world.store.write(set_fee_bps, organisation=organisation, bps=None)
    assert await platform_fee_bps_of(world.pipeline.deps, organisation) == 100
