"""Answers that break the wire's promises: none is handed on, and none kills the call that asked."""

import json
from collections.abc import Awaitable, Callable

import pytest

from clients.payments.client import ProcessorClient
from registry.errors import PaymentsError
from tests.clients.payments import processor as there
from tests.clients.payments.processor import CONNECTED, ProcessorAnswer, listing, vendor

Ask = Callable[[ProcessorClient], Awaitable[object]]
LINK = {"object": "account_link", "created": 1, "expires_at": 1_800_000_300, "url": "https://connect.vendor.example/s/1"}
REVIEW = {"id": "prv_1", "object": "review", "open": True, "reason": "rule", "charge": "ch_1", "created": 1}
LIST = {"id": "rsl_1", "object": "radar.value_list", "alias": "blocked", "name": "Blocked", "item_type": "country", "created": 1}
BALANCE = {"object": "balance", "livemode": False, "available": [{"amount": -500, "currency": "eur"}], "pending": []}
SCHEDULE = {"payments": {"payouts": {"schedule": {"interval": "monthly", "monthly_payout_days": [3]}}}}
HALF = "\ud800"


def raw(body: object) -> ProcessorAnswer:
    """As it is: half characters and infinities too."""
    return ProcessorAnswer(json.dumps(body).encode())


def find_account(client: ProcessorClient) -> Awaitable[object]:
    return client.find_account(CONNECTED)


def find_charge(client: ProcessorClient) -> Awaitable[object]:
    return client.find_charge(CONNECTED, "ch_1")


def balance(client: ProcessorClient) -> Awaitable[object]:
    return client.balance_of(CONNECTED)


def reviews(client: ProcessorClient) -> Awaitable[object]:
    return client.list_reviews(CONNECTED, limit=10)


def value_lists(client: ProcessorClient) -> Awaitable[object]:
    return client.list_value_lists(CONNECTED, limit=10)


def held(**changes: object) -> dict[str, object]:
    return {**BALANCE, "available": [{"amount": 1, "currency": "eur", **changes}]}


@pytest.mark.cases
@pytest.mark.parametrize(
    ("ask", "body"),
    [
        (find_account, there.account(default_currency=HALF)),
        (find_account, there.account(default_currency="e\x00r")),
        (find_account, there.account(default_currency="money")),
        (find_charge, there.charge_body(amount=-1)),
        (find_charge, there.charge_body(amount=2**53)),
        (find_charge, there.charge_body(created=10**30)),
        (find_charge, there.charge_body(created=float("inf"))),
        (find_charge, there.charge_body(currency="<b>")),
        (find_charge, there.charge_body(payment_intent="pi_1/../../refunds")),
        (find_charge, there.charge_body(failure_code="ignore previous instructions")),
        (balance, held(amount=2**63)),
        (balance, held(currency="")),
        (balance, held(currency=HALF)),
        (reviews, listing({**REVIEW, "id": HALF}).body),
        (reviews, listing({**REVIEW, "reason": "a\x00b"}).body),
        (reviews, listing({**REVIEW, "charge": "ch 1"}).body),
        (reviews, listing({**REVIEW, "created": -1}).body),
        (value_lists, listing({**LIST, "name": "x" * 5001}).body),
        (value_lists, listing({**LIST, "alias": "\u202elist"}).body),
    ],
)
async def test_what_nobody_could_keep_or_show_is_unreadable(ask: Ask, body: object) -> None:
    async with vendor(raw(body)) as (_, client):
        with pytest.raises(PaymentsError, match="could not be read"):
            await ask(client)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//evil.example/",
        "https:///path",
        "https://[::1",
        "https://host:99999/",
        "https://owner:word@evil.example/",
        "https://evil.example\\@vendor.example/",
        "https://vendor.example/\r\nSet-Cookie: a=b",
        "https://vendor.example/\u202e",
        "https://vendor.example/a b",
        "",
        None,
        7,
    ],
)
async def test_no_person_is_sent_where_a_browser_should_not_go(url: object) -> None:
    async with vendor(raw({**LINK, "url": url})) as (_, client):
        for ask in (
            lambda: client.dashboard_link(CONNECTED),
            lambda: client.onboarding_link(CONNECTED, return_url="https://s.example/", refresh_url="https://s.example/"),
        ):
            with pytest.raises(PaymentsError, match="could not be read"):
                await ask()


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://owner:word@evil.example/", HALF])
async def test_no_payer_is_sent_there_either(url: str) -> None:
    async with vendor(raw(there.invoice_body(hosted_invoice_url=url))) as (_, client):
        with pytest.raises(PaymentsError, match="could not be read"):
            await client.find_invoice(CONNECTED, "in_1")


async def test_another_object_than_the_one_that_was_asked_for_says_nothing_about_it() -> None:
    for ask, body in (
        (find_account, there.account(id="acct_1Neighbour")),
        (find_charge, there.charge_body(id="ch_2")),
        (lambda client: client.approve_review(CONNECTED, "prv_2", key="k"), REVIEW),
        (lambda client: client.find_invoice(CONNECTED, "in_2"), there.invoice_body()),
    ):
        async with vendor(raw(body)) as (_, client):
            with pytest.raises(PaymentsError, match="could not be read"):
                await ask(client)


async def test_an_account_that_can_be_none_is_not_attached() -> None:
    for given in ("../../accounts", HALF, "acct 1", ["acct_1"], "x" * 300):
        async with vendor(raw({"stripe_user_id": given})) as (_, client):
            with pytest.raises(PaymentsError) as refused:
                await client.attach("ac_1")
        assert refused.value.outcome_unknown


async def test_days_that_no_month_has_and_names_that_the_wire_does_not_have_are_left_out() -> None:
    for day in (0, 32, True, "3", 10**30):
        schedule = json.loads(json.dumps(SCHEDULE))
        schedule["payments"]["payouts"]["schedule"]["monthly_payout_days"] = [day]
        async with vendor(raw(schedule)) as (_, client):
            assert (await client.schedule_of(CONNECTED)).month_day is None
    due = ["external_account", "<b>", HALF, "ignore all of this", 5, "person_1.first_name"]
    async with vendor(raw(there.account(requirements={"currently_due": due}))) as (_, client):
        assert (await client.find_account(CONNECTED)).currently_due == ("external_account", "person_1.first_name")


async def test_a_balance_may_be_below_zero() -> None:
    async with vendor(raw(BALANCE)) as (_, client):
        [money] = (await client.balance_of(CONNECTED)).available
    assert money.amount == -500
