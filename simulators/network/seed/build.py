"""The whole simulated network at its start, history included."""

from simulators.network.entities import DAY_SECONDS
from simulators.network.seed import history
from simulators.network.seed.catalogue import make_destination_lists, make_steering_lists, make_templates, make_zones
from simulators.network.seed.fleet import add_fleet
from simulators.network.seed.geography import make_countries, make_networks
from simulators.network.seed.resellers import (
    RESELLER_SPONSORS,
    SIMULATED_TOKENS,
    make_accounts,
    make_profiles,
    make_resellers,
    make_sponsors,
)
from simulators.network.seed.tariffs import FIRST_RULE_ID, make_tariffs, make_voip_tariffs
from simulators.network.world import World

PRICE_LIST_AGE = 420 * DAY_SECONDS
"""How long before the start the price lists began."""
FIRST_IDS = {
    "line": 910_001,
    "sim": 760_001,
    "package": 3_300_001,
    "series": 6_001,
    "rule": FIRST_RULE_ID,
    "row": 5_000_001,
    "status": 5_500_001,
    "session": 1,
}
"""Where `World.next_id` begins for each kind; "row" and "status" number the rows of histories. "zone" and "template" follow the seed's."""


def build_world(seed: int, start: int, *, history_days: int = 90, lines: int = 400) -> World:
    """A world whose clock stands at `start` (Unix seconds) after `history_days` of life. The same arguments give the same world."""
    world = world_without_lines(seed, start)
    first = start - history_days * DAY_SECONDS
    history.run_history(world, add_fleet(world, lines, first, start), first, start)
    return world


def world_without_lines(seed: int, start: int) -> World:
    """The world before it has customers."""
    world = World(seed, start, counters={kind: first - 1 for kind, first in FIRST_IDS.items()})
    world.countries, world.networks = make_countries(), make_networks()
    world.sponsors, world.sponsored = make_sponsors(), dict(RESELLER_SPONSORS)
    world.resellers, world.accounts = make_resellers(), make_accounts()
    world.tokens = {token.value: token for token in SIMULATED_TOKENS}
    priced = (start - PRICE_LIST_AGE) // DAY_SECONDS * DAY_SECONDS
    world.profiles = make_profiles(world.seed, world.networks)
    world.zones = make_zones(world.networks, world.profiles)
    world.steering, world.destinations = make_steering_lists(world.networks), make_destination_lists()
    world.tariffs = make_tariffs(world.seed, priced, world.countries, world.networks, lambda: world.next_id("rule"))
    world.voip_tariffs = make_voip_tariffs(priced)
    world.templates = make_templates(world.zones, world.profiles)
    world.counters["zone"], world.counters["template"] = max(world.zones), max(world.templates)
    return world
