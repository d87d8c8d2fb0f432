"""A processor that does not answer: nothing is sent, keys and quota stay free, and failing accounts close nothing for others."""

from dataclasses import replace
from typing import cast

import pytest
from inline_snapshot import snapshot

from clients.outside_system import OutsideSystem
from registry.caller import Tier
from registry.policy import quota_period
from storage.quota import read_quota_used
from tests.billing_money.stage import MoneyStage
from tests.stage import without_request_id
from transports.payments import simulated_processor


@pytest.fixture
async def system(shop: MoneyStage) -> OutsideSystem:
    made = OutsideSystem("payment_processor", shop.world.clock)
    processor = simulated_processor(shop.world.payments, made)
    shop.world.pipeline.deps = replace(shop.world.pipeline.deps, payments=processor)
    return made


async def charged(shop: MoneyStage) -> str:
    made = await shop.world.charge(shop.account, 10_000, "EUR", outcome="available")
    await shop.world.settle_payments()
    return made


async def used(shop: MoneyStage) -> int:
    """Calls charged to the organisation today, without those that were only leased."""
    period = quota_period(shop.world.clock.now())
    leased = shop.world.blocks.unspent(shop.who.organisation, period)
    return await shop.world.store.read(read_quota_used, organisation=shop.who.organisation, period=period.name) - leased


async def sent(shop: MoneyStage) -> int:
    """How many calls reached the processor, without questions whether it is there."""
    calls = cast("list[dict[str, str]]", (await shop.world.ask_payments("GET", "calls"))["calls"])
    return sum(call["path"] != "/v1/balance" for call in calls)


async def away(shop: MoneyStage, **only: str) -> None:
    """The processor closes each connection, without doing anything."""
    await shop.world.ask_payments("POST", "faults", {"trouble": "closed", "method": "*", "path": "*", "times": 99, **only})


async def test_an_open_breaker_refuses_a_refund_before_it_is_sent_and_leaves_key_and_quota_as_they_were(
    shop: MoneyStage, system: OutsideSystem
) -> None:
    made = await charged(shop)
    await away(shop)
    for number in range(3):
        assert (await shop.refund(f"lost-{number}", charge=made, amount=100)).status_code == 502
    calls, before = await sent(shop), await used(shop)
    said = await shop.refund("free", charge=made, amount=1000)
    assert said.status_code == 503
    assert without_request_id(said) == snapshot(
        {
            "error": "The payment processor does not answer at present, so this one was not sent. Try again later.",
            "code": "upstream_unavailable",
        }
    )
    assert (await sent(shop), await used(shop), await shop.reserved(made)) == (calls, before, 0)
    await shop.calm()
    shop.world.clock.advance(1.5)
    answer = await shop.refund("free", charge=made, amount=1000)
    assert (answer.status_code, [refund.amount for refund in shop.at_processor("refunds")]) == (201, [1000])
    assert system.breaker.opened == {"all": 1, "organisation": 1}


async def test_two_accounts_whose_calls_fail_close_nothing_for_a_third(shop: MoneyStage, system: OutsideSystem) -> None:
    world, made = shop.world, await charged(shop)
    others = [await world.caller(Tier.ENTERPRISE) for _ in range(2)]
    accounts = [await world.connect_payments(who) for who in others]
    for account in accounts:
        await away(shop, account=account)
    for number, who in enumerate(others):
        failing = MoneyStage(world, who, accounts[number])
        charge = await world.charge(failing.account, 10_000, "EUR", outcome="available")
        await world.settle_payments()
        for turn in range(4):
            assert (await failing.refund(f"lost-{turn}", charge=charge, amount=100)).status_code in (502, 503)
    assert (await shop.refund("mine", charge=made, amount=1000)).status_code == 201
    assert system.breaker.opened["organisation"] == 2
