"""What a month adds up to: the largest SIMs first, and the bytes of all."""

import httpx
import pytest
from inline_snapshot import snapshot

from tests.cdr.records import AGGREGATE, event, iccid, month, send


@pytest.mark.rule("4.4.1")
async def test_sims_come_largest_first_and_those_that_used_the_same_by_iccid(http: httpx.AsyncClient) -> None:
    await send(http, event("a", 3), event("b", 1), event("c", 2, bytes_up=11), event("d", 1), event("e", 4, bytes_up=0, bytes_down=200))
    await send(http, event("f", 9, occurred_at="2026-12-31T23:59:59Z"))
    assert await month(http) == snapshot(
        {
            "year": 2027,
            "month": 1,
            "total_bytes": 601,
            "data": [
                {"iccid": "8988303000000900001", "bytes_up": 20, "bytes_down": 180, "bytes_total": 200, "events": 2},
                {"iccid": "8988303000000900004", "bytes_up": 0, "bytes_down": 200, "bytes_total": 200, "events": 1},
                {"iccid": "8988303000000900002", "bytes_up": 11, "bytes_down": 90, "bytes_total": 101, "events": 1},
                {"iccid": "8988303000000900003", "bytes_up": 10, "bytes_down": 90, "bytes_total": 100, "events": 1},
            ],
            "truncated": False,
        }
    )


@pytest.mark.rule("4.4.1")
async def test_one_sim_is_read_with_its_own_total(http: httpx.AsyncClient) -> None:
    await send(http, event("a", 3), event("b", 1), event("c", 1, bytes_up=0), event("d", 1, occurred_at="2026-12-31T23:59:59Z"))
    assert await month(http, iccid=iccid(1)) == snapshot(
        {
            "year": 2027,
            "month": 1,
            "total_bytes": 190,
            "data": [{"iccid": "8988303000000900001", "bytes_up": 10, "bytes_down": 180, "bytes_total": 190, "events": 2}],
            "truncated": False,
        }
    )
    assert await month(http, iccid=iccid(2)) == snapshot({"year": 2027, "month": 1, "total_bytes": 0, "data": [], "truncated": False})


async def test_a_month_without_records_is_empty(http: httpx.AsyncClient) -> None:
    assert await month(http, 2010, 12) == {"year": 2010, "month": 12, "total_bytes": 0, "data": [], "truncated": False}


@pytest.mark.long
@pytest.mark.rule("8.8")
async def test_at_most_1000_sims_are_listed_and_the_total_is_of_all(http: httpx.AsyncClient) -> None:
    await send(http, *(event(f"{sim}", sim, bytes_up=sim, bytes_down=0) for sim in range(1, 1001)))
    whole = await month(http)
    assert (len(whole["data"]), whole["truncated"], whole["total_bytes"]) == (1000, False, 500_500)
    await send(http, event("more", 1001, bytes_up=5, bytes_down=0), event("less", 1002, bytes_up=0, bytes_down=0))
    cut = await month(http)
    assert (len(cut["data"]), cut["truncated"], cut["total_bytes"]) == (1000, True, 500_505)
    assert [row["bytes_total"] for row in cut["data"]] == [*range(1000, 5, -1), 5, 5, 4, 3, 2]
    assert [row["iccid"] for row in cut["data"][995:997]] == [iccid(5), iccid(1001)]


WRONG: list[tuple[dict[str, str], str]] = [
    ({"month": "1"}, "year"),
    ({"year": "2027"}, "month"),
    ({"year": "2027", "month": "13"}, "month"),
    ({"year": "2027", "month": "0"}, "month"),
    ({"year": "2009", "month": "1"}, "year"),
    ({"year": "2027", "month": "1", "iccid": "1"}, "iccid"),
]


async def test_a_month_that_cannot_be_is_refused_by_name(http: httpx.AsyncClient) -> None:
    for query, param in WRONG:
        answer = await http.get(AGGREGATE, params=query)
        assert (answer.status_code, answer.json()["param"]) == (400, param), query
