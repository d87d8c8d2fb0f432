"""Attacks by an operator who shares a reseller's token with others, and by whoever finds the address of the notifications."""

from typing import Any

import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from registry.ports import SharedSecrets
from simulators.network.entities import Line
from tests.bridge.pushing import PUSH_SECRET, PUSHES, place, push_signed, push_status, remembered
from tests.clients.ocs.sources import CLIENT_READS
from tests.contract.stage import request_of
from tests.faults.inputs import Inputs
from tests.faults.rows import ROWS, CallRow
from tests.network_facts import INTERNAL
from tests.stage import caller_client, opened
from tests.world import World, open_world

SECRETS = SharedSecrets(internal=INTERNAL, bridge=PUSH_SECRET)
LINES = [row for row in ROWS if "{iccid}" in CATALOGUE.operations[row.operation].path]


world = opened(open_world, CATALOGUE, faultless=True, limits=Limits(burst_enabled=False), secrets=SECRETS)
http = caller_client(Tier.ENTERPRISE, mode="managed", account=8101)


async def fitted(world: World, row: CallRow) -> tuple[dict[str, Any], Line]:
    """The documented input about a line of the account beside, which has all that the operation asks for."""
    network = await world.network()
    inputs = Inputs(network)
    given = inputs.fitted(row)
    stranger = next(line for line in network.lines_of(8102) if line.status == "ACTIVE" and line.sighting is not None)
    return {**given, "iccid": stranger.iccid}, stranger


async def test_what_belongs_to_a_neighbour_on_the_same_token_is_not_found_and_costs_one_look(world: World, http: httpx.AsyncClient) -> None:
    for number, row in enumerate(LINES):
        given, stranger = await fitted(world, row)
        before, seen = repr(stranger), len(world.sandbox.calls)
        foreign = await http.send(request_of(http, CATALOGUE.operations[row.operation], given, f"f{number}"))
        assert [call.method for call in world.sandbox.calls[seen:]] == ["getSingleSubscriber"], row.name
        nowhere = {**given, "iccid": "8988303700009999999"}
        unknown = await http.send(request_of(http, CATALOGUE.operations[row.operation], nowhere, f"u{number}"))
        assert (foreign.status_code, unknown.status_code) == (404, 404), row.name
        bodies = [{**answer.json(), "request_id": ""} for answer in (foreign, unknown)]
        assert bodies[0] == bodies[1] and bodies[0]["param"] == "iccid"
        assert repr(stranger) == before
    for path in ("/v1/accounts/8102/esim-status", "/v1/accounts/9999/esim-status", "/v1/subscribers?accountId=8102"):
        assert (await http.get(path)).status_code == 404
    assert not [call.method for call in world.sandbox.calls if call.method not in CLIENT_READS]


async def test_a_package_and_a_template_of_somebody_else_are_not_found(world: World, http: httpx.AsyncClient) -> None:
    network = await world.network()
    inputs = Inputs(network)
    mine, theirs = inputs.line("mine"), next(line for line in network.lines_of(8102) if line.packages)
    package, template = theirs.packages[0].id, next(each.id for each in network.templates.values() if each.reseller_id == 7002)
    line = f"/v1/subscribers/{mine.iccid}/packages"
    answers = [
        await http.put(f"{line}/{package}/status", json={"status": "INACTIVE"}),
        await http.delete(f"{line}/{package}"),
        await http.post(line, json={"packageTemplateId": template}),
        await http.put(f"/v1/package-templates/{template}/core", json={"name": "Taken"}),
    ]
    assert [answer.status_code for answer in answers] == [404] * 4
    assert not [call.method for call in world.sandbox.calls if call.method not in CLIENT_READS]


async def test_a_search_never_shows_a_neighbour_and_never_sends_what_was_typed(world: World, http: httpx.AsyncClient) -> None:
    network = await world.network()
    mine = {line.id for line in network.lines_of(8101)}
    stranger = next(iter(network.lines_of(8102)))
    known = (stranger.iccid, stranger.iccid[:6], stranger.imsi, stranger.number, stranger.name or "", stranger.email or "x@y")
    for term in ("89", "8", *known):
        rows = (await http.get("/v1/subscribers", params={"q": term})).json()["data"]
        assert {row["subscriberId"] for row in rows} <= mine, term
    for call in world.sandbox.calls:
        assert call.method != "listSubscriber" or "q" not in str(call.payload).replace("'", " ").split()


@pytest.mark.parametrize(
    "term", ["٨٩٨٨٣٠٣٧", "８９８８３０", "²³⁴⁵⁶⁷⁸", "898830\n", "89" + "1" * 21, "8988303７", "९०९०९०", "89883037000\u200b"]
)
async def test_digits_that_are_not_ascii_are_no_number(world: World, http: httpx.AsyncClient, term: str) -> None:
    answer = await http.get("/v1/subscribers", params={"q": term})
    assert (answer.status_code, answer.json().get("data", [])) in ((200, []), (400, []))
    sent = [call.payload for call in world.sandbox.calls if call.method == "listSubscriber"]
    assert all(isinstance(payload, dict) and set(payload) == {"accountId"} for payload in sent), sent


async def test_a_forged_or_repeated_push_changes_nothing_and_asks_nothing(world: World) -> None:
    network = await world.network()
    balances = {line.id: line.balance for line in network.lines.values()}
    line = next(iter(network.lines_of(8101)))
    async with world.client() as stranger:
        forged = [
            await stranger.post(PUSHES, json=push_status("Enable", line.iccid)),
            await stranger.post(PUSHES, json=push_status("Enable", line.iccid), params={"token": "guess"}),
            await stranger.post(PUSHES, json=place(line.iccid), headers={"Authorization": f"Bearer {PUSH_SECRET}"}),
            await stranger.post(PUSHES, json=place(line.iccid), params={"token": INTERNAL}),
        ]
        assert [answer.status_code for answer in forged] == [401] * 4
        assert await remembered(world) == 0
        unknown = await push_signed(stranger, world, place("8988303700009999999"), "msg_1")
        known = await push_signed(stranger, world, place(line.iccid), "msg_2")
        again = await push_signed(stranger, world, place(line.iccid), "msg_2")
    assert unknown.status_code == known.status_code == again.status_code == 200
    assert unknown.content == known.content == again.content  # no oracle
    assert await remembered(world) == 2
    # Whose line it is, once for each push that was believed: a read, and nothing that moves money.
    assert [call.method for call in world.sandbox.calls] == ["getSingleSubscriber"] * 2
    assert {line.id: line.balance for line in network.lines.values()} == balances
