"""Storing call records: each once, whole batches or nothing, sums exact to the byte."""

import asyncio

import httpx
import pytest
from inline_snapshot import snapshot

from storage.cdr_sums import SimMonth, sim_month_slices
from storage.engine.sql import Connection
from tests.cdr.records import INGEST, PERIODS, Json, Raw, assert_exact, event, everything, iccid, month, send
from tests.stage import without_request_id
from tests.world import NOON, Credentials, World

MOST = 2**53 - 1


def lines_of_month(connection: Connection, *, organisation: str, month: int) -> list[SimMonth]:
    return [line for lines in sim_month_slices(connection, organisation=organisation, month=month, size=5) for line in lines]


@pytest.mark.rule("4.4.2")
async def test_a_record_is_stored_summed_and_opens_its_month(http: httpx.AsyncClient, world: World, caller: Credentials) -> None:
    full = event("a", network="  Telenor ", country="no")
    answer = await send(http, full, event("b", 2, occurred_at=1_798_761_600, bytes_up=0, bytes_down=0))
    assert (answer.status_code, answer.json()) == snapshot((200, {"received": 2, "stored": 2, "skipped": 0}))
    assert await month(http) == snapshot(
        {
            "year": 2027,
            "month": 1,
            "total_bytes": 100,
            "data": [
                {"iccid": "8988303000000900001", "bytes_up": 10, "bytes_down": 90, "bytes_total": 100, "events": 1},
                {"iccid": "8988303000000900002", "bytes_up": 0, "bytes_down": 0, "bytes_total": 0, "events": 1},
            ],
            "truncated": False,
        }
    )
    assert (await http.get(PERIODS)).json() == snapshot(
        {
            "object": "list",
            "data": [
                {
                    "id": "per_01mcckg2g00000000000000009",
                    "org_id": "org_01mcckg2g00000000000000004",
                    "year": 2027,
                    "month": 1,
                    "status": "open",
                    "closed_at": None,
                    "created_at": 1800014400,
                }
            ],
            "has_more": False,
        }
    )
    kept = await world.store.read(everything, organisation=caller.organisation)
    assert kept.raw == snapshot(
        [
            Raw(
                event="a", iccid="8988303000000900001", occurred_at=1799568000, bytes_up=10, bytes_down=90, network="Telenor", country="NO"
            ),
            Raw(event="b", iccid="8988303000000900002", occurred_at=1798761600, bytes_up=0, bytes_down=0, network=None, country=None),
        ]
    )
    assert_exact(kept)


@pytest.mark.rule("4.4.3")
async def test_a_repeated_id_is_skipped_whatever_it_says_and_wherever_it_stands(
    http: httpx.AsyncClient, world: World, caller: Credentials
) -> None:
    first = await send(http, event("a", bytes_up=1), event("b"), event("a", 2, bytes_up=5), event("a", bytes_up=7))
    assert first.json() == {"received": 4, "stored": 2, "skipped": 2}
    again = await send(http, event("c"), event("a", 3, bytes_down=12, occurred_at="2026-03-01T00:00:00Z"))
    assert again.json() == {"received": 2, "stored": 1, "skipped": 1}
    nothing = await send(http, event("a"), event("b"), event("c"))
    assert nothing.json() == {"received": 3, "stored": 0, "skipped": 3}
    kept = await world.store.read(everything, organisation=caller.organisation)
    assert [(row.iccid, row.bytes_up, row.bytes_down, row.events) for row in kept.sums] == [(iccid(), 21, 270, 3)]
    assert_exact(kept)


@pytest.mark.long
@pytest.mark.rule("8.7")
async def test_a_batch_of_1000_sent_five_times_at_once_is_stored_once(http: httpx.AsyncClient, world: World, caller: Credentials) -> None:
    batch = [event(f"cdr-{number * 7919 % 1000}", number % 50, bytes_up=number) for number in range(1000)]
    answers = await asyncio.gather(*(send(http, *batch[place:], *batch[:place]) for place in range(0, 1000, 200)))
    assert sorted(answer.json()["stored"] for answer in answers) == [0, 0, 0, 0, 1000], "no part of a batch"
    assert sum(answer.json()["skipped"] for answer in answers) == 4000
    kept = await world.store.read(everything, organisation=caller.organisation)
    assert len(kept.raw) == 1000
    assert_exact(kept)


@pytest.mark.long
async def test_a_thousand_of_the_largest_records_are_one_batch(http: httpx.AsyncClient) -> None:
    widest = {"network": "\N{LATIN SMALL LETTER A WITH DIAERESIS}" * 64, "country": "SE", "bytes_up": 10**12, "bytes_down": 10**12}
    answer = await send(http, *(event(f"{number:128}".replace(" ", "~"), number % 3, **widest) for number in range(1000)))
    assert answer.json() == {"received": 1000, "stored": 1000, "skipped": 0}
    assert (await month(http))["total_bytes"] == 2 * 10**15


@pytest.mark.rule("8.7")
async def test_more_than_1000_or_none_or_more_than_2_mib_are_refused(http: httpx.AsyncClient) -> None:
    many = await send(http, *(event(f"{number}") for number in range(1001)))
    assert (many.status_code, many.json()["error"]) == snapshot((400, "events: got an array; must hold at most 1000 entries"))
    none = await send(http)
    assert (none.status_code, none.json()["error"]) == snapshot((400, "events: got an array; must hold at least 1 entry"))
    large = await http.post(INGEST, content=b'{"events": [' + b" " * (2 << 20) + b"]}", headers={"content-type": "application/json"})
    assert (large.status_code, large.json()["code"]) == (413, "body_too_large")
    assert (await http.get(PERIODS)).json()["data"] == []


WRONG: list[tuple[Json, str]] = [
    ({"id": ""}, "id"),
    ({"id": "a b"}, "id"),
    ({"id": "x" * 129}, "id"),
    ({"id": "caf\N{LATIN SMALL LETTER E WITH ACUTE}"}, "id"),
    ({"id": 5}, "id"),
    ({"iccid": "123"}, "iccid"),
    ({"bytes_up": -1}, "bytes_up"),
    ({"bytes_up": 10**15 + 1}, "bytes_up"),
    ({"bytes_down": 1.5}, "bytes_down"),
    ({"bytes_down": "5"}, "bytes_down"),
    ({"bytes_down": True}, "bytes_down"),
    ({"occurred_at": "2027-01-10T08:00:00"}, "occurred_at"),
    ({"occurred_at": "2027-01-10"}, "occurred_at"),
    ({"occurred_at": "20270110T080000Z"}, "occurred_at"),
    ({"occurred_at": "2026-02-29T00:00:00Z"}, "occurred_at"),
    ({"occurred_at": "2026-12-10T23:59:60Z"}, "occurred_at"),
    ({"occurred_at": "2026-06-30T23:58:60Z"}, "occurred_at"),
    ({"occurred_at": "2016-12-31T23:59:61Z"}, "occurred_at"),
    ({"occurred_at": "2009-12-31T23:59:59Z"}, "occurred_at"),
    ({"occurred_at": 1_262_303_999}, "occurred_at"),
    ({"occurred_at": 1_800_000_000_000}, "occurred_at"),
    ({"occurred_at": 1_800_000_000.5}, "occurred_at"),
    ({"occurred_at": "0001-01-01T00:00:00+23:59"}, "occurred_at"),
    ({"occurred_at": None}, "occurred_at"),
    ({"network": ""}, "network"),
    ({"network": "a\nb"}, "network"),
    ({"network": "x" * 65}, "network"),
    ({"network": "\u202eevil"}, "network"),
    ({"country": "NOR"}, "country"),
    ({"country": "N1"}, "country"),
    ({"mcc": "242"}, "mcc"),
]


async def test_one_record_that_is_wrong_refuses_the_batch_by_name(http: httpx.AsyncClient) -> None:
    for given, param in WRONG:
        answer = await send(http, event("a"), event("b"), event("c"), event("d") | given)
        body = answer.json()
        assert (answer.status_code, body["param"]) == (400, f"events[3].{param}"), (given, body)
        assert body["error"].startswith(f"events[3].{param}: ") and body["hint"], body
    assert (await month(http))["data"] == []


async def test_a_record_without_a_field_is_refused_with_the_field(http: httpx.AsyncClient) -> None:
    for name in ("id", "iccid", "occurred_at", "bytes_up", "bytes_down"):
        answer = await send(http, {field: value for field, value in event("a").items() if field != name})
        assert (answer.status_code, answer.json()["param"], answer.json()["error"]) == (
            400,
            f"events[0].{name}",
            f"events[0].{name}: missing; it is required",
        )


async def test_whole_numbers_may_be_written_with_a_point(http: httpx.AsyncClient) -> None:
    assert (await send(http, event("a", bytes_up=5.0, occurred_at=1_799_000_000.0))).json()["stored"] == 1
    assert (await month(http))["total_bytes"] == 95


async def test_five_minutes_ahead_are_taken_and_one_second_more_is_not(http: httpx.AsyncClient) -> None:
    assert (await send(http, event("a", occurred_at=int(NOON) + 300))).json()["stored"] == 1
    refused = await send(http, event("b"), event("c", occurred_at=int(NOON) + 301))
    assert without_request_id(refused) == snapshot(
        {
            "error": "events[1].occurred_at: 2027-01-15T12:05:01Z is more than 5 minutes ahead of 2027-01-15T12:00:00Z",
            "code": "invalid_request",
            "param": "events[1].occurred_at",
            "hint": "Check the sender's clock and the offset of its times; Unix seconds, not milliseconds",
        }
    )
    assert (await month(http))["total_bytes"] == 100


async def test_a_month_is_one_in_utc_whatever_the_offset(http: httpx.AsyncClient) -> None:
    december = ("2027-01-01T00:59:59+01:00", "2027-01-01T00:59:60+01:00", "2026-12-31T23:59:59.999999Z", "2026-12-01T00:00:00z")
    january = ("2026-12-31T19:00:00-05:00", "2027-01-01t00:00:00Z")
    answer = await send(http, *(event(when, occurred_at=when) for when in (*december, *january)))
    assert answer.json()["stored"] == 6
    assert [(await month(http, year, number))["data"][0]["events"] for year, number in ((2026, 12), (2027, 1))] == [4, 2]
    assert [(row["year"], row["month"]) for row in (await http.get(PERIODS)).json()["data"]] == [(2027, 1), (2026, 12)]


async def test_a_sims_month_holds_what_is_exact_and_not_a_byte_more(http: httpx.AsyncClient, world: World, caller: Credentials) -> None:
    rest = MOST - 8 * 10**15
    most = [event(f"{number}", bytes_up=10**15, bytes_down=0) for number in range(8)]
    last = [event("8", bytes_up=0, bytes_down=10**15), event("9", bytes_up=rest - 10**15, bytes_down=0)]
    assert (await send(http, *most, *last)).json()["stored"] == 10
    assert (await month(http))["total_bytes"] == MOST
    refused = await send(http, event("other", 2), event("none", bytes_up=0, bytes_down=0), event("more", bytes_up=1, bytes_down=0))
    assert refused.status_code == 400
    assert without_request_id(refused) == snapshot(
        {
            "error": "events[2]: with this batch its SIM's records of 2027-01 would add up to more than 9007199254740991 bytes (2^53-1), "
            "up and down together",
            "code": "invalid_request",
            "param": "events[2]",
            "hint": "Check the unit, which is bytes, and that no record comes under two ids. Nothing of this batch was stored",
        }
    )
    at_once = [event(f"x{number}", 3, bytes_up=10**15, bytes_down=10**15) for number in range(5)]
    assert (await send(http, event("other", 2), *at_once)).json()["param"] == "events[1]"
    assert (await send(http, *at_once[:4], event("feb", 3, bytes_up=10**15, occurred_at=1_790_000_000))).json()["stored"] == 5
    kept = await world.store.read(everything, organisation=caller.organisation)
    assert len(kept.raw) == 15
    assert_exact(kept)


@pytest.mark.long
async def test_an_organisations_month_holds_64_bits_and_not_a_byte_more(http: httpx.AsyncClient) -> None:
    for batch in range(4):
        full = (event(f"{batch}-{n}", batch * 250 + n // 4, bytes_up=10**15, bytes_down=10**15) for n in range(1000))
        assert (await send(http, *full)).json()["stored"] == 1000
    assert (await month(http))["total_bytes"] == 8 * 10**18
    refused = await send(http, *(event(f"5-{n}", 2000 + n // 4, bytes_up=10**15, bytes_down=10**15) for n in range(1000)))
    assert refused.status_code == 400
    assert refused.json()["param"] == "events"
    assert refused.json()["error"] == snapshot(
        "events: with this batch all records of 2027-01 would add up to more than 9223372036854775807 bytes (2^63-1), up and down together"
    )
    assert (await month(http))["total_bytes"] == 8 * 10**18


async def test_network_and_country_are_known_where_all_records_agree(http: httpx.AsyncClient, world: World, caller: Credentials) -> None:
    told = {1: ("A", "A"), 2: ("A", "B"), 3: ("B", None), 4: (None, "A"), 5: (None, None), 6: ("A", "B", "A"), 7: ("B", "B", "a")}
    for sim, networks in told.items():
        given = [event(f"{sim}-{n}", sim, **({} if name is None else {"network": name})) for n, name in enumerate(networks)]
        for one in given:  # in batches of their own
            await send(http, one)
        await send(http, *(record | {"id": f"x{record['id']}", "iccid": iccid(sim + 10)} for record in given))
    lines = await world.store.read(lines_of_month, organisation=caller.organisation, month=202701)
    assert [line.iccid for line in lines] == [iccid(sim) for sim in (*told, *(sim + 10 for sim in told))]
    assert [line.network for line in lines] == ["A", None, None, None, None, None, None] * 2
    assert [line.events for line in lines[:7]] == [2, 2, 2, 2, 2, 3, 3]
    assert_exact(await world.store.read(everything, organisation=caller.organisation))


async def test_organisations_have_ids_months_and_periods_of_their_own(http: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    assert (await send(http, event("a"))).json()["stored"] == 1
    assert (await other.get(PERIODS)).json()["data"] == []
    assert (await month(other))["data"] == [] and (await month(other, iccid=iccid()))["total_bytes"] == 0
    assert (await send(other, event("a", bytes_up=5))).json()["stored"] == 1
    assert ((await month(http))["total_bytes"], (await month(other))["total_bytes"]) == (100, 95)
    foreign = (await http.get(PERIODS)).json()["data"][0]["id"]
    assert (await other.get(PERIODS, params={"starting_after": foreign})).status_code == 400
