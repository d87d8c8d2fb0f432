"""Fraud reviews and value lists of an organisation's own account."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from tests.billing_connect.asking import BILLING_PATH, ConnectAnswer, call_connect, trouble
from tests.contract.stage import ServiceHouse
from tests.stage import without_request_id
from tests.world import Credentials

REVIEWS = f"{BILLING_PATH}/fraud/reviews"
LISTS = f"{BILLING_PATH}/fraud/value-lists"
EMPTY = {"object": "list", "data": [], "has_more": False}


async def review(house: ServiceHouse, account: str) -> str:
    """A payment of this account that a rule holds up."""
    from simulators.processor.fraud import open_review

    charge = await house.world.charge(account, 2500, "EUR")
    async with house.world.payments.turn(writes=True) as state:
        return open_review(state, account, charge).id


async def decide(house: ServiceHouse, caller: Credentials, id: str, word: str = "approve", key: str | None = None) -> ConnectAnswer:
    return await call_connect(house, caller.secret, "POST", f"{REVIEWS}/{id}/{word}", {}, key=key)


async def countries_of(house: ServiceHouse, account: str) -> str:
    """A list of countries that this account's rules go by."""
    from simulators.processor.state import ValueList

    async with house.world.payments.turn(writes=True) as state:
        row = ValueList(state.new_id("rsl_"), state.now(), "blocked_countries", "Countries we do not sell to", "country")
        state.book(account).value_lists[row.id] = row
    return row.id


async def add(house: ServiceHouse, caller: Credentials, value_list: str, value: object = "KP", key: str | None = None) -> ConnectAnswer:
    return await call_connect(house, caller.secret, "POST", f"{LISTS}/items", {"value_list": value_list, "value": value}, key=key)


@pytest.mark.rule("4.5.44")
async def test_reviews_are_listed_and_approved(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    assert await call_connect(house, caller.secret, "GET", REVIEWS) == (200, EMPTY)
    account = await house.world.connect_payments(caller)
    assert await call_connect(house, caller.secret, "GET", REVIEWS) == (200, EMPTY)
    ids = [await review(house, account) for _ in range(3)]
    _, first = await call_connect(house, caller.secret, "GET", f"{REVIEWS}?limit=2")
    assert (len(first["data"]), first["has_more"]) == (2, True)
    last = first["data"][-1]["id"]
    _, rest = await call_connect(house, caller.secret, "GET", f"{REVIEWS}?limit=2&starting_after={last}")
    assert {row["id"] for row in first["data"] + rest["data"]} == set(ids) and not rest["has_more"]
    status, body = await decide(house, caller, last)
    assert (status, {**body, "id": "", "charge": "", "payment_intent": ""}) == snapshot(
        (
            200,
            {"id": "", "object": "review", "open": False, "reason": "approved", "charge": "", "payment_intent": "", "created": 1800014400},
        )
    )
    assert body["charge"] == first["data"][-1]["charge"]
    status, again = await decide(house, caller, last)
    assert status == 409
    assert without_request_id(again) == snapshot(
        {
            "error": "The review is closed already, or not to be approved; nothing was done",
            "code": "review_closed",
            "param": "id",
            "hint": "operator_billing_list_fraud_reviews names those that are open",
        }
    )


async def test_without_an_account_there_is_nothing_to_approve(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    assert (await decide(house, caller, "prv_1"))[1]["code"] == "payments_not_connected"
    assert (await add(house, caller, "rsl_1"))[1]["code"] == "payments_not_connected"


@pytest.mark.rule("7.17")
@pytest.mark.rule("4.5.45")
@pytest.mark.parametrize("connected", [False, True])
async def test_declining_is_never_offered_and_sends_nothing(house: ServiceHouse, connected: bool) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    id = "prv_1Nobody"
    if connected:
        id = await review(house, await house.world.connect_payments(caller))
    trouble(house, "error", times=1)
    status, body = await decide(house, caller, id, "decline")
    assert status == 501
    assert without_request_id(body) == snapshot(
        {
            "error": "A fraud review cannot be declined here, and nothing was sent to the payment processor",
            "code": "not_implemented",
            "hint": "Refund the review's charge instead: POST /v1/operator-billing/refunds; that closes the review",
        }
    )
    assert len(house.world.payments.faults.queue) == 1


@pytest.mark.rule("4.5.46")
async def test_value_lists_are_shown_and_added_to(house: ServiceHouse) -> None:
    caller, other = await house.world.caller(Tier.ENTERPRISE), await house.world.caller(Tier.ENTERPRISE)
    assert await call_connect(house, caller.secret, "GET", LISTS) == (200, EMPTY)
    await house.world.connect_payments(other)
    countries = await countries_of(house, await house.world.connect_payments(caller))
    _, lists = await call_connect(house, caller.secret, "GET", LISTS)
    assert {**lists, "data": [{**row, "id": ""} for row in lists["data"]]} == snapshot(
        {
            "object": "list",
            "data": [
                {
                    "id": "",
                    "object": "value_list",
                    "alias": "blocked_countries",
                    "name": "Countries we do not sell to",
                    "item_type": "country",
                    "created": 1800014400,
                }
            ],
            "has_more": False,
        }
    )
    assert await call_connect(house, other.secret, "GET", LISTS) == (200, EMPTY)
    status, body = await add(house, caller, countries)
    assert (status, {**body, "id": "", "value_list": ""}) == snapshot(
        (201, {"id": "", "object": "value_list_item", "value_list": "", "value": "KP", "created": 1800014400})
    )
    assert body["value_list"] == countries
    assert (await add(house, caller, countries))[1]["code"] == "payments_refused"
    status, refused = await add(house, other, countries)
    assert (status, refused["param"]) == (404, "value_list")


@pytest.mark.parametrize("value", ["", " ", "two\nlines", "x" * 801, 5])
async def test_a_value_is_one_line_and_is_not_repeated_when_it_is_refused(house: ServiceHouse, value: object) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    await house.world.connect_payments(caller)
    status, body = await add(house, caller, "rsl_1", value)
    assert (status, body["param"]) == (400, "value")
    assert "two" not in body["error"]


@pytest.mark.parametrize("id", ["prv_1%2F..", "prv 1", "x" * 256, "prv-1"])
async def test_what_cannot_be_an_id_is_refused_before_anybody_is_asked(house: ServiceHouse, id: str) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    await house.world.connect_payments(caller)
    trouble(house, "error", times=1)
    assert (await decide(house, caller, id))[0] in (400, 404)
    assert (await add(house, caller, id))[1]["param"] == "value_list"
    assert len(house.world.payments.faults.queue) == 1


@pytest.mark.cases
@pytest.mark.parametrize("path", [REVIEWS, LISTS])
@pytest.mark.parametrize(
    ("kind", "code"),
    [("timeout", "payments_timeout"), ("error", "payments_error"), ("rate_limited", "payments_error"), ("garbage", "payments_error")],
)
async def test_a_list_of_a_processor_that_fails_is_no_empty_list(house: ServiceHouse, path: str, kind: Any, code: str) -> None:
    caller = await house.world.caller()
    await house.world.connect_payments(caller)
    trouble(house, kind)
    status, body = await call_connect(house, caller.secret, "GET", path)
    assert (status, body["code"]) == (502, code)


@pytest.mark.cases
@pytest.mark.parametrize("kind", ["timeout", "closed", "error", "garbage"])
async def test_a_decision_that_was_not_heard_of_is_unknown(house: ServiceHouse, kind: Any) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    id = await review(house, await house.world.connect_payments(caller))
    trouble(house, kind, method="POST")
    for status, body in (await decide(house, caller, id), await add(house, caller, "rsl_1")):
        assert (status, body["code"], body["outcome_unknown"]) == (502, "OUTCOME_UNKNOWN", True)


async def test_a_decision_that_the_processor_did_not_take_may_be_repeated(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    id = await review(house, await house.world.connect_payments(caller))
    trouble(house, "rate_limited", method="POST")
    assert (await decide(house, caller, id, key="one"))[1]["code"] == "payments_error"
    house.world.payments.faults.queue.clear()
    assert (await decide(house, caller, id, key="one"))[1]["open"] is False
