"""The control API: time, use, places, notifications, and the log of calls."""

import pytest

from tests.sandbox.network import FJORD, NETWORK_LINES, NETWORK_NOON, TELENOR, Network

HOOK = "https://hook.test/ocs"


async def test_the_state_is_the_world_in_numbers() -> None:
    state = await Network().control("GET", "state")
    assert state["now"] == "2026-09-21T12:00:00"
    assert (state["unix"], state["clock"], state["lines"]) == (NETWORK_NOON, "frozen", NETWORK_LINES)
    assert len(state["accounts"]) == 6


async def test_time_goes_forward_by_steps_and_to_moments_and_never_back() -> None:
    network = Network()
    assert (await network.control("POST", "advance", {"seconds": 30}))["unix"] == NETWORK_NOON + 30
    assert (await network.control("POST", "advance", {"days": 2}))["now"] == "2026-09-23T12:00:30"
    assert (await network.control("POST", "clock", {"now": "2026-09-24T00:00:00"}))["now"] == "2026-09-24T00:00:00"
    assert (await network.control("POST", "clock", {"now": NETWORK_NOON + 3 * 86_400}))["unix"] == NETWORK_NOON + 3 * 86_400
    back = await network.control("POST", "clock", {"now": "2026-01-01T00:00:00"}, status=400)
    assert "only runs forward" in back["error"]["message"]


async def test_a_frozen_world_stands_still_and_a_following_one_keeps_its_distance() -> None:
    for following, seconds in [(False, 0), (True, 90)]:
        network = Network(following=following)
        await network.get("getResellerInfo", {})
        network.wall.seconds += 90
        await network.get("getResellerInfo", {})
        assert network.world.now == NETWORK_NOON + seconds
    await network.control("POST", "advance", {"days": 1})
    network.wall.seconds += 10
    await network.get("getResellerInfo", {})
    assert network.world.now == NETWORK_NOON + 90 + 86_400 + 10


async def test_use_is_recorded_counted_and_told() -> None:
    network = Network()
    await network.control("POST", "push-targets", {"resellerId": 7001, "usageUrl": HOOK, "thresholds": [50]})
    line = network.line(lambda line: line.sim.status == "FREE")
    esim = await network.get("affectPackageToSubscriber", {"packageTemplateId": 55010, "accountForSubs": 8101})
    use = {"iccid": line.iccid, "usageType": 33, "quantity": 600 << 20, "networkId": TELENOR}
    records = (await network.control("POST", "usage", use))["records"]
    assert [(record["quantity"], record["packageId"]) for record in records] == [(600 << 20, esim["subsPackageId"])]
    package = (await network.get("listSubscriberPrepaidPackages", {"subscriberId": line.id}))["packages"][0]
    assert (package["useddatabyte"], package["tsactivationutc"]) == (600 << 20, "2026-09-21T12:00:00")
    day = {"start": "2026-09-21", "end": "2026-09-21"}
    usage = await network.get("subscriberUsageOverPeriod", {"subscriber": {"subscriberId": line.id}, "period": day})
    assert usage["total"]["quantityPerType"] == {"33": 600 << 20}
    sent: list[tuple[str, bytes]] = []

    async def post(url: str, body: bytes) -> int:
        assert (await network.control("GET", "state"))["pushesWaiting"] == 1  # until it is answered
        sent.append((url, body))
        return 200

    assert await network.sandbox.deliver(post) == 1
    assert await network.sandbox.deliver(post) == 0
    assert sent[0][0] == HOOK
    assert b'"thresholdPercentage":"50"' in sent[0][1]
    assert (await network.control("GET", "state"))["pushesWaiting"] == 0
    told = await network.control("GET", "pushes")
    assert (told["waiting"], told["sent"][0]["status"]) == ([], 200)


async def test_use_that_the_network_refuses_is_a_409_with_its_code() -> None:
    network = Network()
    use = {"iccid": network.ended().iccid, "usageType": 33, "quantity": 1, "networkId": TELENOR}
    refusal = await network.control("POST", "usage", use, status=409)
    assert refusal["error"]["code"] == 14


@pytest.mark.parametrize(
    ("name", "value", "status", "word"),
    [
        ("usage", {"iccid": "89"}, 400, "networkId"),
        ("usage", {"iccid": "89", "usageType": 2, "quantity": 1, "networkId": 1}, 400, "usageType"),
        ("usage", {"iccid": "89", "usageType": 33, "quantity": 1, "networkId": 1}, 409, "no line"),
        ("attach", {"iccid": "89", "networkId": 9999}, 409, "no network"),
        ("advance", {}, 400, "seconds"),
        ("advance", {"seconds": 1, "days": 1}, 400, "seconds"),
        ("clock", {"now": "tomorrow"}, 400, "Unix seconds"),
        ("push-targets", {"resellerId": 7001, "usageUrl": "ftp://x"}, 400, "http://"),
        ("push-targets", {"resellerId": 7001, "thresholds": [101]}, 400, "thresholds"),
        ("provider-status", {"iccid": "89", "state": "Enable"}, 400, "status"),
    ],
)
async def test_bad_requests_are_told_what_is_wrong(name: str, value: object, status: int, word: str) -> None:
    refusal = await Network().control("POST", name, value, status=status)
    assert word in refusal["error"]["message"]


async def test_a_provider_status_is_listed_first_and_told() -> None:
    network = Network()
    line = network.active()
    await network.control("POST", "push-targets", {"resellerId": 7001, "esimUrl": HOOK})
    await network.control("POST", "provider-status", {"iccid": line.iccid, "status": "Enable", "profileType": "P2"})
    newest = (await network.get("getSimProviderStatus", line.sim.id))[0]
    assert newest == {
        "simId": line.sim.id,
        "status": "Enable",
        "start": "2026-09-21T12:00:00",
        "profileType": "P2",
        "statusModification": "Executed-Success",
    }
    waiting = (await network.control("GET", "pushes"))["waiting"]
    assert waiting[0]["body"] == {"iccid": line.iccid, "imsi": line.imsi, "eid": line.sim.eid, "subsId": line.id, "status": "Enable"}


async def test_a_line_that_attaches_is_told_to_who_wants_it() -> None:
    network = Network()
    line = network.active()
    await network.control("POST", "push-targets", {"resellerId": 7001, "locationUrl": HOOK})
    await network.control("POST", "attach", {"iccid": line.iccid, "networkId": TELENOR})
    body = (await network.control("GET", "pushes"))["waiting"][0]["body"]["locationUpdate"]
    assert (body["iccid"], body["mcc"], body["eventTimeUtc"]) == (line.iccid, 242, "2026-09-21T12:00:00")


async def test_networks_are_listed_by_country() -> None:
    network = Network()
    rows = (await network.control("GET", "networks", query="iso2=NO"))["networks"]
    assert [row["operatorName"] for row in rows] == ["Telenor", "Telia ", "Ice"]
    assert "iso2 must be one of" in (await network.control("GET", "networks", query="iso2=xx", status=400))["error"]["message"]


async def test_calls_are_logged_without_tokens() -> None:
    network = Network()
    await network.get("listSponsor", 7001)
    await network.code("listSponsor", {})
    await network.code("getResellerInfo", {}, token="wrong")
    await network.get("listSubscriberPrepaidPackages", {"subscriberId": network.active().id}, version="v2")
    log = await network.control("GET", "calls")
    assert [(call["number"], call["method"], call["version"], call["code"]) for call in log["calls"]] == [
        (1, "listSponsor", "v1", 0),
        (2, "listSponsor", "v1", 2),
        (3, "listSubscriberPrepaidPackages", "v2", 0),
    ]
    assert log["calls"][0] == {
        "number": 1,
        "at": "2026-09-21T12:00:00",
        "method": "listSponsor",
        "version": "v1",
        "payload": 7001,
        "code": 0,
        "faults": [],
    }
    assert FJORD not in str(log)
    narrowed = await network.control("GET", "calls", query="method=listSponsor&limit=1")
    assert ([call["number"] for call in narrowed["calls"]], narrowed["total"]) == ([2], 2)


async def test_an_unknown_path_lists_the_known_ones_and_a_wrong_verb_the_right_one() -> None:
    network = Network()
    missing = await network.control("GET", "nothing", status=404)
    assert "POST /control/advance" in missing["error"]["message"]
    wrong = await network.control("GET", "advance", status=405)
    assert "POST" in wrong["error"]["message"]
    assert "GET /control/state" in (await network.control("GET", ""))["paths"]
    broken = await network.sandbox.handle("POST", "/control/clock", body=b"{")
    assert broken.status == 400
