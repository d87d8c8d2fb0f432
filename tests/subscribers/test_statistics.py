"""Usage and events over days: windows, sums, order."""

from datetime import date, timedelta
from typing import Any

import pytest
from inline_snapshot import snapshot

from operations.subscribers.usage import merge_network_events, sum_usage
from operations.times import DayWindow, split_weeks
from tests.accounts.stage import AccountsStage, open_accounts_stage
from tests.stage import opened

stage = opened(open_accounts_stage)


def periods(stage: AccountsStage, method: str = "subscriberUsageOverPeriod") -> list[tuple[str, str]]:
    """The windows that were asked for."""
    return [(call["period"]["start"], call["period"]["end"]) for call in stage.calls(method)]


@pytest.mark.parametrize("length", [1, 6, 7, 8, 13, 14, 15, 92])
def test_weeks_cover_every_day_once(length: int) -> None:
    first = date(2027, 2, 25)
    window = DayWindow(first, first + timedelta(days=length - 1))
    cut = split_weeks(window)
    assert [day for week in cut for day in range(week.first.toordinal(), week.last.toordinal() + 1)] == list(
        range(window.first.toordinal(), window.last.toordinal() + 1)
    )
    assert {week.days for week in cut[:-1]} <= {7}


@pytest.mark.cases
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("2027-01-09", "2027-01-15")]),
        ({"end": "2027-01-03"}, [("2026-12-28", "2027-01-03")]),
        ({"start": "2027-01-15"}, [("2027-01-15", "2027-01-15")]),
        ({"start": "2027-01-01"}, [("2027-01-01", "2027-01-07"), ("2027-01-08", "2027-01-14"), ("2027-01-15", "2027-01-15")]),
        ({"start": "2027-01-01", "end": "2027-01-08"}, [("2027-01-01", "2027-01-07"), ("2027-01-08", "2027-01-08")]),
        ({"end": "2000-01-02"}, [("2000-01-01", "2000-01-02")]),  # no day before is one that may be asked for
    ],
)
async def test_days_become_windows(stage: AccountsStage, body: dict[str, str], expected: list[tuple[str, str]]) -> None:
    line = stage.used()
    for path, method in (("usage", "subscriberUsageOverPeriod"), ("network-events", "subscriberNetworkEventsOverPeriod")):
        assert (await stage.managed.post(f"/v1/subscribers/{line.iccid}/{path}", json=body)).status_code == 200
        assert periods(stage, method) == expected


NO_RANGES: list[tuple[dict[str, Any], str]] = [
    ({"start": "2027-01-02", "end": "2027-01-01"}, "start"),
    ({"start": "2027-01-16"}, "start"),
    ({"start": "2026-10-15"}, "start"),
    ({"start": "2027-13-01"}, "start"),
    ({"start": "2027-01-01T00:00:00Z"}, "start"),
    ({"start": 1800014400}, "start"),
    ({"end": "1900-01-01"}, "end"),
    ({"end": "9999-12-31"}, "end"),
    ({"from": "2027-01-01"}, "from"),
]


async def test_days_that_make_no_range_ask_nobody(stage: AccountsStage) -> None:
    for body, param in NO_RANGES:
        for path in ("usage", "network-events"):
            said = await stage.managed.post(f"/v1/subscribers/{stage.used().iccid}/{path}", json=body)
            assert (said.status_code, said.json()["param"]) == (400, param)
        assert stage.calls() == []


async def test_the_longest_range_is_ninety_two_days(stage: AccountsStage) -> None:
    path = f"/v1/subscribers/{stage.used().iccid}/usage"
    assert (await stage.managed.post(path, json={"start": "2026-10-16"})).status_code == 200
    assert len(periods(stage)) == 14


@pytest.mark.rule("4.2.26")
async def test_parts_add_up_to_what_the_line_used(stage: AccountsStage) -> None:
    line = stage.used()
    path = f"/v1/subscribers/{line.iccid}/usage"
    whole = (await stage.managed.post(path, json={"start": "2027-01-09"})).json()["data"]
    cut = (await stage.managed.post(path, json={"start": "2027-01-06"})).json()["data"]
    assert whole == cut  # the simulated life began three days ago
    assert whole["dataBytes"] == sum(cdr.quantity for cdr in line.cdrs if cdr.usage_type == 33)
    days = cut["usages"][0]["subsPeriodUsages"]
    assert [day["day"] for day in days] == sorted(day["day"] for day in days)
    assert sum(len(day["subsDailyUsages"]) for day in days) == len(line.cdrs)


async def test_every_kind_of_use_has_a_sum_of_its_own_name(stage: AccountsStage) -> None:
    line = stage.used()
    quantities = {1: 60, 15: 30, 21: 2, 22: 1, 33: 4096, 40: 7, 41: 5}
    line.cdrs[:] = [line.cdrs[-1]._replace(session=str(kind), usage_type=kind, quantity=much) for kind, much in quantities.items()]
    for start in ("2027-01-09", "2027-01-02"):
        usage = (await stage.managed.post(f"/v1/subscribers/{line.iccid}/usage", json={"start": start})).json()["data"]
        assert usage["total"]["quantityPerType"] == {str(kind): much for kind, much in quantities.items()}
        sums = {name: usage[name] for name in ("dataBytes", "callSeconds", "voipSeconds", "messages")}
        assert sums == {"dataBytes": 4096, "callSeconds": 90, "voipSeconds": 12, "messages": 3}


async def test_single_records_are_left_out_on_request(stage: AccountsStage) -> None:
    path = f"/v1/subscribers/{stage.used().iccid}/usage"
    data = (await stage.managed.post(path, json={"records": False})).json()["data"]
    days = data["usages"][0]["subsPeriodUsages"]
    assert days and all(day["subsDailyUsages"] == [] and day["total"] for day in days)


async def test_a_line_without_usage_has_zeros(stage: AccountsStage) -> None:
    said = await stage.managed.post(f"/v1/subscribers/{stage.fresh().iccid}/usage", json={})
    assert said.json() == snapshot(
        {
            "data": {
                "total": {"resellerCost": 0.0, "subscriberCost": 0.0, "quantityPerCountry": []},
                "usages": [],
                "dataBytes": 0,
                "callSeconds": 0,
                "voipSeconds": 0,
                "messages": 0,
            }
        }
    )
    said = await stage.managed.post(f"/v1/subscribers/{stage.fresh().iccid}/network-events", json={})
    assert said.json() == {"data": {"mapAnswer": {"events": []}, "s6aAnswer": {"events": []}, "gyAnswer": {"events": []}}}


async def test_a_window_that_fails_fails_the_whole(stage: AccountsStage) -> None:
    path = f"/v1/subscribers/{stage.used().iccid}/usage"
    stage.trouble("subscriberUsageOverPeriod", delay=0.001)
    stage.trouble("subscriberUsageOverPeriod", code=7)
    said = await stage.managed.post(path, json={"start": "2027-01-01"})
    assert (said.status_code, said.json()["ocs_code"]) == (502, 7)
    assert len(periods(stage)) == 2


@pytest.mark.rule("4.2.25")
async def test_the_newest_events_of_each_protocol(stage: AccountsStage) -> None:
    path = f"/v1/subscribers/{stage.used().iccid}/network-events"
    whole = (await stage.managed.post(path, json={})).json()["data"]
    few = (await stage.managed.post(path, json={"newest": 2})).json()["data"]
    for section, found in whole.items():
        assert few[section]["events"] == found["events"][-2:]
        times = [event["eventTime"] for event in found["events"]]
        assert times == sorted(times)
    assert any(found["events"] for found in whole.values())


def day(name: str, quantity: int) -> Any:
    return {"day": name, "total": {"resellerCost": 0.1, "quantityPerType": {"33": quantity}}, "subsDailyUsages": [{"quantity": quantity}]}


def part(days: list[Any], *, mnc: int, cost: float, quantity: int) -> Any:
    operator = {"mnc": mnc, "name": f"N{mnc}", "qty": quantity}
    country = {"mcc": 242, "name": "Norway", "alpha2": "no", "qty": quantity, "quantityPerOperator": [operator]}
    total = {"resellerCost": cost, "newCost": 1, "quantityPerType": {"33": quantity, "1": 1}, "quantityPerCountry": [country]}
    return {"total": total, "usages": [{"subscriberId": 9, "total": total, "subsPeriodUsages": days}]}


def test_sums_are_by_member_type_country_and_operator() -> None:
    first = part([day("2027-01-02", 5), day("2027-01-01", 7)], mnc=1, cost=0.1, quantity=12)
    second = part([day("2027-01-08", 3), day("2027-01-02", 1)], mnc=2, cost=0.2, quantity=4)
    third = part([], mnc=1, cost=0.0, quantity=2)
    summed: Any = sum_usage([first, second, third])
    assert summed["total"] == snapshot(
        {
            "resellerCost": 0.3,
            "newCost": 3,
            "quantityPerCountry": [
                {
                    "mcc": 242,
                    "name": "Norway",
                    "alpha2": "no",
                    "qty": 18,
                    "quantityPerOperator": [{"mnc": 1, "name": "N1", "qty": 14}, {"mnc": 2, "name": "N2", "qty": 4}],
                }
            ],
            "quantityPerType": {"33": 18, "1": 3},
        }
    )
    (line,) = summed["usages"]
    assert line["total"] == summed["total"]
    assert [(found["day"], found["total"]["quantityPerType"]["33"]) for found in line["subsPeriodUsages"]] == [
        ("2027-01-01", 7),
        ("2027-01-02", 6),
        ("2027-01-08", 3),
    ]
    assert line["subsPeriodUsages"][1]["subsDailyUsages"] == [{"quantity": 5}, {"quantity": 1}]


def event(time: str) -> dict[str, object]:
    return {"eventTime": time}


def test_events_are_put_in_order_of_the_moment_not_of_the_text() -> None:
    late, early, odd = (event(text) for text in ("2027-01-01T10:00:00.000+01:00", "2027-01-01T10:30:00.000+02:00", "N/A"))
    found = merge_network_events([{"mapAnswer": {"events": [late, odd]}}, {"mapAnswer": {"events": [early]}}], None)
    assert found == {"mapAnswer": {"events": [odd, early, late]}, "s6aAnswer": {"events": []}, "gyAnswer": {"events": []}}
