"""Who tries to read events that are not theirs: by endpoints, deliveries, cursors and streams."""

from operations.event_types.endpoint import ORGANISATION_ENDPOINT_DISABLED
from operations.event_types.esim import ESIM_ISSUED
from registry.caller import Role
from storage.event_log import sweep_event_log
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.events.log_office import LogOffice
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
