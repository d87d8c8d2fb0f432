"""Which networks the zones of a reseller hold: what a code stands for, whether a zone covers it, what else there is in its country."""

import re
from bisect import insort
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Annotated, NamedTuple, NotRequired

import anyio.lowlevel
from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.zones import DetailedLocationZone, MccMnc, Operator
from operations.caches.usage import PlaceUse
from operations.upstream.connection import Upstream
from operations.upstream.resellers import ZONE_LIST, read_reseller_list
from operations.upstream.signalling import NetworkCode, network_code
from operations.upstream.usage import USAGE_TYPE_DATA
from operations.vocabulary import network_country, upstream_text

NETWORK_COUNTRY = re.compile(r"[A-Z]{2}", re.ASCII)


class KnownNetwork(NamedTuple):
    """A network of some zone. `country` is upper case."""

    id: int
    country: str
    operator: str
    mcc: str
    mnc: str


class CoverageMap:
    """Zones and networks, indexed."""

    def __init__(self) -> None:
        self._by_code: dict[NetworkCode, KnownNetwork] = {}
        self._networks: dict[int, KnownNetwork] = {}
        self._codes: dict[int, Sequence[MccMnc]] = {}
        """What the wire first said of the codes of each network: most zones say the same again."""
        self._zones: dict[int, frozenset[int]] = {}
        self._of_country: dict[str, list[KnownNetwork]] = {}

    def add(self, zone: DetailedLocationZone) -> None:
        operators = zone.get("operators", [])
        for operator in operators:
            self._know(operator)
        self._zones[zone.get("zoneId", 0)] = frozenset(operator.get("networkId", 0) for operator in operators)

    def _know(self, operator: Operator) -> None:
        """Stores the network under all its codes; a network without a readable code is no place where a line can be seen."""
        id, codes = operator.get("networkId", 0), operator.get("mccMncs", [])
        if self._codes.setdefault(id, codes) == codes and id in self._networks:
            return
        pairs = [pair for pair in codes if network_code(pair.get("mcc"), pair.get("mnc")) is not None]
        if not pairs:
            return
        country = (operator.get("countryIso2") or "").upper()
        iso2 = country if NETWORK_COUNTRY.fullmatch(country) else ""
        found = KnownNetwork(id, iso2, upstream_text(operator.get("operatorName")), pairs[0].get("mcc", ""), pairs[0].get("mnc", ""))
        known = self._networks.setdefault(id, found)
        if known is found:
            insort(self._of_country.setdefault(iso2, []), found, key=attrgetter("id"))
        for pair in pairs:
            self._by_code.setdefault((int(pair.get("mcc", "")), int(pair.get("mnc", ""))), known)

    def find(self, code: NetworkCode) -> KnownNetwork | None:
        """The network of `code`; None where no zone holds it."""
        return self._by_code.get(code)

    def country(self, code: NetworkCode) -> str | None:
        found = self.find(code)
        return (found.country if found is not None else "") or network_country(f"{code[0]:03d}", str(code[1]))

    def knows(self, zone_id: int) -> bool:
        """Whether the zone belongs to the reseller."""
        return zone_id in self._zones

    def covers(self, zone_ids: Iterable[int], code: NetworkCode) -> bool:
        """Whether one of the zones holds the network."""
        found = self.find(code)
        return found is not None and any(found.id in self._zones.get(zone_id, ()) for zone_id in zone_ids)

    def networks_of(self, country: str) -> Sequence[KnownNetwork]:
        """All networks of `country` that any zone holds, by number."""
        return self._of_country.get(country, [])

    def network(self, network_id: int) -> KnownNetwork | None:
        return self._networks.get(network_id)

    def options(self, zone_ids: Iterable[int], country: str) -> list[KnownNetwork]:
        """The networks of `country` that the zones hold, by number."""
        zones = [self._zones[zone_id] for zone_id in zone_ids if zone_id in self._zones]
        return [found for found in self.networks_of(country) if any(found.id in held for held in zones)]

    def held_by(self, zone_id: int) -> frozenset[int]:
        """The numbers of the networks of a zone."""
        return self._zones.get(zone_id, frozenset())

    def zones_with(self, network_id: int) -> Collection[int]:
        return {zone_id for zone_id, held in self._zones.items() if network_id in held}


def network_outside(places: Iterable[PlaceUse], zone_ids: Sequence[int], coverage: CoverageMap) -> NetworkCode | None:
    """The network outside the zones where a line used most data without a package, if such use is more than half of its data in the
    countries where the zones have a network: then the line is steered wrongly. None: it is not."""
    beside: dict[NetworkCode, int] = {}
    whole = 0
    for place in places:
        code = place.mcc, place.mnc
        country = coverage.country(code)
        if place.usage_type != USAGE_TYPE_DATA or country is None or not coverage.options(zone_ids, country):
            continue
        whole += place.quantity
        if not coverage.covers(zone_ids, code):
            beside[code] = beside.get(code, 0) + place.quantity - place.in_package
    if sum(beside.values()) * 2 <= max(0, whole):  # records that take back what was counted can make it less than nothing
        return None
    return max(beside, key=lambda code: (beside[code], code))


async def read_coverage_map(upstream: Upstream) -> CoverageMap:
    """The zones of the caller's reseller, two minutes old at most. Waits for the network."""
    zones = await read_reseller_list(upstream, ZONE_LIST)
    return await upstream.reads.get((upstream.identity, ZONE_LIST.name, "map"), lambda: index_zones(zones))


async def index_zones(zones: Sequence[DetailedLocationZone]) -> CoverageMap:
    """The map of `zones`. Other tasks get a turn after each, since a zone can hold hundreds of networks."""
    made = CoverageMap()
    for zone in zones:
        made.add(zone)
        await anyio.lowlevel.checkpoint()
    return made


class NetworkTold(TypedDict):
    """A network by its codes."""

    mcc: str
    mnc: str
    operator: NotRequired[Annotated[str, Field(description="As the charging system writes it")]]


class NetworkCodes:
    """The one code by which an answer names each network, since a network may have several.

    It is the code that most of what the answer is made of was seen with, of equals the lowest; a network that was not seen has its first.
    """

    def __init__(self, coverage: CoverageMap, seen: Iterable[NetworkCode]) -> None:
        self._coverage = coverage
        counted: dict[int, Counter[NetworkCode]] = {}
        for code in seen:
            network = coverage.find(code)
            if network is not None:
                counted.setdefault(network.id, Counter())[code] += 1
        self._shown = {id: min(codes, key=lambda code: (-codes[code], code)) for id, codes in counted.items()}

    def shown(self, code: NetworkCode) -> NetworkCode:
        """The code by which the network of `code` is named; a network that no zone holds has only its own."""
        network = self._coverage.find(code)
        return code if network is None else self._shown.get(network.id, code)

    def view(self, network: KnownNetwork | None, code: NetworkCode | None) -> NetworkTold:
        """A network, or the place of `code` where no zone holds it."""
        return network_view(network, code if network is None else self._shown.get(network.id))


def network_view(network: KnownNetwork | None, code: NetworkCode | None) -> NetworkTold:
    """A network by the code under which it was seen; without one, by its first code."""
    if network is None:
        mcc, mnc = code or (0, 0)
        return {"mcc": f"{mcc:03d}", "mnc": f"{mnc:02d}"}
    if code is None:
        return {"mcc": network.mcc, "mnc": network.mnc, "operator": network.operator}
    return {"mcc": f"{code[0]:03d}", "mnc": f"{code[1]:0{len(network.mnc)}d}", "operator": network.operator}
