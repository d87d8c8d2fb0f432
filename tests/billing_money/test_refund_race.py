"""Refunds at the same time never give back more than was paid, on both databases."""

import asyncio
from functools import partial
from pathlib import Path
from random import Random

import pytest

from registry.caller import Tier
from registry.limits import Limits
from tests.billing_money.stage import BILLING, MoneyStage, Object, charge_json, event_json, fee_json, open_money_stage, with_account
from tests.stage import opened_on_both
from tests.world import open_world

shop = opened_on_both(open_money_stage, connected=True)


@pytest.mark.long
async def test_of_32_refunds_of_a_tenth_ten_are_made(shop: MoneyStage) -> None:
    made = await shop.world.charge(shop.account, 10_000, "EUR")
    answers = await asyncio.gather(*(shop.refund(f"key-{n}", charge=made, amount=1000) for n in range(32)))
    assert sorted(answer.status_code for answer in answers) == [201] * 10 + [400] * 22
    assert {answer.json()["code"] for answer in answers if answer.status_code == 400} == {"refund_too_large"}
    assert sum(refund.amount for refund in shop.at_processor("refunds")) == await shop.reserved(made) == 10_000
    # Their events, told in any order and at once with more refunds, change nothing of that.
    await shop.world.ask_payments("POST", "hooks", {"shuffle": True, "double": True})
    telling = asyncio.create_task(shop.world.settle_payments())
    later = await asyncio.gather(*(shop.refund(charge=made) for _ in range(4)))
    assert ([answer.status_code for answer in later], set(await telling)) == ([400] * 4, {200})
    assert await shop.reserved(made) == 10_000


@pytest.mark.long
async def test_one_key_at_once_refunds_once(shop: MoneyStage) -> None:
    made = await shop.world.charge(shop.account, 10_000, "EUR")
    answers = await asyncio.gather(*(shop.refund("one", charge=made, amount=1000) for _ in range(16)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {"idempotency_in_progress"}
    assert len(shop.at_processor("refunds")) == 1
    assert await shop.reserved(made) == 1000


@pytest.mark.long
async def test_the_words_of_a_sale_at_once_earn_its_fee_once(shop: MoneyStage) -> None:
    words: list[Object] = []
    for n in range(8):
        sold = charge_json(f"ch_{n}", application_fee=f"fee_{n}", metadata={"order": f"ord_{n}"})
        kept = {"account": shop.account, "charge": f"ch_{n}"}
        words.append(event_json("charge.succeeded", sold, account=shop.account))
        words += [event_json("application_fee.created", fee_json(f"fee_{n}", 100, **kept), account=None)] * 2
        words += [
            event_json("application_fee.refunded", fee_json(f"fee_{n}", 100, amount_refunded=back, **kept), account=None)
            for back in (10, 30)
        ]
    await asyncio.gather(*(shop.tell(word) for word in words))
    earned = await shop.platform_fees()
    assert [row.amount for row in earned if "refunded" not in row.ref] == [100] * 8
    assert sum(row.amount for row in earned) == 8 * 70


@pytest.mark.long
async def test_every_event_of_a_flood_has_its_effect_once(shop: MoneyStage) -> None:
    """Of many accounts, each word several times, in no order: also where two replicas take the same word at once."""
    accounts = [f"acct_1Flood{n}" for n in range(4)]
    for account in accounts:
        await with_account(shop.world, account, Tier.PRO)
    words: list[Object] = []
    for n in range(24):
        account, kept = accounts[n % 4], {"account": accounts[n % 4], "charge": f"ch_{n}"}
        sold = charge_json(f"ch_{n}", application_fee=f"fee_{n}", metadata={"order": f"ord_{n}"})
        words.append(event_json("charge.succeeded", sold, account=account))
        words.append(event_json("application_fee.created", fee_json(f"fee_{n}", 100, **kept), account=None))
        words.append(event_json("application_fee.refunded", fee_json(f"fee_{n}", 100, amount_refunded=33, **kept), account=None))
    flood = words * 5
    Random(7).shuffle(flood)
    await asyncio.gather(*(shop.tell(word) for word in flood))
    earned = await shop.platform_fees()
    assert sorted(row.amount for row in earned) == [-33] * 24 + [100] * 24


@pytest.mark.long
@pytest.mark.postgres
async def test_two_replicas_refund_a_charge_no_more_than_once(tmp_path: Path, postgres: str) -> None:
    async with open_money_stage(tmp_path, url=postgres, connected=True) as first:
        shared, limits = first.world.payments, Limits(burst_enabled=False)
        async with open_world(tmp_path, BILLING, url=postgres, limits=limits, payments=shared, replica=1) as world:
            replicas = (first, MoneyStage(world, first.who, first.account))
            made = await first.world.charge(first.account, 10_000, "EUR")
            await first.trouble("timeout", "/v1/refunds", after=True, times=3)
            await first.trouble("error", "/v1/refunds", times=3)
            refund = partial(MoneyStage.refund, charge=made, amount=1000)
            # Every key at both of them at once.
            await asyncio.gather(*(refund(replica, f"key-{n}") for n in range(16) for replica in replicas))
            await first.calm()
            telling = asyncio.gather(first.world.settle_payments(), *(replica.sync() for replica in replicas))
            await asyncio.gather(*(refund(replica, f"key-{n}") for n in range(16) for replica in replicas))
            await telling
            for replica in replicas:
                replica.world.clock.advance(1000)
            await asyncio.gather(*(replica.sync() for replica in replicas))
            answers = [await refund(replica, f"key-{n}") for n in range(16) for replica in replicas]
    refunds = first.at_processor("refunds")
    ids = [row.metadata["attempt"] for row in refunds]
    assert len(ids) == len(set(ids)) == len({each.json()["id"] for each in answers if each.status_code == 201})
    assert sum(row.amount for row in refunds) <= 10_000
