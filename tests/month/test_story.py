"""One line's month: it is sold, attaches, roams, consumes, is slowed down, runs out, is paused, and ends."""

import httpx
import pytest

from simulators.network.entities import DAY_SECONDS, MICRO_EURO
from tests.month.fleet import CALL, DATA, SMS, Month, Phone, micro, records
from tests.network_facts import MIB


async def countries(phone: Phone) -> list[str]:
    said = await phone.month.http.get(f"/v1/{phone.path}/country-history")
    return [entry["country"] for entry in said.json()["data"]]


async def test_a_line_that_attaches_and_roams_is_seen_where_it_is(month: Month) -> None:
    phone = await month.new_line()
    assert await month.get(f"{phone.path}/location") is None
    assert (await month.http.get(f"/v1/{phone.path}/cell-location")).status_code == 404
    assert await countries(phone) == []
    package = await phone.buy("Europe 1GB 30d")
    assert (await month.get(phone.path))["currentStatus"] == "Active"
    assert [row["status"] for row in await month.get(f"{phone.path}/sim-status")] == ["Released"]

    await phone.go("no", "01")
    home = await month.get(f"{phone.path}/location")
    assert await phone.state(package) == "assigned"  # to attach uses nothing
    await month.days(5)
    await phone.go("fr", "10")
    away = await month.get(f"{phone.path}/location")
    cell = await month.get(f"{phone.path}/cell-location")
    await month.days(1)
    await phone.go("fr", "01")
    assert await countries(phone) == ["FR", "NO"]  # another network is not another country
    assert (home["dateTime"], away["dateTime"]) == ("2027-01-15T12:00:00", "2027-01-20T12:00:00")
    assert home["latitude"] - away["latitude"] > 5
    assert (cell["cell"]["mcc"], cell["cell"]["mnc"], cell["observedAt"]) == (208, 10, "2027-01-20T12:00:00Z")
    assert (cell["latitude"], cell["longitude"]) == pytest.approx((away["latitude"], away["longitude"]), abs=1)
    events = await month.post(f"{phone.path}/network-events", {"start": "2027-01-15", "end": "2027-01-21"})
    seen = [row["countryAlpha2"] for section in ("mapAnswer", "s6aAnswer") for row in events.get(section, {}).get("events", [])]
    assert sorted(seen) == ["fr", "fr", "no"]
    assert (await month.get(f"{phone.path}/active-period"))["period"] is None


async def test_a_line_that_uses_its_package_up_is_told_twice_slowed_down_and_then_pays(month: Month) -> None:
    phone = await month.new_line()
    package = await phone.buy("Europe 1GB 30d")
    network = await phone.go("de", "01")

    await phone.use(network, 819 * MIB)
    running = await phone.package(package)
    assert (running["state"], running["useddatabyte"], running["pckdatabyte"]) == ("running", 819 * MIB, 1024 * MIB)
    assert (running["tsactivationutc"], running["tsexpirationutc"]) == ("2027-01-15T12:00:00", "2027-02-14T12:00:00")
    assert month.thresholds(package) == []
    await phone.use(network, 1 * MIB)
    assert month.thresholds(package) == [(package, "DATA", "80")]
    await month.days(2)
    before = await balance(month)

    over = await phone.use(network, 234 * MIB)
    assert [(row["quantity"], row["inPackage"]) for row in over] == [(204 * MIB, 204 * MIB), (30 * MIB, 0)]
    assert await phone.state(package) == "exhausted"
    assert month.thresholds(package) == [(package, "DATA", "80"), (package, "DATA", "100")]
    assert await month.get(f"{phone.path}/bitrate") == {
        "limit": "KB_128",
        "unlimited": False,
        "bitrate": 128_000,
        "limitSource": "fair_use",
    }
    counter = (await month.get(phone.path, gzCounter=True))["greenZoneCounter"]
    assert (counter["volumeOnGZ"], counter["lastUpdateDate"]) == (30 * MIB, "2027-01-17T12:00:00")
    assert await balance(month) == before

    slow, paid = await phone.use(network, 30 * MIB)
    assert (slow["quantity"], slow["subscriberCost"], paid["quantity"]) == (20 * MIB, 0.0, 10 * MIB)
    assert paid["subscriberCost"] > 0
    assert await balance(month) == before - micro(paid["subscriberCost"])
    assert month.thresholds(package) == [(package, "DATA", "80"), (package, "DATA", "100")]  # once each
    assert {status for status, _ in month.pushed} == {200}

    usage = await phone.usage(start="2027-01-15", end="2027-01-17")
    assert usage["dataBytes"] == usage["total"]["quantityPerType"][str(DATA)] == (819 + 1 + 234 + 30) * MIB
    assert [(day["day"], day["total"]["quantityPerType"]) for line in usage["usages"] for day in line["subsPeriodUsages"]] == [
        ("2027-01-15", {"33": 820 * MIB}),
        ("2027-01-17", {"33": 264 * MIB}),
    ]
    assert micro(usage["total"]["subscriberCost"]) == micro(paid["subscriberCost"])
    assert sum(row.get("subscriberPrepaidPackageQty", 0) for row in records(usage)) == 1024 * MIB


async def balance(month: Month) -> int:
    (account,) = await month.get("accounts")
    return micro(account["balance"])


async def test_a_package_gets_slower_by_its_thresholds_and_a_new_one_is_fast_again(month: Month) -> None:
    phone = await month.new_line()
    package = await phone.buy("World 5GB 30d")
    network = await phone.go("de", "01")
    speeds: list[str] = []
    for quantity in (2500, 100, 1500):
        await phone.use(network, quantity * MIB)
        speeds.append((await month.get(f"{phone.path}/bitrate"))["limit"])
    assert speeds == ["UNLIMITED", "KB_10240", "KB_1024"]
    assert (await month.get(phone.path))["throttlingLimit"] == 1024
    assert (await phone.package(package))["useddatabyte"] == 4100 * MIB
    second = await phone.buy("Europe 1GB 30d")
    await phone.use(network, 1020 * MIB)
    assert [row["state"] for row in await phone.packages()] == ["exhausted", "assigned"]
    await phone.use(network, MIB)
    assert (await month.get(f"{phone.path}/bitrate"))["limit"] == "UNLIMITED"
    assert (await phone.package(second))["useddatabyte"] == MIB


async def test_a_paused_package_is_skipped_until_it_is_resumed(month: Month) -> None:
    phone = await month.new_line()
    first, second = await phone.buy("Nordic 1GB 30d"), await phone.buy("Europe 1GB 30d")
    network = await phone.go("no", "01")
    await phone.use(network, MIB)
    await month.put(f"{phone.path}/packages/{first}/status", {"status": "INACTIVE"})
    await month.days(1)
    await phone.use(network, MIB)
    assert [(row["packageId"], row["state"], row["useddatabyte"]) for row in await phone.packages()] == [
        (first, "blocked", MIB),
        (second, "running", MIB),
    ]
    await month.put(f"{phone.path}/packages/{first}/status", {"status": "ACTIVE"})
    await phone.use(network, MIB)
    assert [(row["state"], row["useddatabyte"]) for row in await phone.packages()] == [("running", 2 * MIB), ("running", MIB)]


async def test_a_talk_package_pays_calls_and_messages(month: Month) -> None:
    phone = await month.new_line()
    package = await phone.buy("Nordic Talk 2GB 30d")
    network = await phone.go("no", "01")
    await phone.use(network, 125, CALL, "4790000001")
    await phone.use(network, 2, SMS)
    held = await phone.package(package)
    assert (held["usedmocsecond"], held["usedmosmsnumber"], held["useddatabyte"]) == (125, 2, 0)
    usage = await phone.usage()
    assert usage["total"]["quantityPerType"] == {"1": 125, "21": 2}
    assert (usage["dataBytes"], usage["callSeconds"], usage["messages"]) == (0, 125, 2)


@pytest.mark.long
async def test_a_package_that_is_not_used_up_expires_on_its_day(month: Month) -> None:
    phone = await month.new_line()
    package = await phone.buy("Europe 1GB 30d", validityPeriod=7)
    network = await phone.go("se", "01")
    await phone.use(network, 100 * MIB)
    states: list[str] = []
    for days in (6.5, 0.5 - 1 / DAY_SECONDS, 1 / DAY_SECONDS):
        await month.days(days)
        states.append(await phone.state(package))
    assert states == ["running", "running", "expired"]
    (paid,) = await phone.use(network, MIB)
    assert (paid["inPackage"], paid["subscriberCost"] > 0) == (0, True)
    assert (await phone.package(package))["useddatabyte"] == 100 * MIB
    assert (await phone.package(package))["tsexpirationutc"] == "2027-01-22T12:00:00"


async def test_a_suspended_line_uses_nothing_and_goes_on_when_it_is_active_again(month: Month) -> None:
    phone = await month.new_line()
    package = await phone.buy("Europe 1GB 30d")
    network = await phone.go("no", "01")
    await phone.use(network, MIB)
    await month.put(f"{phone.path}/status", {"status": "SUSPENDED"})
    status, said = await phone.try_to_use(network, MIB)
    assert (status, said["error"]["code"]) == (409, 14)
    await month.days(3)
    assert (await phone.package(package))["useddatabyte"] == MIB
    assert (await phone.usage())["dataBytes"] == MIB
    await month.put(f"{phone.path}/status", {"status": "ACTIVE"})
    await phone.use(network, MIB)
    assert (await phone.package(package))["useddatabyte"] == 2 * MIB


async def test_a_line_that_has_ended_can_be_looked_at_but_not_changed(month: Month) -> None:
    phone = await month.new_line()
    package = await phone.buy("Europe 1GB 30d")
    network = await phone.go("no", "01")
    await phone.use(network, MIB)
    await month.put(f"{phone.path}/status", {"status": "END_OF_LIFE", "irreversible": True})
    template = await month.template("Europe 1GB 30d")
    attempts: list[httpx.Response] = [
        await month.http.put(f"/v1/{phone.path}/status", json={"status": "ACTIVE"}),
        await month.http.post(f"/v1/{phone.path}/packages", json={"packageTemplateId": template}),
        await month.http.put(f"/v1/{phone.path}/bitrate", json={"bitrate": 256_000}),
        await month.http.put(f"/v1/{phone.path}/traffic-restrictions", json={"data": False}),
    ]
    assert [(said.status_code, said.json()["code"]) for said in attempts] == [(409, "subscriber_end_of_life")] * len(attempts)
    assert (await phone.try_to_use(network, MIB))[0] == 409
    assert (await month.get(phone.path))["currentStatus"].upper().replace(" ", "_") == "END_OF_LIFE"
    assert (await phone.package(package))["useddatabyte"] == MIB


async def test_a_line_with_a_balance_of_its_own_spends_it_to_the_last_cent(month: Month) -> None:
    network = await month.world.network()
    phone, account = await month.new_line(), await balance(month)
    line = next(line for line in network.lines_of(8101) if line.iccid == phone.iccid)
    line.use_account, line.balance = False, MICRO_EURO // 2  # fifty cents, which an organisation may not give
    await month.put(f"{phone.path}/status", {"status": "ACTIVE"})
    at = await phone.go("no", "01")
    (paid,) = await phone.use(at, 5000 * MIB)
    assert 0 < paid["quantity"] < 5000 * MIB
    left = (await month.get(phone.path))["balance"]
    assert micro(paid["subscriberCost"]) + micro(left) == MICRO_EURO // 2
    assert micro(left) < 10_000
    assert await balance(month) == account
