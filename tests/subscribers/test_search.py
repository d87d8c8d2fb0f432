"""Finding and listing lines: what goes to the network, and what comes back."""

import sys
from collections.abc import Callable
from time import thread_time
from types import FrameType
from typing import Any

import httpx
import orjson
import pytest
from inline_snapshot import snapshot

from operations.subscribers.subscribers import NUMBER_SEARCH_HINTS, list_subscribers, parse_search_term
from operations.upstream.account_lines import subscriber_number
from operations.upstream.lines import current_entry, current_line_status, public_line_row
from registry.caller import Tier
from simulators.network.entities import Line
from tests.accounts.stage import AccountsStage, open_accounts_stage
from tests.stage import opened

PATH = "/v1/subscribers"


stage = opened(open_accounts_stage)


async def rows(http: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    said = await http.get(PATH, params=query)
    assert said.status_code == 200, said.text
    return said.json()["data"]


async def ids(http: httpx.AsyncClient, **query: Any) -> list[int]:
    return [row["subscriberId"] for row in await rows(http, **query)]


@pytest.mark.parametrize(
    ("q", "by"),
    [
        ("898830", "iccidPrefix"),
        ("89" + "1" * 20, "iccidPrefix"),
        ("891234567890123", "iccidPrefix"),
        ("901700000010001", "imsiPrefix"),
        ("123456", "msisdnPrefix"),
        ("47590123456789", "msisdnPrefix"),
        ("89", "text"),
        ("89123", "text"),
        ("12345", "text"),
        ("1234567890123456", "text"),
        ("89" + "1" * 21, "text"),
        ("٨٩" * 5, "text"),
        ("８９８８３０３", "text"),
        ("89883\u00b2\u00b3", "text"),
        ("8988303\n", "text"),
        ("\n901700000010001", "text"),
        ("+4759012345", "text"),
        ("anna@example.org", "text"),
    ],
)
@pytest.mark.rule("4.2.9")
def test_a_term_is_a_number_by_its_ascii_digits_alone(q: str, by: str) -> None:
    assert parse_search_term(q).by == by


@pytest.mark.rule("4.2.9", "4.2.10")
async def test_every_number_is_sent_as_its_prefix_and_q_never(stage: AccountsStage) -> None:
    line = stage.used()
    for q in (line.iccid, line.imsi, line.number):
        assert await ids(stage.managed, q=q) == [line.id]
    assert stage.calls() == [{"iccidPrefix": line.iccid}, {"imsiPrefix": line.imsi}, {"msisdnPrefix": line.number}]


async def test_the_named_filters_go_the_same_way(stage: AccountsStage) -> None:
    line = stage.used()
    filters = {"iccid": line.iccid, "imsi": line.imsi, "msisdn": f"+{line.number}", "activationCode": line.sim.activation_code}
    for name, value in filters.items():
        assert await ids(stage.managed, **{name: value}) == [line.id]
    assert [next(iter(call)) for call in stage.calls()] == ["iccidPrefix", "imsiPrefix", "msisdnPrefix", "activationCode"]


@pytest.mark.rule("4.2.11")
async def test_strangers_are_dropped_without_a_word(stage: AccountsStage) -> None:
    stranger = stage.lines(8102)[0]
    for q in (stranger.iccid, stranger.imsi, stranger.number, stranger.name or "?"):
        assert stranger.id not in await ids(stage.managed, q=q)
    stranger.sim.activation_code = "K2-STRANGER"
    assert await ids(stage.managed, activationCode="K2-STRANGER") == []
    assert await ids(stage.own, activationCode="K2-STRANGER") == [stranger.id]
    assert await ids(stage.own, q=stranger.iccid) == [stranger.id]
    mine = {line.id for line in stage.lines(8101)}
    assert set(await ids(stage.managed, q=stranger.iccid[:13])) <= mine
    assert set(await ids(stage.managed)) == mine


@pytest.mark.rule("4.2.11")
async def test_names_and_addresses_are_found_in_any_case(stage: AccountsStage) -> None:
    first, second = stage.lines(8101)[:2]
    first.name, second.email = "Straße 7 Ñandú", "Nandu.Strasse@Example.ORG"
    assert await ids(stage.managed, q="STRASSE") == [first.id, second.id]
    assert await ids(stage.managed, q="ñandÚ") == [first.id]
    assert stage.calls() == [{"accountId": 8101}] * 2


@pytest.mark.cases
@pytest.mark.parametrize(
    ("q", "reading"),
    [
        ("898830399", "q was read as the beginning of an ICCID"),
        ("901709999999999", "q was read as a whole IMSI"),
        ("999999", "q was read as the beginning of a phone number (MSISDN)"),
        ("999999999999999", "q was read as a whole IMSI"),
        ("99999", "q was read as the last digits of an ICCID or phone number, or as part of a name or email"),
        ("1234567890123456", "q was read as part of a name or email, since no number has so many digits"),
        ("+999 99-999", "q was read as part of a name or email, since it holds more than digits"),
    ],
)
@pytest.mark.parametrize("page", [{}, {"limit": 20}], ids=["all", "a page"])
async def test_a_number_that_finds_nothing_is_told_how_it_was_read(
    stage: AccountsStage, q: str, reading: str, page: dict[str, int]
) -> None:
    for line in stage.lines(8101):
        line.name = line.email = "Line"
    said = (await stage.managed.get(PATH, params={"q": q, **page})).json()
    assert (list(said), said["data"]) == (["data", "hint"], [])
    assert said["hint"].startswith(reading) and said["hint"].endswith(".")


async def test_what_the_hint_of_an_ending_says_finds_the_line(stage: AccountsStage) -> None:
    line = stage.lines(8101)[20]
    missed = (await stage.managed.get(PATH, params={"q": line.iccid[-6:]})).json()
    assert missed == {"data": [], "hint": NUMBER_SEARCH_HINTS["msisdnPrefix"]}
    assert missed["hint"].endswith(
        "An ending is found by its last 2 to 5 digits alone, and query_fleet finds beginnings and endings of any length."
    )
    assert line.id in await ids(stage.managed, q=line.iccid[-5:])
    assert line.id in await ids(stage.managed, imsi=line.imsi[:6])


async def test_only_a_number_that_finds_nothing_has_a_hint(stage: AccountsStage) -> None:
    line = stage.used()
    queries = ({"q": line.iccid}, {"q": "nobody at all"}, {"iccid": "898830399"}, {"q": line.iccid, "starting_after": str(line.id)}, {})
    for query in queries:
        said = (await stage.managed.get(PATH, params=query)).json()
        assert "hint" not in said, query


async def test_eighty_nine_is_a_name_like_any_other(stage: AccountsStage) -> None:
    line = stage.lines(8101)[0]
    line.name = "Bus 89"
    assert line.id in await ids(stage.managed, q="89")
    assert stage.calls() == [{"accountId": 8101}]


@pytest.mark.long
async def test_the_last_digits_of_a_sim_or_a_number_find_its_line(stage: AccountsStage) -> None:
    lines = stage.lines(8101)
    line = lines[20]
    for size in (2, 3, 4, 5):
        for written in (line.iccid, line.number):
            ending = written[-size:]
            wanted = [one.id for one in lines if ends(one, ending) or ending in (one.name or "") + (one.email or "")]
            assert await ids(stage.managed, q=ending) == wanted and line.id in wanted
    assert set(await ids(stage.managed, q=line.iccid[-1])) < {one.id for one in lines}  # one digit is part of a name only


def ends(line: Line, digits: str) -> bool:
    """Whether an ICCID or number that the line has, or had, ends so."""
    return any(written.endswith(digits) for written in (*(row.iccid for row in line.imsis), *(row.number for row in line.numbers)))


@pytest.mark.parametrize("q", ["286", "Line"])
async def test_an_account_that_is_not_there_is_the_connection_s_fault(stage: AccountsStage, q: str) -> None:
    lost = await stage.world.caller(Tier.ENTERPRISE, mode="managed", account=8999)
    async with stage.world.client(lost.secret) as http:
        for path in ("/v1/subscribers", f"/v1/subscribers?q={q}", "/v1/accounts", "/v1/accounts/8999/esim-status"):
            said = await http.get(path)
            assert (said.status_code, said.json()["code"]) == (409, "account_not_found"), path
            assert "connected to account 8999" in said.json()["error"] and "reseller org connect" in said.json()["hint"]


async def test_members_that_no_row_has_are_a_mistake_unless_another_is_known(stage: AccountsStage) -> None:
    said = await stage.managed.get(PATH, params={"limit": 2, "fields": "nme,numbr"})
    assert (said.status_code, said.json()["param"]) == (400, "fields")
    assert '"nme, numbr"' in said.json()["error"] and "subscriberName" in said.json()["hint"]
    assert await rows(stage.managed, limit=1, fields="nme,subscriberId") == [{"subscriberId": stage.lines(8101)[0].id}]
    fresh = stage.fresh()
    assert await rows(stage.managed, q=fresh.iccid, fields="lastUsageDate") in ([{}], [{"lastUsageDate": None}])  # known, and not there
    assert await rows(stage.managed, q="nobody at all", fields="nme") == []


async def test_a_prefix_the_network_finds_too_short_is_looked_for_here(stage: AccountsStage) -> None:
    line = stage.used()
    found = await ids(stage.managed, q=line.iccid[:12])
    assert line.id in found
    assert found == sorted(one.id for one in stage.lines(8101) if one.iccid.startswith(line.iccid[:12]))
    assert stage.calls() == [{"iccidPrefix": line.iccid[:12]}, {"accountId": 8101}]
    everywhere = await ids(stage.own, q="898830")
    assert len(everywhere) == sum(len(stage.lines(account)) for account in (8101, 8102, 8103, 8104))


@pytest.mark.long
async def test_a_search_that_is_cut_off_is_finished_in_the_account(stage: AccountsStage) -> None:
    stage.network.row_cap = 150
    prefix = stage.lines(8102)[-1].iccid[:13]
    mine = [line.id for line in stage.lines(8101) if line.iccid.startswith(prefix)]
    assert await ids(stage.managed, q=prefix) == mine


@pytest.mark.cases
@pytest.mark.parametrize("cap", [7, 20, 100])
async def test_an_account_beyond_the_networks_cap_is_read_by_parts(stage: AccountsStage, cap: int) -> None:
    stage.network.row_cap = cap
    said = await stage.managed.get(PATH)
    found = [row["subscriberId"] for row in said.json()["data"]]
    if cap > 7:
        assert found == sorted(line.id for line in stage.lines(8101))
        assert "incomplete" not in said.json()
    else:
        assert said.json()["incomplete"] is True
        assert set(found) < {line.id for line in stage.lines(8101)}
    assert len(stage.calls()) <= 200


async def test_what_cannot_be_counted_is_called_incomplete(stage: AccountsStage) -> None:
    stage.trouble("listSubscriber", has_more=True)
    said = (await stage.managed.get(PATH)).json()
    assert (said["incomplete"], len(said["data"])) == (True, len(stage.lines(8101)))


async def test_a_failing_part_fails_the_whole(stage: AccountsStage) -> None:
    stage.network.row_cap = 50
    stage.trouble("listSubscriber", has_more=True)
    stage.trouble("listSubscriber", code=7, times=None)
    said = await stage.managed.get(PATH)
    assert (said.status_code, said.json()["ocs_code"]) == (502, 7)


async def test_pages_follow_the_number_of_the_line(stage: AccountsStage) -> None:
    expected = sorted(line.id for line in stage.lines(8101))
    found: list[int] = []
    query = {"limit": 60, "fields": "subscriberId"}
    while True:
        said = await stage.managed.get(PATH, params=query)
        found += [row["subscriberId"] for row in said.json()["data"]]
        if "Link" not in said.headers:
            break
        query["starting_after"] = str(found[-1])
    assert found == expected


@pytest.mark.cases
@pytest.mark.parametrize("status", ["SUSPENDED", "Suspended", "suspended"])
async def test_the_status_that_holds_now_is_a_filter(stage: AccountsStage, status: str) -> None:
    line = stage.used()
    for other in stage.lines(8101):
        other.statuses[-1].status = "ACTIVE"
    line.statuses[-1].status = "SUSPENDED"
    assert await ids(stage.managed, status=status) == [line.id]
    line.statuses[-1].status = "END_OF_LIFE"
    assert await ids(stage.managed, status="END_OF_LIFE") == [line.id]


@pytest.mark.rule("4.2.12")
async def test_rows_lift_what_holds_now_and_hide_what_unlocks_the_card(stage: AccountsStage) -> None:
    line = stage.used()
    (row,) = await rows(stage.managed, q=line.iccid)
    assert {name: row[name] for name in ("iccid", "imsi", "msisdn", "currentStatus")} == {
        "iccid": line.iccid,
        "imsi": line.imsi,
        "msisdn": line.number,
        "currentStatus": row["status"][-1]["status"],
    }
    assert row["sim"]["activationCode"] == line.sim.activation_code
    text = (await stage.managed.get(PATH)).text
    assert not any(f'"{secret}"' in text for secret in ("pin1", "pin2", "puk1", "puk2"))
    assert line.sim.puk1 not in text


async def test_fields_choose_members(stage: AccountsStage) -> None:
    line = stage.used()
    assert await rows(stage.managed, q=line.iccid, fields="msisdn,nothing") == [{"msisdn": line.number}]
    [whole] = await rows(stage.managed, q=line.iccid)
    assert await rows(stage.managed, q=line.iccid, fields="*,activationCode") == [whole]
    closed = {name: value for name, value in whole["sim"].items() if name != "activationCode"}
    assert await rows(stage.managed, q=line.iccid, fields="*") == [{**whole, "sim": closed}]


async def test_a_default_tool_answer_is_short(stage: AccountsStage) -> None:
    defaults = list_subscribers.tool_defaults
    for line in stage.lines(8101):
        line.name = "Wolfeschlegelsteinhausenbergerdorff-Smith, Maximilian Alexander"
    found = await rows(stage.managed, limit=defaults["limit"], fields=",".join(defaults["fields"]))
    assert len(found) == 20
    assert len(orjson.dumps({"data": found})) < 6_000
    line = stage.used()
    line.name = "Anna Berg"
    row = next(row for row in found if row["iccid"] == line.iccid)
    assert sorted(row) == snapshot(["balance", "currentStatus", "iccid", "lastUsageDate", "msisdn", "subscriberName"])


MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"q": "a", "iccid": "8988303"}, "iccid"),
    ({"imsi": "901700000010001", "msisdn": "47590123"}, "imsi"),
    ({"q": "  "}, "q"),
    ({"iccid": "8988303\n"}, "iccid"),
    ({"iccid": "٨٩٨٨٣٠٣"}, "iccid"),
    ({"starting_after": "x"}, "starting_after"),
]


async def test_a_malformed_search_is_refused(stage: AccountsStage) -> None:
    for query, param in MALFORMED:
        said = await stage.managed.get(PATH, params=query)
        assert (said.status_code, said.json()["param"]) == (400, param)


async def test_a_foreign_account_is_not_found(stage: AccountsStage) -> None:
    answers = [await stage.managed.get(PATH, params={"accountId": account}) for account in (8102, 9999)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert stage.calls() == []
    assert await ids(stage.own, accountId=8102) == sorted(line.id for line in stage.lines(8102))
    assert (await stage.own.get(PATH, params={"accountId": 8201})).status_code == 404


async def test_an_own_token_lists_its_first_account_unless_it_names_another(stage: AccountsStage) -> None:
    assert await ids(stage.own) == sorted(line.id for line in stage.lines(8101))
    line = stage.lines(8103)[0]
    assert await ids(stage.own, q=line.iccid, accountId=8101) == []
    assert await ids(stage.own, q=line.iccid, accountId=8103) == [line.id]


async def test_a_managed_organisation_without_account_finds_nobody(stage: AccountsStage) -> None:
    lost = await stage.world.caller(Tier.ENTERPRISE, mode="managed", account=None)
    async with stage.world.client(lost.secret) as http:
        said = await http.get(PATH, params={"q": stage.used().iccid})
    assert said.status_code != 200 or said.json()["data"] == []


@pytest.mark.rule("4.2.12")
def test_the_row_without_an_end_holds_else_the_newest() -> None:
    old, new = (
        {"id": 1, "startDate": "2026-01-01T00:00:00", "status": "Active"},
        {"id": 2, "startDate": "2026-02-01T00:00:00", "status": "X"},
    )
    assert current_entry([new, {**old, "endDate": "2026-02-01T00:00:00"}]) is new
    ended = [{**new, "endDate": "2026-03-01T00:00:00"}, {**old, "endDate": "2026-02-01T00:00:00"}]
    assert current_entry(ended) is ended[0]
    assert current_entry([old, new]) is new
    assert current_entry([]) is None
    assert public_line_row({"subscriberId": 1}) == {"subscriberId": 1, "iccid": None, "imsi": None, "msisdn": None, "currentStatus": None}


async def listed_by_the_network(stage: AccountsStage) -> list[Any]:
    said = await stage.world.sandbox.handle(
        "POST", "/v1", "token=sandbox-7001-token", {}, orjson.dumps({"listSubscriber": {"accountId": 8101}})
    )
    return orjson.loads(said.body)["listSubscriber"]["subscriberList"]


@pytest.mark.long
async def test_ten_thousand_rows_are_a_matter_of_moments(stage: AccountsStage) -> None:
    found = await listed_by_the_network(stage)
    many: list[Any] = [{**found[number % len(found)], "subscriberId": 20_000 - number} for number in range(10_000)]
    started = thread_time()  # how busy the machine is does not count
    shown = sorted(map(public_line_row, many), key=subscriber_number)
    assert thread_time() - started < 0.5  # it takes a tenth of that
    assert [row.get("subscriberId") for row in shown[:2]] == [10_001, 10_002]


def counting(made: list[int]) -> Callable[[FrameType, str, object], None]:
    """A profiler that counts the rows that are made public."""

    def profile(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code is public_line_row.__code__:
            made[0] += 1

    return profile


@pytest.mark.parametrize("status", [{}, {"status": "ACTIVE"}], ids=["all", "active"])
async def test_only_the_rows_of_the_page_are_made_public(stage: AccountsStage, status: dict[str, str]) -> None:
    made = [0]
    sys.setprofile(counting(made))
    try:
        page = await rows(stage.managed, limit=20, fields="iccid", **status)
    finally:
        sys.setprofile(None)
    assert (len(page), made) == (20, [20])


@pytest.mark.long
@pytest.mark.parametrize(
    "query", [{}, {"fields": "iccid,currentStatus,sim"}, {"status": "ACTIVE"}, {"status": "ACTIVE", "fields": "*"}, {"q": "an"}], ids=str
)
async def test_pages_are_cut_from_the_very_bytes_of_the_whole_list(stage: AccountsStage, query: dict[str, str]) -> None:
    whole = (await stage.managed.get(PATH, params=query)).content
    expected, found = orjson.loads(whole)["data"], list[Any]()
    cursor: dict[str, str] = {}
    while True:
        said = await stage.managed.get(PATH, params={**query, "limit": "7", **cursor})
        found += said.json()["data"]
        assert said.content == orjson.dumps({"data": expected[len(found) - len(said.json()["data"]) : len(found)]})
        if "Link" not in said.headers:
            break
        cursor = {"starting_after": said.links["next"]["url"].partition("starting_after=")[2].partition("&")[0]}
    assert found == expected and len(found) > 7
    assert orjson.dumps({"data": found}) == whole


async def test_the_list_is_what_making_every_row_public_at_first_gives(stage: AccountsStage) -> None:
    shown = sorted(map(public_line_row, await listed_by_the_network(stage)), key=subscriber_number)
    assert (await stage.managed.get(PATH)).content == orjson.dumps({"data": shown})
    kept = [row for row in shown if row.get("currentStatus") == "Active"]
    assert (await stage.managed.get(PATH, params={"status": "ACTIVE"})).content == orjson.dumps({"data": kept})


def test_a_network_that_names_the_status_itself_is_believed() -> None:
    row: Any = {"subscriberId": 1, "currentStatus": "Odd", "status": [{"id": 1, "status": "Active"}]}
    assert (public_line_row(row).get("currentStatus"), current_line_status(row)) == ("Odd", "Odd")
