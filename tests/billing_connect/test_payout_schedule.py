"""GET and PATCH /v1/operator-billing/payouts/schedule."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.billing_connect.asking import BILLING_PATH, ConnectAnswer, call_connect, trouble
from tests.contract.stage import ServiceHouse
from tests.stage import without_request_id
from tests.world import Credentials

SCHEDULE = f"{BILLING_PATH}/payouts/schedule"


async def read(house: ServiceHouse, caller: Credentials) -> ConnectAnswer:
    return await call_connect(house, caller.secret, "GET", SCHEDULE)


async def change(house: ServiceHouse, caller: Credentials, given: dict[str, object], key: str | None = None) -> ConnectAnswer:
    return await call_connect(house, caller.secret, "PATCH", SCHEDULE, given, key=key)


@pytest.mark.cases
@pytest.mark.rule("4.5.47")
@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({"interval": "manual"}, {}),
        ({"interval": "daily"}, {}),
        ({"interval": "weekly", "weekday": "friday"}, {"weekday": "friday"}),
        ({"interval": "monthly", "month_day": 1}, {"month_day": 1}),
        ({"interval": "monthly", "month_day": 31}, {"month_day": 31}),
    ],
)
async def test_a_schedule_is_set_and_read_back(house: ServiceHouse, given: dict[str, object], more: dict[str, object]) -> None:
    caller, other = await house.world.caller(), await house.world.caller()
    await house.world.connect_payments(caller)
    await house.world.connect_payments(other)
    _, before = await read(house, other)
    assert before == snapshot({"object": "payout_schedule", "interval": "daily", "weekday": None, "month_day": None, "delay_days": 2})
    status, body = await change(house, caller, given)
    assert (status, body) == (200, {**before, "weekday": None, "month_day": None, "interval": given["interval"], **more})
    assert await read(house, caller) == (200, body)
    assert await read(house, other) == (200, before)


async def test_without_an_account_there_is_no_schedule(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    status, body = await read(house, caller)
    assert status == 409
    assert without_request_id(body) == snapshot(
        {
            "error": "Your organisation has no account at the payment processor yet, and this call needs one; nothing was done",
            "code": "payments_not_connected",
            "hint": "Open the url of POST /v1/operator-billing/connect/begin, signed in, or of operator_billing_connect_oauth_begin",
        }
    )
    status, body = await change(house, caller, {"interval": "daily"})
    assert (status, body["code"]) == (409, "payments_not_connected")


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"interval": "weekly"}, snapshot('Such as {"interval": "weekly", "weekday": "friday"}')),
        ({"interval": "monthly"}, snapshot('Such as {"interval": "monthly", "month_day": 1}')),
        ({"interval": "daily", "weekday": "friday"}, snapshot('Leave weekday out, or send {"interval": "weekly"} with it')),
        (
            {"interval": "weekly", "weekday": "Friday"},
            snapshot('Write "friday", in lower case. Day of weekly payouts; required with weekly, refused otherwise.'),
        ),
    ],
)
async def test_how_a_schedule_is_mended_is_told(house: ServiceHouse, given: dict[str, object], hint: str) -> None:
    caller = await house.world.caller()
    await house.world.connect_payments(caller)
    assert (await change(house, caller, given))[1]["hint"] == hint


@pytest.mark.cases
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"interval": "weekly"}, "weekday"),
        ({"interval": "weekly", "weekday": "friday", "month_day": 5}, "month_day"),
        ({"interval": "daily", "weekday": "friday"}, "weekday"),
        ({"interval": "manual", "month_day": 5}, "month_day"),
        ({"interval": "monthly"}, "month_day"),
    ],
)
async def test_what_is_wrong_is_named_and_nothing_changes(house: ServiceHouse, given: dict[str, object], named: str) -> None:
    caller = await house.world.caller()
    await house.world.connect_payments(caller)
    before = await read(house, caller)
    status, body = await change(house, caller, given)
    assert (status, body["error"].partition(":")[0], body["param"]) == (400, named, named)
    assert await read(house, caller) == before


@pytest.mark.parametrize("kind", ["timeout", "closed", "error", "garbage"])
async def test_a_change_that_was_not_heard_of_is_unknown(house: ServiceHouse, kind: Any) -> None:
    caller = await house.world.caller()
    await house.world.connect_payments(caller)
    trouble(house, kind, method="POST")
    status, body = await change(house, caller, {"interval": "manual"}, "one")
    assert (status, body["code"], body["outcome_unknown"]) == (502, "OUTCOME_UNKNOWN", True)
    house.world.payments.faults.queue.clear()
    assert (await change(house, caller, {"interval": "manual"}, "one"))[1]["outcome_unknown"]
    assert (await change(house, caller, {"interval": "manual"}, "two"))[0] == 200


@pytest.mark.long
async def test_a_change_that_the_processor_did_not_take_may_be_repeated(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    await house.world.connect_payments(caller)
    trouble(house, "rate_limited", method="POST")
    assert (await change(house, caller, {"interval": "manual"}, "one"))[1]["code"] == "payments_error"
    house.world.payments.faults.queue.clear()
    assert (await change(house, caller, {"interval": "manual"}, "one"))[0] == 200


@pytest.mark.parametrize(("kind", "code"), [("timeout", "payments_timeout"), ("error", "payments_error"), ("garbage", "payments_error")])
async def test_a_processor_that_fails_is_told(house: ServiceHouse, kind: Any, code: str) -> None:
    caller = await house.world.caller()
    await house.world.connect_payments(caller)
    trouble(house, kind)
    status, body = await read(house, caller)
    assert (status, body["code"]) == (502, code)
