"""Somebody who draws from the same accounts by a system of their own, and now and then gives back what they drew."""

from random import Random

import anyio
import orjson

from tests.harness.invariants import OUTSIDER
from tests.network_facts import DELETE, DRAW
from tests.simulation.provider import ModelNetwork
from tests.simulation.tenants import OTHERS_TEMPLATE


class Outsider:
    """They know nothing of us, and we nothing of them."""

    def __init__(self, rng: Random, provider: ModelNetwork, accounts: list[int]) -> None:
        self._rng, self._provider, self._accounts = rng, provider, accounts

    async def run(self) -> None:
        """At most two eSIMs in the first minutes."""
        draw = self._rng.random
        for _ in range(int(draw() ** 2 * 3)):
            await anyio.sleep(draw() * 60)
            account = self._accounts[int(draw() * len(self._accounts))]
            made = self._call(DRAW, {"packageTemplateId": OTHERS_TEMPLATE, "accountForSubs": account}).get(DRAW)
            if made is not None and draw() < 0.3:
                await anyio.sleep(draw() * 60)
                self._call(DELETE, made["subsPackageId"])
                self._call("changeSimStatus", {"simId": made["esimId"], "newStatus": "Free"})

    def _call(self, method: str, params: object) -> dict[str, dict[str, int]]:
        return orjson.loads(self._provider.perform(orjson.dumps({method: params}), "v1", by=OUTSIDER))
