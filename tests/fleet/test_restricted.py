"""What a credential for some lines or accounts learns of the others: nothing, whatever it asks."""

from typing import Any, get_args

import httpx
import pytest

from operations.intelligence.fleet.query_fleet import SortWord
from tests.fleet.stage import LINES, ReadModelStage
from tests.network_facts import ACCOUNT, OWN_TOKEN, SIBLING


async def pages(http: httpx.AsyncClient, **params: Any) -> list[str]:
    """The ICCIDs of pages of a few lines each, in order."""
    seen, after = list[str](), dict[str, str]()
    while True:
        said = await http.get(LINES, params={"limit": 4, **params, **after})
        assert said.status_code == 200, said.text
        seen += [row["iccid"] for row in said.json()["data"]]
        link = said.links.get("next")
        if link is None:
            return seen
        after = {"starting_after": httpx.URL(link["url"]).params["starting_after"]}


async def oracles(stage: ReadModelStage, http: httpx.AsyncClient, inside: set[str], outside: set[str]) -> None:
    """Every way to ask about a line outside."""
    assert await stage.count(http=http) == len(inside)
    for sort in get_args(SortWord):
        assert set(await pages(http, sort=sort)) == inside, sort
    for line in [line for line in stage.network.lines.values() if line.iccid in outside][:6]:
        texts = [line.iccid, line.iccid[:12], line.iccid[-6:], line.imsi, line.number, *([line.name] if line.name else [])]
        for text in texts:
            assert not {*await stage.iccids(http=http, text=text)} & outside, text
        exact = {"status": line.status, "accountId": line.account_id} if line.account_id in (ACCOUNT, SIBLING) else {}
        for name, value in exact.items():
            said = await http.get(LINES, params={name: value, "countOnly": "true", "text": line.iccid})
            assert said.status_code in (403, 404) or said.json()["count"] == 0
    everything = await stage.status(http)
    assert everything["lines"] == len(inside)
    assert sum(everything["waiting"].values()) <= len(inside)


@pytest.mark.long
async def test_a_key_for_some_lines_learns_of_no_other(both: ReadModelStage) -> None:
    mine = [both.line(0), both.line(3)]
    http = await both.restricted(iccids=tuple(line.iccid for line in mine))
    inside = {line.iccid for line in mine}
    await both.status(http)
    await both.count()
    await oracles(both, http, inside, {line.iccid for line in both.network.lines_of(ACCOUNT)} - inside)
    both.clock.advance(3 * 86_400)
    assert sum((await both.status(http))["waiting"].values()) <= 2 < sum((await both.status())["waiting"].values()) + 3


@pytest.mark.long
async def test_a_key_for_one_account_learns_of_no_other(stage: ReadModelStage) -> None:
    who, _ = await stage.beside(token=OWN_TOKEN)
    stage.who = who
    http = await stage.restricted(account_ids=(SIBLING,))
    inside = {line.iccid for line in stage.network.lines_of(SIBLING)}
    await oracles(stage, http, inside, {line.iccid for account in (ACCOUNT, 8103, 8104) for line in stage.network.lines_of(account)})
    refused = await stage.query(http=http, accountId=ACCOUNT, answers=403)
    assert refused["code"] == "credential_restricted"
    assert await stage.count(http=http, accountId=SIBLING) == len(inside)


async def test_a_key_for_some_lines_is_told_to_name_no_account(stage: ReadModelStage) -> None:
    http = await stage.restricted(iccids=(stage.line().iccid,))
    for account in (ACCOUNT, SIBLING):
        refused = await stage.query(http=http, accountId=account, answers=403)
        assert (refused["code"], refused["error"]) == (
            "credential_restricted",
            "This API key is restricted to named lines, so it asks for no account: leave accountId out and it sees its lines",
        )


@pytest.mark.long
async def test_fresh_reads_no_line_outside(stage: ReadModelStage) -> None:
    mine = stage.line()
    http = await stage.restricted(iccids=(mine.iccid,))
    await stage.count()
    await stage.sync()
    before = len(stage.calls())
    assert await stage.iccids(http=http, fresh=True, limit=20) == [mine.iccid]
    asked = [call for call in stage.world.sandbox.calls[before:] if call.method == "getSingleSubscriber"]
    assert [call.payload["subscriberId"] for call in asked] == [mine.id]  # pyright: ignore[reportIndexIssue]  # an object


@pytest.mark.parametrize("bounds", [{"iccids": True}, {"account_ids": True}])
async def test_what_others_have_just_changed_is_not_read_for_a_key_that_sees_it_not(stage: ReadModelStage, bounds: dict[str, bool]) -> None:
    mine, other = stage.line(0), stage.line(1)
    given = {"iccids": (mine.iccid,)} if "iccids" in bounds else {"account_ids": (SIBLING,)}
    http = await stage.restricted(**given)
    await stage.count()
    await stage.sync()
    await stage.write("PUT", f"/v1/subscribers/{other.iccid}/status", status="SUSPENDED")
    before = len(stage.calls())
    said = await stage.query(http=http, countOnly=True, status="SUSPENDED")
    assert (said["count"], said["incomplete"], len(stage.calls())) == (0, None, before)
