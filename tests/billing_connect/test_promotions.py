"""Promotions: kept here, and made at the processor where the organisation's account takes payments."""

import asyncio
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.billing_connect.asking import BILLING_PATH, ConnectAnswer, call_connect, onboarded, trouble
from tests.contract.stage import ServiceHouse
from tests.stage import without_request_id
from tests.world import NOON, Credentials

PROMOTIONS = f"{BILLING_PATH}/promotions"
MANY = 16


async def make(house: ServiceHouse, caller: Credentials, key: str | None = None, **given: object) -> ConnectAnswer:
    return await call_connect(house, caller.secret, "POST", PROMOTIONS, {"code": "SPRING-15", "percent_off": 15, **given}, key=key)


async def listed(house: ServiceHouse, caller: Credentials, query: str = "") -> dict[str, Any]:
    status, body = await call_connect(house, caller.secret, "GET", PROMOTIONS + query)
    assert status == 200
    return body


async def at_processor(house: ServiceHouse, account: str) -> list[str]:
    async with house.world.payments.turn(writes=False) as state:
        return [row.code for row in state.book(account).promotions.values()]


@pytest.mark.rule("4.5.50")
async def test_without_an_account_a_code_is_kept(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    status, body = await make(house, caller, code="spring-15", max_redemptions=500, expires_at=int(NOON) + 1)
    assert status == 201
    assert {**body, "id": ""} == snapshot(
        {
            "id": "",
            "object": "promotion",
            "code": "SPRING-15",
            "percent_off": 15.0,
            "amount_off": None,
            "currency": None,
            "max_redemptions": 500,
            "expires_at": 1800014401,
            "active": True,
            "payments_promotion_id": None,
            "created": 1800014400,
        }
    )
    assert body["id"].startswith("pro_")
    assert await listed(house, caller) == {"object": "list", "data": [body], "has_more": False}
    house.world.clock.advance(1)
    assert [row["active"] for row in (await listed(house, caller))["data"]] == [False]


@pytest.mark.rule("4.5.50")
async def test_with_an_active_account_the_code_is_made_at_the_processor(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    account = await onboarded(house, caller)
    status, body = await make(house, caller, percent_off=12.5)
    assert (status, body["percent_off"], body["payments_promotion_id"][:6]) == (201, 12.5, "promo_")
    _, other = await make(house, caller, code="minus-5", percent_off=None, amount_off=500, currency="EUR")
    assert (other["percent_off"], other["amount_off"], other["currency"]) == (None, 500, "EUR")
    assert sorted(await at_processor(house, account)) == ["MINUS-5", "SPRING-15"]
    assert (await listed(house, caller))["data"] == [other, body]


async def test_an_account_that_is_pending_makes_none_at_the_processor(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    account = await onboarded(house, caller, finished=False)
    status, body = await make(house, caller)
    assert (status, body["payments_promotion_id"]) == (201, None)
    assert await at_processor(house, account) == []


@pytest.mark.parametrize("connected", [False, True])
async def test_a_code_is_an_organisation_s_once(house: ServiceHouse, connected: bool) -> None:
    caller, other = await house.world.caller(), await house.world.caller()
    if connected:
        await onboarded(house, caller)
    said = await asyncio.gather(*(make(house, caller, code=("Spring-15", "SPRING-15")[n % 2]) for n in range(MANY)))
    assert sorted(status for status, _ in said) == [201] + [409] * (MANY - 1)
    body = next(body for status, body in said if status == 409)
    assert without_request_id(body) == snapshot(
        {
            "error": "code: your organisation has a promotion with the code SPRING-15 already",
            "code": "promotion_exists",
            "param": "code",
            "hint": "Choose another code; operator_list_promotions names those that are taken",
        }
    )
    assert len((await listed(house, caller))["data"]) == 1
    assert (await make(house, other))[0] == 201


async def test_a_repeated_key_makes_one(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    await onboarded(house, caller)
    assert await make(house, caller, "one") == await make(house, caller, "one")
    house.world.clock.advance(86_400)
    assert (await make(house, caller, "one", percent_off=20))[1]["code"] == "idempotency_key_reused"


async def test_a_refused_code_is_free_again(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    account = await onboarded(house, caller)
    await make(house, caller)
    async with house.world.payments.turn(writes=True) as state:
        (row,) = state.book(account).promotions.values()
        row.code = "TAKEN"
    status, body = await make(house, caller, "one", code="taken")
    assert status == 400
    assert without_request_id(body) == snapshot(
        {
            "error": "The payment processor refused it: its code for why is resource_already_exists. Nothing was done.",
            "code": "payments_refused",
            "param": "code",
            "processor_code": "resource_already_exists",
        }
    )
    assert [row["code"] for row in (await listed(house, caller))["data"]] == ["SPRING-15"]
    assert (await make(house, caller, "one", code="taken"))[1] == body


@pytest.mark.cases
@pytest.mark.parametrize("kind", ["timeout", "closed", "error", "garbage"])
async def test_a_code_whose_making_was_not_heard_of_stays_taken(house: ServiceHouse, kind: Any) -> None:
    caller = await house.world.caller()
    await onboarded(house, caller)
    trouble(house, kind, method="POST")
    status, body = await make(house, caller, "one")
    assert (status, body["code"], body["outcome_unknown"]) == (502, "OUTCOME_UNKNOWN", True)
    house.world.payments.faults.queue.clear()
    assert (await make(house, caller, "one"))[1]["outcome_unknown"]
    assert (await make(house, caller))[1]["code"] == "promotion_exists"
    (row,) = (await listed(house, caller))["data"]
    assert row["payments_promotion_id"] is None


async def test_a_call_that_the_processor_took_none_of_may_be_repeated(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    account = await onboarded(house, caller)
    trouble(house, "rate_limited", method="POST")
    status, body = await make(house, caller, "one")
    assert (status, body["code"]) == (502, "payments_error")
    assert (await listed(house, caller))["data"] == []
    house.world.payments.faults.queue.clear()
    assert (await make(house, caller, "one"))[0] == 201
    assert await at_processor(house, account) == ["SPRING-15"]


async def test_pages_go_from_new_to_old(house: ServiceHouse) -> None:
    caller, other = await house.world.caller(), await house.world.caller()
    for number in range(3):
        house.world.clock.advance(1)
        await make(house, caller, code=f"CODE-{number}")
    await make(house, other, code="THEIRS")
    first = await listed(house, caller, "?limit=2")
    assert ([row["code"] for row in first["data"]], first["has_more"]) == (["CODE-2", "CODE-1"], True)
    rest = await listed(house, caller, f"?limit=2&starting_after={first['data'][-1]['id']}")
    assert ([row["code"] for row in rest["data"]], rest["has_more"]) == (["CODE-0"], False)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"percent_off": None},
            snapshot(("percent_off", '{"percent_off": 15} takes 15 % off, {"amount_off": 500, "currency": "EUR"} takes five euros off')),
        ),
        (
            {"amount_off": 500, "currency": "EUR"},
            snapshot(("percent_off", '{"percent_off": 15} takes 15 % off, {"amount_off": 500, "currency": "EUR"} takes five euros off')),
        ),
        (
            {"percent_off": None, "amount_off": 500},
            snapshot(("currency", 'Send "USD", "EUR", "GBP" or "CHF" along')),
        ),
        (
            {"currency": "EUR"},
            snapshot(("currency", "A percentage has no currency: leave it out")),
        ),
        (
            {"percent_off": None, "amount_off": 500, "currency": "eur"},
            snapshot(("currency", 'Write "EUR", in upper case. Of amount_off, and required with it: ISO 4217 in upper case, as EUR.')),
        ),
    ],
)
async def test_what_goes_together_is_told_with_the_field_to_change(
    house: ServiceHouse, given: dict[str, Any], told: tuple[str, str]
) -> None:
    caller = await house.world.caller()
    _, body = await make(house, caller, **given)
    assert (body["param"], body["hint"]) == told


@pytest.mark.cases
@pytest.mark.parametrize("percent", [0.01, 0.5, 12.25, 33.33, 57.29, 100, 100.0])
async def test_a_percentage_is_kept_exactly(house: ServiceHouse, percent: float) -> None:
    caller = await house.world.caller()
    status, body = await make(house, caller, percent_off=percent)
    assert (status, body["percent_off"]) == (201, percent)
    assert (await listed(house, caller))["data"][0]["percent_off"] == percent


@pytest.mark.cases
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"code": "FRÜHLING"}, "code"),
        ({"percent_off": 12.345}, "percent_off"),
        ({"percent_off": 1e-05}, "percent_off"),
        ({"percent_off": None}, "percent_off, amount_off"),
        ({"amount_off": 500, "currency": "EUR"}, "percent_off, amount_off"),
        ({"percent_off": None, "amount_off": 500}, "currency"),
        ({"percent_off": None, "amount_off": 500, "currency": "eur"}, "currency"),
        ({"percent_off": None, "amount_off": 500, "currency": "NOK"}, "currency"),
        ({"currency": "EUR"}, "currency"),
        ({"expires_at": int(NOON)}, "expires_at"),
        ({"expires_at": int(NOON) * 1000}, "expires_at"),
    ],
)
async def test_what_is_wrong_is_named_and_nothing_is_kept(house: ServiceHouse, given: dict[str, Any], named: str) -> None:
    caller = await house.world.caller()
    status, body = await make(house, caller, **given)
    assert (status, body["error"].partition(":")[0]) == (400, named)
    assert (await listed(house, caller))["data"] == []
