"""The simulated network of a stage: one line of account 8101 that has one of everything, and others that are somebody else's."""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from clients.http import Outbound
from clients.ocs.client import OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from simulators.network import packages
from simulators.network.entities import Line
from simulators.network.methods.templates import create_prepaid_package_template
from simulators.network.methods.zones import create_location_zone
from simulators.network.seed.build import build_world
from simulators.network.seed.resellers import SIMULATED_TOKENS
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from simulators.transport import SimulatorTransport
from tests.copies import Original
from tests.network_facts import ACCOUNT, SIBLING
from tests.world import SettableClock

FJORD_TOKEN, ALPINE_TOKEN = SIMULATED_TOKENS
FOREIGN_ACCOUNT = 8201
ONE_TIME = "Nordic 1GB 30d"
MONTHLY = "Nordic monthly 3GB"
DOCUMENTED_ICCID = "8988303700000100286"
DOCUMENTED_PACKAGES = (3300871, 3300873, 3300872)
"""What examples call the line and its packages: whoever reads them literally meets something."""
UNKNOWN_ICCID = "8988303700009999999"
UNKNOWN_ID = 99_999_999
FOREIGN_LIST = 21
ZONE = {"networkProfileId": 412, "locationZoneName": "Ours", "tadigList": ["NORAA", "DNKAA"]}
SETTINGS = OcsSettings(url="http://ocs.sandbox.invalid/ocs-custo/main/v1", backoff_seconds=0.0)
"""Without the wait before a read asks again after the traffic limit: it is tested where it is real."""
CHANGING = ("lines", "packages", "series", "templates", "zones", "accounts", "resellers", "transactions", "pushes", "counters")
"""What calls change; prices and networks are the same for all."""
READS = ("get", "list", "hlrGet", "esimStatus", "subscriberUsage", "subscriberNetworkEvents")


class Own(NamedTuple):
    """Numbers of what the stage's organisation has in the network, and of what it has not."""

    iccid: str
    subscriber: int
    imsi: str
    number: str
    running: int
    """A one-time package in use."""
    waiting: int
    """A one-time package that waits for its first use."""
    monthly: int
    """A package of a series."""
    one_time_template: int
    monthly_template: int
    zone: int
    """A zone that the organisation made through us."""
    template: int
    """A template that it made so."""
    sibling: str
    """A line of another account of the same reseller."""
    sibling_package: int
    foreign: str
    """A line of another reseller."""


@cache
def staged(start: int) -> tuple[Network, int, Original[dict[str, Any]]]:
    """A small network with the line of the stage, before anything else happens there; and what of it may change."""
    network = build_world(1, start, history_days=3, lines=40)
    line = next(line for line in network.lines_of(ACCOUNT) if line.status == "ACTIVE" and line.sighting and line.cdrs)
    packages.remove_all_packages(network, line)
    one_time, monthly = template(network, ONE_TIME), template(network, MONTHLY)
    packages.assign_package(network, line, network.templates[one_time], period=None, validity_days=30)
    packages.assign_package(network, line, network.templates[one_time], period=None, validity_days=None)
    packages.assign_package_series(network, line, network.templates[monthly], start=None, at_first_use=False)
    line.balance, line.bitrate, line.throttled = 5_000_000, "UNLIMITED", False
    network.steering[FOREIGN_LIST] = network.steering[17]._replace(id=FOREIGN_LIST, reseller_id=ALPINE_TOKEN.reseller_id)
    for other in network.lines.values():
        if other.imsis[-1].iccid == DOCUMENTED_ICCID:
            other.imsis[-1].iccid = line.imsis[-1].iccid
    line.imsis[-1].iccid = DOCUMENTED_ICCID
    for package, number in zip(line.packages, DOCUMENTED_PACKAGES, strict=True):
        network.packages[number] = network.packages.pop(package.id)
        package.id = number
    return network, line.id, Original({name: getattr(network, name) for name in CHANGING})


def template(network: Network, name: str) -> int:
    return next(found.id for found in network.templates.values() if (found.name, found.reseller_id) == (name, FJORD_TOKEN.reseller_id))


def new_network(start: int, place: int) -> tuple[Network, Own]:
    """A network of its own for each stage; what organisations make there has numbers that no other stage's network uses."""
    original, line_id, changing = staged(start)
    network = replace(original, **changing.copy())
    network.forget()  # what it shares with the original otherwise
    # Nor has an eSIM that it draws from stock an ICCID that another stage's network has: all stages have one ledger.
    for number, free in enumerate(stock(network)):
        free.imsis[-1].iccid = f"89883037{place:06d}{number:05d}"
    network.counters["zone"] += 100 * place
    network.counters["template"] += 100 * place
    create_location_zone.perform(network, FJORD_TOKEN, dict(ZONE))
    zone = network.counters["zone"]
    fields = {"prepaidpackagetemplatename": "Ours", "resellerid": FJORD_TOKEN.reseller_id, "locationzoneid": zone, "perioddays": 30}
    create_prepaid_package_template.perform(
        network, FJORD_TOKEN, {**fields, "databyte": 1 << 30, "throttlingActive": False, "recurring": False}
    )
    return network, own(network, network.lines[line_id], zone)


def stock(network: Network) -> list[Line]:
    return [line for line in network.lines_of(ACCOUNT) if line.sim.status == "FREE"]


def drawn_esim(network: Network) -> tuple[Line, int]:
    """The last eSIM of the stock as a draw and its user leave it: with a package, and installed. The package's number, too.

    It was no Inactive line before, which a roll-back would have to make Inactive again.
    """
    line = stock(network)[-1]
    line.statuses[-1].status = "PENDING"
    package = packages.assign_package(network, line, network.templates[template(network, ONE_TIME)], period=None, validity_days=30)
    network.add_provider_status(line, "Installed", "P1")
    return line, package.id


def own(network: Network, line: Line, zone: int) -> Own:
    running, waiting, monthly = (package.id for package in line.packages)
    sibling = next(other for other in network.lines_of(SIBLING) if other.packages)
    return Own(
        line.iccid,
        line.id,
        line.imsi,
        line.number,
        running,
        waiting,
        monthly,
        template(network, ONE_TIME),
        template(network, MONTHLY),
        zone,
        network.counters["template"],
        sibling.iccid,
        sibling.packages[0].id,
        next(iter(network.lines_of(FOREIGN_ACCOUNT))).iccid,
    )


def network_way(network: Network, clock: SettableClock) -> tuple[SimulatedNetwork, OcsPool]:
    """The network at work, and the way to it."""
    sandbox = SimulatedNetwork(network, wall=clock.now, following=True, sleep=too_long)
    return sandbox, OcsPool(Outbound(ocs_limits(SETTINGS), transport=lambda: SimulatorTransport(sandbox)), SETTINGS, clock)


async def too_long(seconds: float) -> None:
    """A delay of the network is longer than anybody waits."""
    raise TimeoutError(f"{seconds} s are too long")


def writes(methods: list[str]) -> list[str]:
    return [method for method in methods if not method.startswith(READS)]
