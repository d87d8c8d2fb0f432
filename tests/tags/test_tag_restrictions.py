"""A key that is restricted to tags sees and changes lines that have one of them, and no others; and nobody widens it by a tag."""

from typing import Any

import anyio
import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Role, Tier
from registry.operation import Auth
from registry.restrictions import names_one_line
from tests.contract.stage import NEVER, ServiceHouse
from tests.fleet.stage import ReadModelStage
from tests.fleet.test_restricted import oracles
from tests.network_facts import ACCOUNT, SIBLING
from tests.tags.tagging import change_tag, counts, refusals, tag, tags_shown, untag

REFUSED = "credential_restricted"


async def member(stage: ReadModelStage) -> httpx.AsyncClient:
    """A client of somebody of the same organisation who is no admin."""
    who = await stage.world.caller(Tier.ENTERPRISE, Role.MEMBER, organisation=stage.who.organisation)
    return await stage.clients.enter_async_context(stage.world.client(who.secret))


@pytest.mark.long
async def test_a_key_for_a_tag_learns_of_no_other_line(both: ReadModelStage) -> None:
    mine = [both.line(0), both.line(3)]
    await tag(both, "trucks", mine)
    await tag(both, "boats", [both.line(1), mine[0]])
    http = await both.restricted(tags=("trucks",))
    inside = {line.iccid for line in mine}
    await oracles(both, http, inside, {line.iccid for line in both.network.lines_of(ACCOUNT)} - inside)
    assert await counts(both, http) == {"boats": 1, "trucks": 2}
    assert await both.iccids(http=http, tag="boats") == [mine[0].iccid]
    refused = await both.query(http=http, accountId=ACCOUNT, answers=403)
    assert refused["code"] == REFUSED
    either = await both.restricted(tags=("trucks", "boats"))
    assert await both.count(http=either) == 3
    none = await both.restricted(tags=("never-given",))
    assert (await both.count(http=none), await counts(both, none)) == (0, {})


@pytest.mark.long
async def test_problems_countries_and_sums_are_of_the_tagged_lines_alone(both: ReadModelStage) -> None:
    await both.pass_time(86_400)
    await both.count()
    await both.sync()
    every = (await both.http.get("/v1/fleet/problems")).json()["data"]
    assert every["lines_with_problems"] > 1, every
    chosen = every["lines"][0]["iccid"]
    await tag(both, "chosen", iccids=[chosen])
    http = await both.restricted(tags=("chosen",))
    said = (await http.get("/v1/fleet/problems")).json()
    assert {line["iccid"] for line in said["data"]["lines"]} == {chosen}
    assert (said["data"]["lines_with_problems"], said["of"]) == (1, 1)
    country = await http.post("/v1/intelligence/detect-country-entry", json={})
    assert country.status_code == 200 and country.json()["of"] <= 1, country.text


async def test_a_tagged_line_is_used_and_any_other_is_refused_at_every_door(stage: ReadModelStage) -> None:
    mine, other, foreign = stage.line(0), stage.line(1), stage.line(account=SIBLING)
    await tag(stage, "trucks", [mine])
    http = await stage.restricted(tags=("trucks",))
    assert (await http.get(f"/v1/subscribers/{mine.iccid}")).status_code == 200
    note = {"note": "seen"}
    assert (await http.post(f"/v1/subscribers/{mine.iccid}/notes", json=note)).status_code == 201
    before = len(stage.calls())
    for line in (other, foreign):
        for said in (
            await http.get(f"/v1/subscribers/{line.iccid}"),
            await http.post(f"/v1/subscribers/{line.iccid}/notes", json=note),
            await http.get(f"/v1/subscribers/{line.iccid}/notes"),
            await http.put(f"/v1/subscribers/{line.iccid}/status", json={"status": "SUSPENDED"}),
        ):
            assert (said.status_code, said.json()["code"]) == (403, REFUSED), said.text
    assert len(stage.calls()) == before
    await untag(stage, "trucks", [mine])
    assert (await http.get(f"/v1/subscribers/{mine.iccid}")).status_code == 403


@pytest.mark.long
async def test_a_key_for_a_tag_gives_it_to_no_other_line_and_takes_it_from_none(both: ReadModelStage) -> None:
    mine, other = both.line(0), both.line(1)
    await tag(both, "trucks", [mine])
    http = await both.restricted(tags=("trucks",))
    selections: list[dict[str, Any]] = [{"iccids": [other.iccid]}, {"iccids": [mine.iccid]}, {"query": {"status": "ACTIVE"}}]
    for path in ("/v1/tags/trucks/lines", "/v1/tags/trucks/lines/remove"):
        for given in (*selections, {"tagged": "trucks"}):
            assert (await change_tag(both, path, given, http, 403))["code"] == REFUSED
    said = await tag(both, "seen", [mine, other], http=http)
    assert (said["tagged"], refusals(said)) == (1, {"not_yours": 1})
    assert (await tag(both, "more", http=http, query={"status": "ACTIVE"}))["tagged"] == 1
    await tag(both, "wide", [mine, other])
    assert (await tag(both, "narrow", http=http, tagged="wide"))["tagged"] == 1
    assert (await untag(both, "wide", http=http, tagged="wide"))["untagged"] == 1
    assert await tags_shown(both, tag="wide") == {other.iccid: ["wide"]}
    assert await counts(both) == {"more": 1, "narrow": 1, "seen": 1, "trucks": 1, "wide": 1}


@pytest.mark.parametrize("bounds", ["iccids", "account_ids"])
async def test_a_key_for_lines_or_accounts_tags_only_those(stage: ReadModelStage, bounds: str) -> None:
    mine, other = stage.line(0), stage.line(1)
    held: dict[str, Any] = {"iccids": (mine.iccid,)} if bounds == "iccids" else {"account_ids": (SIBLING,)}
    http = await stage.restricted(**held)
    said = await tag(stage, "mine", [mine, other], http=http)
    inside = 1 if bounds == "iccids" else 0
    assert (said["tagged"], refusals(said)) == (inside, {"not_yours": 2 - inside})
    assert (await tag(stage, "all", http=http, query={"status": "ACTIVE"}))["tagged"] == inside
    assert await counts(stage, http) == ({"all": 1, "mine": 1} if inside else {})
    refused = await tag(stage, "all", http=http, query={"accountId": ACCOUNT}, answers=403)
    assert refused["code"] == REFUSED


@pytest.mark.long
async def test_a_tag_that_a_live_key_names_is_set_and_removed_by_admins_without_restrictions_alone(both: ReadModelStage) -> None:
    line = both.line()
    colleague = await member(both)
    await tag(both, "trucks", [line], http=colleague)
    made = await both.http.post("/v1/api-keys", json={"name": "trucks only", "restrictions": {"tags": ["trucks", "vans"]}})
    assert made.status_code == 201, made.text
    counted = await both.restricted(calls_per_day=100)
    for change in (tag, untag):
        for name in ("trucks", "vans"):
            assert (await change(both, name, [line], http=colleague, answers=403))["code"] == "role_required"
            assert (await change(both, name, [line], http=counted, answers=403))["code"] == REFUSED
    assert (await tag(both, "vans", [line]))["tagged"] == 1
    rows = (await both.http.get("/v1/tags")).json()["data"]
    assert {row["tag"]: row["guarded"] for row in rows} == {"trucks": True, "vans": True}
    assert (await tag(both, "free", [line], http=colleague))["tagged"] == 1
    await both.http.delete(f"/v1/api-keys/{made.json()['id']}")
    assert (await untag(both, "trucks", [line], http=colleague))["untagged"] == 1


async def test_a_key_that_has_expired_guards_nothing(stage: ReadModelStage) -> None:
    colleague = await member(stage)
    asked = {"name": "a day", "seconds_until_expiration": 86_400, "restrictions": {"tags": ["trucks"]}}
    assert (await stage.http.post("/v1/api-keys", json=asked)).status_code == 201
    assert (await tag(stage, "trucks", [stage.line()], http=colleague, answers=403))["code"] == "role_required"
    await stage.pass_time(86_401)
    assert (await tag(stage, "trucks", [stage.line()], http=colleague))["tagged"] == 1


async def test_a_key_made_with_a_key_for_tags_asks_for_no_other(stage: ReadModelStage) -> None:
    await tag(stage, "trucks", [stage.line(0)])
    await tag(stage, "boats", [stage.line(1)])
    http = await stage.restricted(tags=("trucks",))
    refused = await http.post("/v1/api-keys", json={"name": "wider", "restrictions": {"tags": ["trucks", "boats"]}})
    assert (refused.status_code, refused.json()["code"]) == (403, REFUSED)


@pytest.mark.long
async def test_a_key_is_made_before_or_after_a_member_sets_its_tag_and_never_between(both: ReadModelStage) -> None:
    colleague, line = await member(both), both.line()
    await both.count()
    for number in range(4):
        name, said = f"race{number}", list[int]()

        async def set_tag(name: str = name, said: list[int] = said) -> None:
            said.append((await colleague.post(f"/v1/tags/{name}/lines", json={"iccids": [line.iccid]})).status_code)

        async def make_key(name: str = name) -> None:
            made = await both.http.post("/v1/api-keys", json={"name": name, "restrictions": {"tags": [name]}})
            assert made.status_code == 201

        async with anyio.create_task_group() as group:
            group.start_soon(make_key)
            group.start_soon(set_tag)
        (status,) = said
        assert status in (200, 403)
        assert await both.count(tag=name) == (1 if status == 200 else 0)
        assert (await tag(both, name, [line], http=colleague, answers=403))["code"] == "role_required"


async def test_every_operation_but_those_that_hold_themselves_to_bounds_refuses_a_line_without_the_tag(house: ServiceHouse) -> None:
    stage = await house.stage(tier=Tier.ENTERPRISE)
    restrictions = Restrictions(tags=("never-given",))
    _, secret = await house.world.key(stage.who.person, stage.who.organisation, restrictions=restrictions)
    answered, looked, asked = dict[str, tuple[int, str | None]](), 0, stage.asked()
    for operation in CATALOGUE.operations.values():
        if operation.auth is not Auth.BEARER or operation.bounded or operation.id in NEVER:
            continue
        looked += names_one_line(operation)
        example = operation.examples[0].input
        said = await house.http(operation, secret, stage.fitted(operation, example) if names_one_line(operation) else dict(example))
        code = said.body.get("code") if isinstance(said.body, dict) else None
        if (said.status, code) != (403, REFUSED):
            answered[operation.id] = (said.status, code)
    assert answered == {}
    assert looked > 30
    assert stage.asked() == asked
