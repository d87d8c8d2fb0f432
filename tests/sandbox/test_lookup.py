"""A large fleet is looked through once: what names a line, what an account has, and what the clock brings are kept."""

from _collections_abc import dict_values
from collections import Counter
from random import Random

import pytest

from simulators.network.entities import Line
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.simulation import run_world_to
from simulators.network.world import ALL_IDENTIFIERS, CURRENT_IDENTIFIERS, World
from tests.sandbox.network import Network

ACCOUNTS = (8101, 8102, 8103)


class Fleet(dict[int, Line]):
    """Lines that count how often all of them are looked through."""

    looks = 0

    def values(self) -> "dict_values[int, Line]":
        self.looks += 1
        return super().values()


async def change(network: Network, random: Random) -> int:
    """One change of what lines are looked up by; how it ended."""
    line = random.choice([line for line in network.world.lines.values() if line.reseller_id == 7001])
    source, target = line.account_id, random.choice([account for account in ACCOUNTS if account != line.account_id])
    number = {"phoneNumber": str(4790000000 + random.randrange(9)), "subscriber": {"iccid": line.iccid}}
    span = {"rangeType": "ICCID", "rangeStart": line.iccid, "rangeEnd": line.iccid, "srcAccountId": source, "destAccount": target}
    method, params = random.choice(
        [
            ("affectSubscriberRealPhoneNumber", number),
            ("affectSubscriberFakePhoneNumber", {"iccid": line.iccid}),
            ("changeSimStatus", {"simId": line.sim.id, "newStatus": random.choice(("Free", "Affected"))}),
            ("moveSubscriberRangeToAccount", span),
        ]
    )
    return await network.code(method, params)


def check(world: World) -> None:
    """Every look-up says what looking at each line of the fleet says."""
    lines = list(world.lines.values())
    for account in ACCOUNTS:
        own = [line for line in lines if line.account_id == account]
        assert list(world.lookup.of_account(world.lines, account)) == own
        assert world.lookup.first_free(world.lines, account) is next((line for line in own if line.sim.status == "FREE"), None)
        held = Counter((line.sim.sponsor_id, line.sim.status) for line in own if line.sim.esim)
        assert +world.lookup.esims(world.lines, account) == held
    for line in lines:
        for kind in ("iccid", "msisdn", "sim"):
            [value] = CURRENT_IDENTIFIERS[kind](line)
            assert world.lookup.line(world.lines, kind, value) is line
        prefix = line.number[:9]
        found = [other for other in lines if any(value.startswith(prefix) for value in ALL_IDENTIFIERS["msisdnPrefix"](other))]
        assert world.lookup.with_prefix(world.lines, "msisdnPrefix", prefix) == found
    assert world.lookup.line(world.lines, "msisdn", "1") is None


@pytest.mark.cases
@pytest.mark.parametrize("seed", range(3))
async def test_look_ups_follow_what_numbers_sims_and_accounts_become(seed: int) -> None:
    network, random = Network(), Random(seed)
    check(network.world)
    ends = Counter([await change(network, random) for _ in range(60)])
    assert ends[0] > 40
    check(network.world)


async def test_a_call_of_the_next_second_looks_at_no_line_that_it_does_not_name() -> None:
    network = Network(following=True)
    fleet = network.world.lines = Fleet(network.world.lines)
    network.sandbox = SimulatedNetwork(network.world, wall=network.wall, following=True)  # nobody holds its world, as far as it knows
    line = network.active()
    asked = {
        "getSingleSubscriber": {"iccid": line.iccid},
        "listSubscriber": {"iccidPrefix": line.iccid},
        "esimStatusPerAccount": {"accountId": 8101},
        "getSimProviderStatus": line.sim.id,
        "affectPackageToSubscriber": {"packageTemplateId": 55031, "accountForSubs": 8101, "validityPeriod": 7},
    }
    for looks in (True, False):
        before = fleet.looks
        for method, params in asked.items():
            network.wall.seconds += 1
            assert await network.code(method, params) == 0, method
        assert (fleet.looks > before) is looks


async def test_lines_that_are_changed_by_hand_are_found_as_they_are() -> None:
    network = Network()
    free = [line for line in network.world.lines_of(8101) if line.sim.status == "FREE"]
    package = {"packageTemplateId": 55010, "accountForSubs": 8101}
    assert (await network.get("affectPackageToSubscriber", package))["iccid"] == free[0].iccid
    for line in free[1:]:
        line.account_id = 8102
    assert await network.code("affectPackageToSubscriber", package) == 6
    free[1].account_id = 8101
    assert (await network.get("affectPackageToSubscriber", package))["iccid"] == free[1].iccid


async def test_half_days_of_life_are_looked_up_once_however_often_the_clock_is_moved() -> None:
    world = Network().world
    fleet = world.lines = Fleet(world.lines)
    begin = world.now
    for seconds in range(1, 3600, 10):
        run_world_to(world, begin + seconds)
    assert fleet.looks == 1
