"""Packages that come again: over the ends of months, with what is left carried over, until they are stopped or all made."""

from typing import Any

import pytest

from tests.month.fleet import Month, Phone
from tests.network_facts import MIB


async def start(phone: Phone, template: str, **body: Any) -> dict[str, Any]:
    return await phone.month.post(f"{phone.path}/packages/recurring", {"packageTemplateId": await phone.month.template(template), **body})


async def dates(phone: Phone) -> list[tuple[str, str, str]]:
    return [(row["state"], row["tsactivationutc"][:10], row["tsexpirationutc"][:10]) for row in await phone.packages()]


@pytest.mark.long
async def test_a_monthly_package_keeps_its_day_over_short_months(month: Month) -> None:
    phone = await month.new_line()
    made = await start(phone, "Nordic monthly 3GB", startTime="2027-01-31T00:00:00")
    assert made["packageInfo"] is None
    (upcoming,) = await phone.packages()
    assert (upcoming["state"], upcoming["packageId"], upcoming["recurring"]["nbCreated"]) == ("upcoming", None, 0)

    await month.days(15)  # 30 January, noon: twelve hours ahead
    assert await dates(phone) == [("scheduled", "2027-01-31", "2027-03-03")]
    await month.days(1)
    assert await dates(phone) == [("running", "2027-01-31", "2027-03-03")]
    await month.days(28)  # 28 February
    assert await dates(phone) == [("running", "2027-01-31", "2027-03-03"), ("running", "2027-02-28", "2027-03-31")]
    await month.days(31)  # 31 March
    assert await dates(phone) == [
        ("expired", "2027-01-31", "2027-03-03"),
        ("expired", "2027-02-28", "2027-03-31"),
        ("running", "2027-03-31", "2027-05-01"),
    ]
    series = (await phone.packages())[-1]["recurring"]
    assert (series["nbCreated"], series["active"], series["lastPackageCreationTimeUTC"]) == (3, True, "2027-03-30T12:00:00")


@pytest.mark.long
async def test_what_is_left_is_carried_over_into_the_next_month(month: Month) -> None:
    phone = await month.new_line()
    made = await start(phone, "Europe monthly 5GB carry-over", startTime="2027-01-31T00:00:00")
    assert made["simInfo"]["iccid"] == phone.iccid
    network = await phone.go("no", "01")
    await month.days(16)
    await phone.use(network, 1024 * MIB)
    await month.days(28)
    first, second = await phone.packages()
    assert (first["state"], first["useddatabyte"], first["tsexpirationutc"]) == ("expired", 1024 * MIB, "2027-02-28T00:00:00")
    assert (second["state"], second["pckdatabyte"], second["useddatabyte"]) == ("running", (5120 + 4096) * MIB, 0)
    await phone.use(network, 9000 * MIB)
    assert (await phone.package(second["packageId"]))["useddatabyte"] == 9000 * MIB
    assert month.thresholds(second["packageId"]) == [(second["packageId"], "DATA", "80")]
    await month.days(31)
    assert (await phone.packages())[-1]["pckdatabyte"] == (5120 + 216) * MIB


@pytest.mark.long
async def test_a_series_begins_with_its_first_use_and_a_stopped_one_makes_no_more(month: Month) -> None:
    phone = await month.new_line()
    made = await start(phone, "Europe weekly 1GB", activateAtFirstUse=True)
    first = made["packageInfo"]["packageId"]
    network = await phone.go("se", "01")
    await month.days(10)
    assert [row["state"] for row in await phone.packages()] == ["assigned"]
    await phone.use(network, MIB)
    await month.days(14)
    assert await dates(phone) == [
        ("expired", "2027-01-25", "2027-02-01"),
        ("expired", "2027-02-01", "2027-02-08"),
        ("running", "2027-02-08", "2027-02-15"),
    ]
    stopped = await month.put(f"{phone.path}/packages/{first}/recurring-status", {"action": "stop"})
    assert stopped["active"] is False
    await month.days(10)
    assert [row["state"] for row in await phone.packages()] == ["expired"] * 3
    resumed = await month.put(f"{phone.path}/packages/{stopped['recurringId']}/recurring-status", {"action": "resume"})
    assert resumed == {"recurringId": stopped["recurringId"], "active": True}
    assert (await dates(phone))[-1] == ("running", "2027-02-15", "2027-02-22")


@pytest.mark.long
async def test_a_series_makes_as_many_packages_as_its_template_says(month: Month) -> None:
    phone = await month.new_line()
    await start(phone, "World day pass 200MB")
    await month.days(20)
    rows = await phone.packages()
    assert [row["state"] for row in rows] == ["expired"] * 14
    assert {(row["recurring"]["nbCreated"], row["recurring"]["nbOccurrence"]) for row in rows} == {(14, 14)}
    assert len({row["tsactivationutc"] for row in rows}) == 14
