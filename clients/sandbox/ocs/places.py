"""Where the simulated network is: countries, networks, whose SIMs roam there, and the areas made of them."""

from dataclasses import dataclass
from typing import Literal, NamedTuple


class Country(NamedTuple):
    """A country of the simulated world."""

    country_id: int
    iso2: str
    name: str
    continent: str
    dial_code: str
    utc_offset: str
    latitude: float
    longitude: float


class Network(NamedTuple):
    """One mobile network; it may own several codes."""

    network_id: int
    iso2: str
    name: str
    codes: tuple[tuple[str, str], ...]
    tadigs: tuple[str, ...]
    radio: Literal["3G", "4G", "5G"]


class Sponsor(NamedTuple):
    """Whose IMSI range a SIM roams with."""

    id: int
    name: str
    display_name: str
    prefix: int
    pricing_plan_id: int


class NetworkProfile(NamedTuple):
    """The networks a reseller may put into zones of one sponsor."""

    id: int
    name: str
    reseller_id: int
    sponsor_id: int
    allowed_list_id: int
    network_ids: frozenset[int]


@dataclass(slots=True)
class Zone:
    """A location zone: where packages work."""

    id: int
    name: str
    reseller_id: int
    profile_id: int
    network_ids: tuple[int, ...]
    malformed: bool = False
    """listLocationZoneElement of this zone is cut off in the middle (quirk 16)."""


class DestinationList(NamedTuple):
    """Called numbers by prefix."""

    id: int
    name: str
    reseller_id: int
    prefixes: tuple[str, ...]


class SteeringList(NamedTuple):
    """Preferred networks; the wire shows the name only."""

    id: int
    name: str
    reseller_id: int
    network_ids: tuple[int, ...]
