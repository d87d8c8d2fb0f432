"""Invoice numbers: without gaps, whoever asks at the same time, on both databases."""

import asyncio

import pytest

from operations.catalogue import CATALOGUE
from registry.limits import Limits
from tests.invoices.billing import GB, INVOICES, Billing, sim
from tests.stage import opened_on_both
from tests.world import open_world

NEW_YEAR = 1_830_297_600  # 2028-01-01T00:00:00Z


world = opened_on_both(open_world, CATALOGUE, faultless=True, limits=Limits(burst_enabled=False))


def numbers(*given: int, year: int = 2027, prefix: str = "INV") -> list[str]:
    return [f"{prefix}-{year}-{number:06d}" for number in given]


@pytest.mark.long
@pytest.mark.rule("3.2.5")
async def test_32_creations_at_once_are_numbered_1_to_32(bill: Billing) -> None:
    await bill.use(*((sim(number), 0, GB) for number in range(3)))
    period = await bill.period()
    answers = await asyncio.gather(*(bill.create(period) for _ in range(32)))
    assert sorted(answer.json()["invoice_number"] for answer in answers) == numbers(*range(1, 33))
    kept = (await bill.http.get(INVOICES, params={"limit": 100})).json()["data"]
    assert sorted(each["invoice_number"] for each in kept) == numbers(*range(1, 33))


@pytest.mark.long
async def test_32_creations_of_which_half_are_refused_leave_no_gap(bill: Billing) -> None:
    await bill.use(*((sim(number), 0, 10**15) for number in range(10)))
    period = await bill.period()
    answers = await asyncio.gather(*(bill.create(period, price_per_gb_cents=(1, 10**9)[turn % 2]) for turn in range(32)))
    assert sorted(answer.status_code for answer in answers) == [201] * 16 + [409] * 16
    kept = (await bill.http.get(INVOICES, params={"limit": 100})).json()["data"]
    assert sorted(each["invoice_number"] for each in kept) == numbers(*range(1, 17))


async def test_a_void_keeps_its_number_and_it_is_never_given_again(bill: Billing) -> None:
    first = await bill.draft()
    assert (await bill.void(first["id"])).json()["invoice_number"] == "INV-2027-000001"
    assert (await bill.create()).json()["invoice_number"] == "INV-2027-000002"
    assert (await bill.read(first["id"]))["status"] == "void"


async def test_a_year_begins_a_new_count_in_utc_and_a_new_prefix_none(bill: Billing) -> None:
    world, now = bill.world, bill.world.clock.now()
    made = [(await bill.draft())["invoice_number"]]
    await bill.config(invoice_prefix="NEXT")
    made.append((await bill.create()).json()["invoice_number"])
    world.clock.advance(NEW_YEAR - now - 1)
    made.append((await bill.create()).json()["invoice_number"])
    world.clock.advance(1)
    made.append((await bill.create()).json()["invoice_number"])
    assert made == ["INV-2027-000001", "NEXT-2027-000002", "NEXT-2027-000003", "NEXT-2028-000001"]


async def test_organisations_count_apart(bill: Billing) -> None:
    await bill.draft()
    other = await bill.world.caller()
    async with bill.world.client(other.secret) as http:
        assert (await Billing(bill.world, other, http).draft())["invoice_number"] == "INV-2027-000001"


@pytest.mark.long
async def test_records_that_come_at_the_same_time_are_in_an_invoice_whole_or_not_at_all(bill: Billing) -> None:
    """Each batch adds the same to three SIMs: an invoice in which they differ has seen half of one."""
    await bill.use(*((sim(number), 0, GB) for number in range(3)))
    period = await bill.period()
    batches = (bill.use(*((sim(number), 0, GB) for number in range(3))) for _ in range(12))
    found = await asyncio.gather(*(work for pair in zip(batches, (bill.create(period) for _ in range(12)), strict=True) for work in pair))
    made = [answer.json()["id"] for answer in found if answer is not None]
    for invoice in made:
        whole = await bill.read(invoice)
        assert len({line["bytes_total"] for line in whole["line_items"]}) == 1
    assert len(made) == 12
    assert (await bill.create(period, price_per_gb_cents=1)).json()["subtotal_cents"] == 3 * 13


async def test_invoices_of_one_sim_and_of_the_month_made_at_once_bill_the_sim_in_one_way(bill: Billing) -> None:
    await bill.use((sim(1), 0, GB), (sim(2), 0, GB))
    period = await bill.period()
    some = [bill.create(period, iccids=[sim(1)], price_per_gb_cents=100) for _ in range(4)]
    answers = await asyncio.gather(*some, *(bill.create(period, price_per_gb_cents=100) for _ in range(4)))
    assert {answer.status_code for answer in answers[4:]} == {201}
    selected = [answer for answer in answers[:4] if answer.status_code == 201]
    of_month = [line["iccid"] for answer in answers[4:] for line in answer.json()["largest_lines"]]
    assert len(selected) <= 1 and all(answer.json()["code"] == "nothing_to_bill" for answer in answers[:4] if answer not in selected)
    assert (len(selected) == 1) == (sim(1) not in of_month) and of_month.count(sim(2)) == 4


async def test_a_whole_life_on_either_database(bill: Billing) -> None:
    made = await bill.draft((sim(1), 1, 2), (sim(2), 3, 4), price=10**9)
    edited = (
        await bill.update(made["id"], recipient_name="Åse ™", recipient_email="a@b.example", notes="a\nb", due_at=1_800_100_000)
    ).json()
    assert (edited["recipient_name"], edited["due_at"]) == ("Åse ™", 1_800_100_000)
    removed = (await bill.update(made["id"], recipient_name=None, notes=None)).json()
    assert (removed["recipient_name"], removed["notes"], removed["recipient_email"]) == (None, None, "a@b.example")
    sent = (await bill.send(made["id"])).json()
    assert (sent["status"], sent["issued_at"], sent["due_at"]) == ("sent", 1_800_014_400, 1_800_100_000)
    assert (await bill.send(made["id"])).json() == sent
    assert (await bill.void(made["id"])).json() == {**sent, "status": "void"}
    assert (await bill.read(made["id"]))["line_items"][1]["bytes_total"] == 7
