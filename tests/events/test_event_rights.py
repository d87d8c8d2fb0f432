"""Who tries to read events that are not theirs: by endpoints, deliveries, cursors and streams."""

import pytest

from operations.event_types.endpoint import ORGANISATION_ENDPOINT_DISABLED
from operations.event_types.esim import ESIM_ISSUED
from registry.caller import Restrictions, Role
from storage.event_log import sweep_event_log
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.events.log_office import STREAM, LogOffice, types_of
from tests.events.test_endpoint_choice import bodies

ENDPOINTS = "/v1/connectivity/webhook_endpoints"


async def test_a_member_who_takes_an_endpoint_over_gets_nothing_that_waited_for_an_admin(on_both: LogOffice) -> None:
    member = await on_both.world.caller(role=Role.MEMBER, organisation=on_both.organisation)
    async with receiver(status_answer("500 Oops")) as admins, receiver(status_answer("200 OK")) as members:
        endpoint, _ = await on_both.office.endpoint(admins.url())
        assert (await on_both.choose(endpoint, types=["*"])).status_code == 200
        secret = await on_both.write(ORGANISATION_ENDPOINT_DISABLED)
        promised = await on_both.write(ESIM_ISSUED)
        await on_both.deliver()
        async with on_both.world.client(member.secret) as http:
            moved = await on_both.choose(endpoint, http, types=None, url=members.url())
            assert moved.status_code == 200, moved.text
            assert (await http.post(f"{ENDPOINTS}/{endpoint}/replay")).status_code == 200
        await on_both.deliver()
        assert [body["id"] for body in bodies(members.requests)] == [promised]
        assert (await on_both.office.states(secret))[0][1][-1] == "not_readable"


async def test_who_changes_the_tags_of_an_endpoint_gives_it_no_rights(office: LogOffice) -> None:
    member = await office.world.caller(role=Role.MEMBER, organisation=office.organisation)
    async with receiver(status_answer("200 OK")) as members, office.world.client(member.secret) as http:
        endpoint, _ = await office.office.endpoint(members.url())
        assert (await office.choose(endpoint, http, types=["organisation.*", "esim.*"])).status_code == 200
        assert (await office.choose(endpoint, tags=None)).status_code == 200  # by an admin
        assert (await office.choose(endpoint, url=None)).status_code == 200
        assert (await office.choose(endpoint, description="Theirs")).status_code == 200
        await office.write(ORGANISATION_ENDPOINT_DISABLED)
        promised = await office.write(ESIM_ISSUED)
        await office.deliver()
        assert [body["id"] for body in bodies(members.requests)] == [promised]


async def test_a_delivery_whose_event_is_kept_no_more_ends_and_holds_up_none_behind_it(on_both: LogOffice) -> None:
    clock = on_both.world.clock
    async with receiver(status_answer("500 Oops")) as broken, receiver(status_answer("200 OK")) as there:
        endpoint, _ = await on_both.office.endpoint(broken.url())
        assert (await on_both.choose(endpoint, types=["*"])).status_code == 200
        for _ in range(5):
            await on_both.write(ORGANISATION_ENDPOINT_DISABLED)
        await on_both.deliver()
        clock.advance(91 * 86_400)
        await on_both.world.store.write(sweep_event_log, before=clock.now() - 90 * 86_400, most=10)
        assert (await on_both.choose(endpoint, url=there.url())).status_code == 200
        await on_both.http.post(f"{ENDPOINTS}/{endpoint}/replay")
        new = await on_both.write(ORGANISATION_ENDPOINT_DISABLED)
        for _ in range(3):
            await on_both.deliver()
        assert [body["id"] for body in bodies(there.requests)] == [new]
        listed = (await on_both.http.get("/v1/connectivity/deliveries", params={"endpoint": endpoint})).json()["data"]
        assert {each["state"] for each in listed} <= {"delivered", "failed"}, listed


@pytest.mark.parametrize("change", [{"types": None}, {}])
async def test_a_key_that_reads_no_esims_takes_over_no_endpoint_told_of_them(office: LogOffice, change: dict[str, object]) -> None:
    owner = office.office.caller
    _, secret = await office.world.key(owner.person, office.organisation, restrictions=Restrictions(toolsets=("storefronts", "events")))
    async with receiver(status_answer("200 OK")) as mine, receiver(status_answer("200 OK")) as theirs:
        endpoint, _ = await office.office.endpoint(mine.url())
        async with office.world.client(secret) as http:
            taken = await office.choose(endpoint, http, url=theirs.url(), **change)
        assert (taken.status_code, taken.json()["code"]) == (403, "credential_restricted")
        event = await office.office.emit()
        await office.deliver()
        assert ([body["id"] for body in bodies(mine.requests)], theirs.requests) == ([event], [])
        async with office.world.client(secret) as http:
            chosen = await office.choose(endpoint, http, url=theirs.url(), types=["order.*"])
        assert chosen.status_code == 200, chosen.text


async def test_somebody_who_is_no_admin_any_more_gets_what_members_get(on_both: LogOffice) -> None:
    world = on_both.world
    admin = await world.caller(organisation=on_both.organisation)
    async with receiver(status_answer("200 OK")) as there, world.client(admin.secret) as http:
        endpoint, _ = await on_both.office.endpoint(there.url())
        assert (await on_both.choose(endpoint, http, types=["*"])).status_code == 200
        await on_both.write(ORGANISATION_ENDPOINT_DISABLED)
        await on_both.place()
        await world.join(admin.person, on_both.organisation, Role.MEMBER)
        later = [await on_both.write(ORGANISATION_ENDPOINT_DISABLED), await on_both.write(ESIM_ISSUED)]
        await on_both.deliver()
        assert [body["id"] for body in bodies(there.requests)] == later[1:]
        seen = await on_both.stream(http)
        assert types_of(seen) == ["esim.issued"]
        for path in ("", "/deliveries"):
            assert (await http.get(f"/v1/connectivity/events/{later[0]}{path}")).status_code == 404
        assert (await http.post(f"/v1/connectivity/events/{later[0]}/retry")).status_code == 404
        listed = (await http.get("/v1/connectivity/deliveries")).json()["data"]
        assert {each["type"] for each in listed} == {"esim.issued"}


async def test_nothing_of_another_organisation_is_read_or_sent_by_any_id(on_both: LogOffice) -> None:
    world, stranger = on_both.world, await on_both.world.caller()
    async with receiver(status_answer("200 OK")) as there, world.client(stranger.secret) as http:
        endpoint, _ = await on_both.office.endpoint(there.url())
        assert (await on_both.choose(endpoint, types=["*"])).status_code == 200
        event = await on_both.write(ESIM_ISSUED)
        await on_both.deliver()
        delivery = (await on_both.http.get("/v1/connectivity/deliveries")).json()["data"][0]["id"]
        own = await http.post(ENDPOINTS, json={"url": there.url()})
        mine = own.json()["id"]
        refused = [
            await http.get(f"/v1/connectivity/events/{event}"),
            await http.get(f"/v1/connectivity/events/{event}/deliveries"),
            await http.post(f"/v1/connectivity/events/{event}/retry"),
            await http.post(f"{ENDPOINTS}/{endpoint}/replay"),
            await http.post(f"{ENDPOINTS}/{mine}/replay", json={"delivery": delivery}),
            await http.post(f"{ENDPOINTS}/{endpoint}/test", json={"type": "esim.issued"}),
            await http.post(f"{ENDPOINTS}/{endpoint}/enable"),
            await http.post(f"{ENDPOINTS}/{endpoint}/rotate"),
            await on_both.choose(endpoint, http, types=["*"]),
        ]
        assert [answer.status_code for answer in refused] == [404] * len(refused)
        lists = [
            await http.get("/v1/connectivity/events", params={"types": "*", "starting_after": f"{event}z"}),
            await http.get("/v1/connectivity/deliveries", params={"endpoint": endpoint}),
            await http.get("/v1/connectivity/deliveries", params={"types": "*"}),
        ]
        assert [answer.json()["data"] for answer in lists] == [[], [], []]
        assert (await http.get("/v1/connectivity/deliveries", params={"starting_after": delivery})).status_code == 400
        assert types_of(await on_both.stream(http)) == []
        ahead = await http.get(STREAM, params={"follow": "false"}, headers={"last-event-id": "1"})
        assert ahead.status_code == 400
        await on_both.deliver()
        assert len(there.requests) == 1
