"""GET /v1/affiliates/me/commissions."""

import re
from typing import Any

import pytest
from inline_snapshot import snapshot

from operations.catalogue import CATALOGUE
from operations.ledger.payment_intake import record_platform_fee
from operations.setup.affiliates import attach_referral, join_affiliates
from tests.contract.stage import ServiceHouse
from tests.world import NOON, Credentials

COMMISSIONS, ME = "/v1/affiliates/me/commissions", "/v1/affiliates/me"
REFERRED = "Northwind Secret Holding"


async def pair(house: ServiceHouse) -> tuple[Credentials, str]:
    """An affiliate, and an organisation that it brought."""
    world = house.world
    by = await world.caller()
    row, _ = await world.store.write(join_affiliates, organisation=by.organisation, now=NOON, ids=world.ids)
    return by, await brought(house, row.code)


async def brought(house: ServiceHouse, code: str) -> str:
    world = house.world
    organisation = await world.organisation(name=REFERRED)
    await world.store.write(attach_referral, organisation=organisation, person=await world.person(), code=code, now=NOON)
    return organisation


async def owe(house: ServiceHouse, organisation: str, ref: str, month: str, amount: int, currency: str = "EUR") -> None:
    """An invoice's platform fee has become final."""
    world = house.world
    await world.store.write(
        record_platform_fee,
        ref=ref,
        organisation=organisation,
        month=month,
        currency=currency,
        amount=amount,
        now=world.clock.now(),
        ids=world.ids,
    )


async def get(house: ServiceHouse, secret: str, path: str = COMMISSIONS, **query: object) -> Any:
    async with house.world.client(secret) as http:
        answer = await http.get(path, params={name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.rule("4.9.43")
async def test_commissions_are_listed_newest_period_first(house: ServiceHouse) -> None:
    by, organisation = await pair(house)
    for ref, month, amount in (("a", "2027-02", 1234), ("b", "2027-01", 1000), ("c", "2027-03", 5), ("d", "2027-01", 500)):
        await owe(house, organisation, ref, month, amount)
    await owe(house, organisation, "e", "2027-02", 99, "USD")
    shown = await get(house, by.secret)
    rows = [{name: value for name, value in row.items() if name not in ("id", "organization")} for row in shown["data"]]
    assert {row["organization"] for row in shown["data"]} == {organisation}
    assert all(re.fullmatch("com_[0-9a-z]{26}", row["id"]) for row in shown["data"])
    assert {**shown, "data": rows} == snapshot(
        {
            "object": "list",
            "data": [
                {"object": "commission", "period": "2027-03", "currency": "EUR", "platform_fees": 5, "amount": 1, "rate_bps": 1000},
                {"object": "commission", "period": "2027-02", "currency": "USD", "platform_fees": 99, "amount": 10, "rate_bps": 1000},
                {"object": "commission", "period": "2027-02", "currency": "EUR", "platform_fees": 1234, "amount": 123, "rate_bps": 1000},
                {"object": "commission", "period": "2027-01", "currency": "EUR", "platform_fees": 1500, "amount": 150, "rate_bps": 1000},
            ],
            "has_more": False,
        }
    )
    said = await house.mcp(CATALOGUE.operations["affiliates_me_commissions_list"], by.secret, {})
    assert said.body == shown


@pytest.mark.rule("4.9.41")
async def test_earnings_are_the_sums_by_currency_and_wait_to_be_paid(house: ServiceHouse) -> None:
    by, organisation = await pair(house)
    assert (await get(house, by.secret, ME))["payout_status"] == "no_earnings"
    await owe(house, organisation, "a", "2027-01", 1000)
    await owe(house, organisation, "b", "2027-02", 1000)
    await owe(house, organisation, "c", "2027-02", 777, "CHF")
    body = await get(house, by.secret, ME)
    assert (body["earnings"], body["payout_status"]) == (
        [{"currency": "CHF", "amount": 78}, {"currency": "EUR", "amount": 200}],
        "pending",
    )


async def test_the_pages_join_without_a_gap_while_new_months_arrive(house: ServiceHouse) -> None:
    by, organisation = await pair(house)
    months = [f"2027-{month:02}" for month in range(1, 9)]
    for month in sorted(months, key=lambda month: month[-1] in "357"):  # not in the order of time
        await owe(house, organisation, month, month, 100)
    seen: list[str] = []
    after = ""
    while True:
        page = await get(house, by.secret, limit=3, starting_after=after) if after else await get(house, by.secret, limit=3)
        seen += [row["period"] for row in page["data"]]
        if not page["has_more"]:
            break
        after = page["data"][-1]["id"]
        await owe(house, organisation, f"later {len(seen)}", "2027-12", 1)
    assert seen == months[::-1]


async def test_a_page_starts_behind_one_s_own_commission_only(house: ServiceHouse) -> None:
    by, organisation = await pair(house)
    other, theirs = await pair(house)
    await owe(house, organisation, "a", "2027-01", 100)
    await owe(house, theirs, "b", "2027-01", 100)
    foreign = (await get(house, other.secret))["data"][0]["id"]
    for id in (foreign, "com_nothing", "é"):
        async with house.world.client(by.secret) as http:
            answer = await http.get(COMMISSIONS, params={"starting_after": id})
        assert (answer.status_code, answer.json()["param"]) == (400, "starting_after")


async def test_the_name_of_a_referred_organisation_is_not_told(house: ServiceHouse) -> None:
    by, organisation = await pair(house)
    await owe(house, organisation, "a", "2027-01", 100)
    for path in (ME, COMMISSIONS):
        assert REFERRED not in str(await get(house, by.secret, path))


async def test_who_referred_nobody_has_an_empty_list(house: ServiceHouse) -> None:
    by, organisation = await pair(house)
    await owe(house, organisation, "a", "2027-01", 100)
    empty = {"object": "list", "data": [], "has_more": False}
    assert await get(house, (await house.world.caller()).secret) == empty
    assert len((await get(house, by.secret))["data"]) == 1
