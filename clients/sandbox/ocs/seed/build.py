"""The whole simulated network at its start, history included."""

from clients.sandbox.ocs.entities import DAY
from clients.sandbox.ocs.seed import history
from clients.sandbox.ocs.seed.fleet import add_fleet
from clients.sandbox.ocs.seed.geography import countries
from clients.sandbox.ocs.seed.lists import destination_lists, steering_lists
from clients.sandbox.ocs.seed.networks import networks
from clients.sandbox.ocs.seed.resellers import accounts, resellers
from clients.sandbox.ocs.seed.sponsors import SPONSORED, profiles, sponsors
from clients.sandbox.ocs.seed.tariffs import FIRST_RULE, tariffs
from clients.sandbox.ocs.seed.templates import templates
from clients.sandbox.ocs.seed.tokens import TOKENS
from clients.sandbox.ocs.seed.voip import voip_tariffs
from clients.sandbox.ocs.seed.zones import zones
from clients.sandbox.ocs.state import World

PRICES_AGE = 420 * DAY
"""How long before the start the price lists began."""
FIRST_IDS = {
    "line": 910_001,
    "sim": 760_001,
    "package": 3_300_001,
    "series": 6_001,
    "rule": FIRST_RULE,
    "row": 5_000_001,
    "status": 5_500_001,
    "session": 1,
}
"""Where `World.next_id` begins for each kind; "row" and "status" number the rows of histories. "zone" and "template" follow the seed's."""


def build(seed: int, start: int, *, history_days: int = 90, lines: int = 400) -> World:
    """A world whose clock stands at `start` (Unix seconds) after `history_days` of life. The same arguments give the same world."""
    world = without_lines(seed, start)
    first = start - history_days * DAY
    history.run(world, add_fleet(world, lines, first, start), first, start)
    return world


def without_lines(seed: int, start: int) -> World:
    """The world before it has customers."""
    world = World(seed, start, counters={kind: first - 1 for kind, first in FIRST_IDS.items()})
    world.countries, world.networks = countries(), networks()
    world.sponsors, world.sponsored = sponsors(), dict(SPONSORED)
    world.resellers, world.accounts = resellers(), accounts()
    world.tokens = {token.value: token for token in TOKENS}
    add_catalogue(world, start)
    return world


def add_catalogue(world: World, start: int) -> None:
    """Zones, lists, prices and templates."""
    priced = (start - PRICES_AGE) // DAY * DAY
    world.profiles = profiles(world.seed, world.networks)
    world.zones = zones(world.networks, world.profiles)
    world.steering, world.destinations = steering_lists(world.networks), destination_lists()
    world.tariffs = tariffs(world.seed, priced, world.countries, world.networks, lambda: world.next_id("rule"))
    world.voip_tariffs = voip_tariffs(priced)
    world.templates = templates(world.zones, world.profiles)
    world.counters["zone"], world.counters["template"] = max(world.zones), max(world.templates)
