"""Refunds at the same time never give back more than was paid, on both databases."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from tests.billing_money.stage import Object, Stage, charge, event, fee, open_stage
from tests.databases import NO_POSTGRES, empty, migrated_postgres

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def postgres_database() -> Generator[str | None]:
    with migrated_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Stage]:
    url: str | None = None
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_database")
        if url is None:
            pytest.skip(NO_POSTGRES)
        empty(url)
    async with open_stage(tmp_path, url=url, connected=True) as stage:
        yield stage


async def test_of_32_refunds_of_a_tenth_ten_are_made(shop: Stage) -> None:
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


async def test_one_key_at_once_refunds_once(shop: Stage) -> None:
    made = await shop.world.charge(shop.account, 10_000, "EUR")
    answers = await asyncio.gather(*(shop.refund("one", charge=made, amount=1000) for _ in range(16)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {"idempotency_in_progress"}
    assert len(shop.at_processor("refunds")) == 1
    assert await shop.reserved(made) == 1000


async def test_the_words_of_a_sale_at_once_earn_its_fee_once(shop: Stage) -> None:
    words: list[Object] = []
    for n in range(8):
        sold = charge(f"ch_{n}", application_fee=f"fee_{n}", metadata={"order": f"ord_{n}"})
        kept = {"account": shop.account, "charge": f"ch_{n}"}
        words.append(event("charge.succeeded", sold, account=shop.account))
        words += [event("application_fee.created", fee(f"fee_{n}", 100, **kept), account=None)] * 2
        words += [event("application_fee.refunded", fee(f"fee_{n}", 100, amount_refunded=back, **kept), account=None) for back in (10, 30)]
    await asyncio.gather(*(shop.tell(word) for word in words))
    earned = await shop.platform_fees()
    assert [row.amount for row in earned if "refunded" not in row.ref] == [100] * 8
    assert sum(row.amount for row in earned) == 8 * 70
