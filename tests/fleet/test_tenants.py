"""Two organisations on two accounts of one token, and what stays of a fleet when its connection ends."""

from typing import Any

import httpx
import pytest

from simulators.network import charging
from simulators.network.entities import DATA, Line
from storage.engine.sql import Connection
from storage.fleet_search import FleetBounds, FleetFilter, FleetPageAsked, count_lines, look_for_lines, waiting_lines
from storage.upstream_connections import set_connection
from tests.fleet.stage import ReadModelStage
from tests.fleet.truth import current_fleets, rows_of
from tests.network_facts import ACCOUNT, OWN_TOKEN, SIBLING

ALL_FIELDS = "iccid,subscriber_id"
MINUTE = 60


async def iccids_seen(stage: ReadModelStage, http: httpx.AsyncClient, **params: Any) -> set[str]:
    """What pages of three show."""
    seen, after = set[str](), dict[str, str]()
    while True:
        said = await http.get("/v1/fleet/lines", params={"limit": 3, **params, **after})
        assert said.status_code == 200, said.text
        seen |= {row["iccid"] for row in said.json()["data"]}
        link = said.links.get("next")
        if link is None:
            return seen
        after = {"starting_after": httpx.URL(link["url"]).params["starting_after"]}


def own_iccids(stage: ReadModelStage, account: int) -> set[str]:
    return {line.iccid for line in stage.network.lines_of(account)}


def use(stage: ReadModelStage, line: Line, quantity: int) -> None:
    charging.charge_usage(stage.network, line, DATA, quantity, sorted(stage.network.networks)[0], int(stage.clock.now()))


def move(stage: ReadModelStage, line: Line, account: int) -> None:
    line.account_id = account
    stage.network.lookup.moved()


@pytest.mark.long
async def test_two_accounts_of_one_token_never_see_each_other(both: ReadModelStage) -> None:
    other, http = await both.beside(account=SIBLING)
    whole, all_http = await both.beside(token=OWN_TOKEN)
    del other, whole
    for asks, accounts in ((both.http, {ACCOUNT}), (http, {SIBLING}), (all_http, {8101, 8102, 8103, 8104})):
        mine = {iccid for account in accounts for iccid in own_iccids(both, account)}
        assert await both.count(http=asks) == len(mine)
        assert await iccids_seen(both, asks) == mine
        assert await iccids_seen(both, asks, sort="-last_used") == mine
        assert await iccids_seen(both, asks, text="89883037") == {each for each in mine if each.startswith("89883037")}
        assert (await both.status(asks))["lines"] == len(mine)
    stranger = both.line(account=SIBLING)
    assert await both.count(text=stranger.iccid) == 0
    assert (await both.query(accountId=SIBLING, answers=404))["code"] == "not_found"


@pytest.mark.long
async def test_a_line_that_moves_is_hidden_where_it_was_and_begins_anew_where_it_comes_to(both: ReadModelStage) -> None:
    other, http = await both.beside(account=SIBLING)
    assert (await both.count(), await both.count(http=http)) == (13, 6)
    await both.sync()
    line = both.line()
    line.persona = line.persona._replace(active_share=0.0)
    use(both, line, 111_000_000)
    both.clock.advance(30 * MINUTE)
    move(both, line, SIBLING)
    use(both, line, 7_000)
    both.clock.advance(6 * MINUTE)
    await both.sync()
    assert (await both.count(text=line.iccid), await both.count(http=http, text=line.iccid)) == (0, 1)
    both.clock.advance(9 * 3600)
    await both.sync()
    theirs = await both.stored(other.organisation)
    assert [row.quantity for row in theirs.usage[line.id]] == [7_000]
    assert await both.differences(other.organisation, frozenset({SIBLING})) == []


async def test_a_line_that_comes_back_has_no_past(stage: ReadModelStage) -> None:
    await stage.count()
    await stage.sync()
    line, fleet = stage.line(), (await stage.stored()).id

    def remember(connection: Connection) -> None:
        month = f"insert into fleet_month values ({fleet}, {line.id}, 739000, 242, 1, 33, 5, 0, 0, 0)"
        connection.driver.execute(month, {})
        names = "fleet, subscriber_id, cause, place, since, money, evidence, opened, seen, closed"
        connection.driver.execute(f"insert into fleet_problem ({names}) values ({fleet}, {line.id}, 'abroad', 0, 1, 1, '', 1, 1, 0)", {})

    await stage.world.store.write(remember)
    move(stage, line, SIBLING)
    stage.clock.advance(6 * MINUTE)
    await stage.sync()
    assert (await stage.count(text=line.iccid), await stage.count(problem="abroad")) == (0, 0)
    move(stage, line, ACCOUNT)
    stage.clock.advance(6 * MINUTE)
    await stage.sync()
    assert (await stage.count(text=line.iccid), await stage.count(problem="abroad")) == (1, 0)

    def left(connection: Connection) -> list[int]:
        return [
            len(rows_of(connection, f"select * from {table} fleet = :fleet", fleet=fleet))
            for table in ("fleet_month where", "fleet_problem where cause = 'abroad' and")
        ]

    assert await stage.world.store.read(left) == [0, 0]
    assert await stage.differences() == []


@pytest.mark.long
async def test_what_was_connected_before_is_hidden_in_the_commit_that_ends_it(both: ReadModelStage) -> None:
    await both.count()
    await both.sync()
    former = (await both.stored()).id
    organisation = both.who.organisation
    await both.world.store.write(set_connection, organisation=organisation, mode=None, account_id=None, own_token=None)
    assert (await both.http.get("/v1/fleet/lines")).json()["code"] == "org_not_connected"
    # Whoever asked before and is answered now, by the number of the fleet that has ended:
    read, bounds, now = both.world.store.read, FleetBounds(), both.clock.now()
    asked = FleetPageAsked(FleetFilter(), "iccid", False, None, 100)
    assert (await read(count_lines, fleet=former, wanted=FleetFilter(), bounds=bounds, now=now)).lines == 0
    assert (await read(look_for_lines, fleet=former, bounds=bounds, asked=asked, now=now)).rows == []
    assert (await read(waiting_lines, fleet=former, bounds=bounds, now=now)).lines == 0
    await both.world.store.write(set_connection, organisation=organisation, mode="managed", account_id=ACCOUNT, own_token=None)
    both.trouble("*", code=100, times=None)
    both.clock.advance(MINUTE + 1)
    said = await both.query()
    assert (said["data"], said["as_of"]) == ([], None)
    both.world.sandbox.faults.clear()
    both.clock.advance(10)
    assert await both.count() == 13
    assert await read(current_fleets, organisation=organisation) != [former]


@pytest.mark.long
async def test_a_fleet_that_a_late_call_makes_of_a_former_connection_is_never_read(stage: ReadModelStage) -> None:
    """A call that began before the account was replaced opens the fleet of the former account again, empty."""
    await stage.count()
    organisation = stage.who.organisation
    await stage.world.store.write(set_connection, organisation=organisation, mode="managed", account_id=SIBLING, own_token=None)
    await stage.count()
    (current,) = await stage.world.store.read(current_fleets, organisation=organisation)

    def reopen(connection: Connection) -> None:
        connection.driver.execute("update fleet_sync set ended = 0, due = 0 where ended > 0", {})
        connection.driver.execute("delete from fleet_line where fleet <> " + str(current), {})

    await stage.world.store.write(reopen)
    stage.clock.advance(6 * MINUTE)
    await stage.sync()
    assert await stage.world.store.read(current_fleets, organisation=organisation) == [current]


async def test_an_organisation_that_is_read_by_two_tokens_at_once_has_one_fleet(stage: ReadModelStage) -> None:
    _, http = await stage.beside(token=OWN_TOKEN)
    assert await stage.count(http=http) == 25
    line = stage.line()
    said = await http.put(f"/v1/subscribers/{line.iccid}/status", json={"status": "SUSPENDED"})
    assert said.status_code == 200
    assert await stage.count(http=http, status="SUSPENDED") == 1


@pytest.mark.long
async def test_a_line_that_moves_among_own_accounts_keeps_what_is_known(stage: ReadModelStage) -> None:
    who, http = await stage.beside(token=OWN_TOKEN)
    await stage.count(http=http)
    await stage.sync()
    line = stage.line()
    before = (await stage.stored(who.organisation)).usage[line.id]
    first = line.iccid
    body = {"rangeType": "ICCID", "rangeStart": first, "rangeEnd": first, "destAccount": SIBLING}
    said = await http.post(f"/v1/accounts/{ACCOUNT}/move-subscribers", json=body)
    assert said.status_code == 200, said.text
    assert await stage.count(http=http, accountId=SIBLING, text=line.iccid) == 1
    assert await stage.count(http=http, accountId=ACCOUNT, text=line.iccid) == 0
    stage.clock.advance(6 * MINUTE)
    await stage.sync()
    assert (await stage.stored(who.organisation)).usage[line.id] == before
    assert await stage.differences(who.organisation, frozenset({8101, 8102, 8103, 8104})) == []
