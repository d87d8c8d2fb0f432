"""GET /v1/operator-billing/balance."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from simulators.processor.simulated_processor import SimulatedProcessor
from tests.billing_connect.asking import BILLING_PATH, call_connect, onboarded, trouble
from tests.contract.stage import ServiceHouse, StubProvider
from tests.world import HOST, open_world

BALANCE = f"{BILLING_PATH}/balance"


@asynccontextmanager
async def live_house(folder: Path) -> AsyncGenerator[ServiceHouse]:
    """A service whose processor says that its money is real."""
    clock: list[Any] = []
    processor = SimulatedProcessor(
        wall=lambda: clock[0].now(),
        pages_url=f"https://{HOST}/sandbox/payments",
        key="sk_live_simulated_processor",
        webhook_secret="whsec_dGVzdHM=",
    )
    async with open_world(folder, CATALOGUE, payments=processor, sessions=StubProvider()) as world:
        clock.append(world.clock)
        yield ServiceHouse(world)
        assert world.faults == []


@pytest.mark.rule("4.5.41")
async def test_in_test_mode_there_is_nothing_but_a_note(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    said = (
        200,
        snapshot(
            {
                "payments_mode": "test",
                "available": [],
                "pending": [],
                "note": "The payment processor is in test mode: no real money moves, so there is no balance to show",
            }
        ),
    )
    assert await call_connect(house, caller.secret, "GET", BALANCE) == said
    await onboarded(house, caller)
    trouble(house, "error")
    assert await call_connect(house, caller.secret, "GET", BALANCE) == said


async def test_where_money_is_real_a_payout_that_is_not_covered_leads_to_the_balance(tmp_path: Path) -> None:
    async with live_house(tmp_path) as house:
        caller = await house.world.caller()
        await house.world.charge(await house.world.connect_payments(caller), 10_000, "EUR")
        status, body = await call_connect(
            house, caller.secret, "POST", f"{BILLING_PATH}/payouts/manual", {"amount": 100, "currency": "EUR"}
        )
    assert (status, body["hint"]) == snapshot(
        (400, "operator_billing_balance shows what is available; pending money becomes available later. Use a new key")
    )


@pytest.mark.rule("4.5.41")
async def test_live_money_is_told_by_currency(tmp_path: Path) -> None:
    async with live_house(tmp_path) as house:
        world = house.world
        caller, other = await world.caller(), await world.caller()
        assert await call_connect(house, caller.secret, "GET", BALANCE) == (
            200,
            snapshot(
                {
                    "payments_mode": "live",
                    "available": [],
                    "pending": [],
                    "note": "No account at the payment processor yet: POST /v1/operator-billing/connect/begin makes one",
                }
            ),
        )
        account = await world.connect_payments(caller)
        await world.connect_payments(other)
        await world.charge(account, 10_000, "EUR", fee=100)
        assert await call_connect(house, caller.secret, "GET", BALANCE) == (
            200,
            snapshot(
                {
                    "payments_mode": "live",
                    "available": [{"amount": 0, "currency": "EUR"}, {"amount": 0, "currency": "USD"}],
                    "pending": [{"amount": 9580, "currency": "EUR"}, {"amount": 0, "currency": "USD"}],
                    "note": None,
                }
            ),
        )
        assert (await call_connect(house, other.secret, "GET", BALANCE))[1]["pending"] in ([], [{"amount": 0, "currency": "USD"}])


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("timeout", "payments_timeout"),
        ("closed", "payments_error"),
        ("error", "payments_error"),
        ("rate_limited", "payments_error"),
        ("garbage", "payments_error"),
    ],
)
async def test_a_processor_that_fails_is_told(tmp_path: Path, kind: Any, code: str) -> None:
    async with live_house(tmp_path) as house:
        caller = await house.world.caller()
        await house.world.connect_payments(caller)
        trouble(house, kind)
        status, body = await call_connect(house, caller.secret, "GET", BALANCE)
        assert (status, body["code"]) == (502, code)
