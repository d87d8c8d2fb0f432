"""Deliveries of many events in one list."""

import pytest

from operations.event_types.endpoint import ORGANISATION_ENDPOINT_DISABLED
from operations.event_types.esim import ESIM_FIRST_ATTACH, ESIM_ISSUED
from registry.caller import Role
from storage.deliveries import QUEUE_DELIVERY
from storage.engine.sql import Connection
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.events.log_office import LogOffice

PATH = "/v1/connectivity/deliveries"


async def listed(office: LogOffice, **query: object) -> list[tuple[str, str, str]]:
    """(event, endpoint, state) of every delivery that fits, page after page of two."""
    found: list[tuple[str, str, str]] = []
    after: dict[str, str] = {}
    while True:
        answer = await office.http.get(PATH, params={"limit": 2, **query, **after})  # pyright: ignore[reportArgumentType]  # texts and numbers
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += [(each["event"], each["endpoint"], each["state"]) for each in page["data"]]
        if not page["has_more"]:
            return found
        after = {"starting_after": page["data"][-1]["id"]}


@pytest.mark.long
async def test_deliveries_are_listed_by_endpoint_state_type_and_time(on_both: LogOffice) -> None:
    async with receiver(status_answer("200 OK")) as good, receiver(status_answer("410 Gone")) as gone:
        well, _ = await on_both.office.endpoint(good.url())
        ill, _ = await on_both.office.endpoint(gone.url())
        for endpoint in (well, ill):
            assert (await on_both.choose(endpoint, types=["*"])).status_code == 200
        first = await on_both.write(ESIM_ISSUED)
        await on_both.deliver()
        on_both.world.clock.advance(60)
        then = int(on_both.world.clock.now())
        second = await on_both.write(ESIM_FIRST_ATTACH)
        third = await on_both.write(ORGANISATION_ENDPOINT_DISABLED)
        await on_both.deliver()
        told = next(each["data"]["id"] for each in await on_both.stream(types="organisation.*") if "id" in each)
        all_of_them = [(third, well, "delivered"), (second, well, "delivered"), (told, well, "delivered"), (first, well, "delivered")]
        failed = [(first, ill, "failed")]
        assert sorted(await listed(on_both)) == sorted(all_of_them + failed)
        assert await listed(on_both, endpoint=well) == all_of_them
        assert await listed(on_both, state="failed") == failed
        assert await listed(on_both, endpoint=ill, state="failed", types="esim.*") == failed
        assert await listed(on_both, endpoint=well, state="failed") == await listed(on_both, state="failed", types="organisation.*") == []
        assert await listed(on_both, state="delivered", types="esim.*") == [all_of_them[1], all_of_them[3]]
        assert await listed(on_both, endpoint=well, state="delivered", types="organisation.*") == [all_of_them[0], all_of_them[2]]
        assert await listed(on_both, since=then) == all_of_them[:2]
        assert sorted(await listed(on_both, until=then)) == sorted(all_of_them[2:] + failed)
        assert await listed(on_both, endpoint="we_nobody") == []
        strange = await on_both.http.get(PATH, params={"starting_after": "dlv_1"})
        assert (strange.status_code, strange.json()["param"]) == (400, "starting_after")
        backwards = await on_both.http.get(PATH, params={"since": 9, "until": 9})
        assert (backwards.status_code, backwards.json()["param"]) == (400, "since")


async def test_a_member_sees_no_deliveries_of_what_admins_alone_may_read(office: LogOffice) -> None:
    member = await office.world.caller(role=Role.MEMBER, organisation=office.organisation)
    endpoint, _ = await office.office.endpoint("https://127.0.0.1:1/hook")
    await office.choose(endpoint, types=["*"])
    open_to_all = await office.write(ESIM_ISSUED)
    hidden = await office.write(ORGANISATION_ENDPOINT_DISABLED)
    await office.place()
    async with office.world.client(member.secret) as http:
        shown = (await http.get(PATH)).json()["data"]
        assert [each["event"] for each in shown] == [open_to_all]
        assert (await http.get(PATH, params={"types": "organisation.*"})).json()["data"] == []
        assert (await http.get(f"/v1/connectivity/events/{hidden}")).status_code == 404
        types = (await http.get("/v1/connectivity/event_types", params={"schemas": "true"})).json()["data"]
    assert {each["admins_only"] for each in types} == {False}
    issued = next(each for each in types if each["type"] == "esim.issued")
    assert (issued["since"], sorted(issued["schema"]["required"])) == ("1.0.0", ["iccid", "intent", "plan"])
    stranger = await office.world.caller()
    async with office.world.client(stranger.secret) as http:
        assert (await http.get(PATH)).json()["data"] == []


async def test_what_a_program_of_before_queued_without_a_type_is_listed_by_the_type_of_its_event(on_both: LogOffice) -> None:
    endpoint, _ = await on_both.office.endpoint("https://127.0.0.1:1/hook")
    event = await on_both.office.emit()
    old = {
        "id": on_both.world.ids.new("dlv_"),
        "event_id": event,
        "endpoint_id": "we_old",
        "organisation": on_both.organisation,
        "due_ms": 1,
        "type": None,
    }
    await on_both.world.store.write(Connection.run, QUEUE_DELIVERY, **old)
    await on_both.place()
    both = [(event, "we_old", "pending"), (event, endpoint, "pending")]
    assert await listed(on_both) == both == await listed(on_both, types="esim.issued") == await listed(on_both, types="*", state="pending")
    assert await listed(on_both, types="esim.first_attach") == []
    assert await listed(on_both, endpoint="we_old", types="esim.*") == both[:1]
    member = await on_both.world.caller(role=Role.MEMBER, organisation=on_both.organisation)
    async with on_both.world.client(member.secret) as http:
        assert [each["type"] for each in (await http.get(PATH)).json()["data"]] == ["esim.issued"] * 2
