"""The same seed and the same calls give the same bytes: answers, refusals and notifications."""

import orjson
import pytest

from simulators.server import WireAnswer
from tests.sandbox.cases import READ_CASES, WRITE_CASES
from tests.sandbox.network import TELENOR, Network


async def play(network: Network) -> list[WireAnswer | tuple[str, bytes]]:
    """Some eighty calls of every method, with time and use between them; all answers and notifications as bytes."""
    seen: list[WireAnswer | tuple[str, bytes]] = []

    async def post(url: str, body: bytes) -> int:
        seen.append((url, body))
        return 200

    async def control(name: str, value: object) -> None:
        seen.append(await network.sandbox.handle("POST", f"/control/{name}", "", {}, orjson.dumps(value)))

    for kind in ("usageUrl", "esimUrl", "locationUrl"):
        await control("push-targets", {"resellerId": 7001, kind: f"https://hook.test/{kind}", "thresholds": [1, 50, 100]})
    for number, case in enumerate([*WRITE_CASES, *READ_CASES]):
        if number % 10 == 0:
            await control("advance", {"seconds": 7_201})
            await control("usage", {"iccid": network.active().iccid, "usageType": 33, "quantity": 40 << 20, "networkId": TELENOR})
        seen.append(await network.send(orjson.dumps({case.method: case.params(network)}), version=case.version))
        await network.sandbox.deliver(post)
    await control("advance", {"days": 2})
    await network.sandbox.deliver(post)
    return seen


@pytest.mark.long
async def test_two_networks_of_one_seed_say_the_same_to_the_byte() -> None:
    first, second = await play(Network()), await play(Network())
    assert first == second
    assert sum(isinstance(one, WireAnswer) for one in first) > 60
    told = [one for one in first if not isinstance(one, WireAnswer)]
    assert {url.rpartition("/")[2] for url, _ in told} == {"usageUrl", "esimUrl", "locationUrl"}
