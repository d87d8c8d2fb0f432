"""The catalogue of the simulated network: countries, networks, sponsors, zones, lists and price lists; rates in whole micro-euro."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple


class Country(NamedTuple):
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


class TariffRule(NamedTuple):
    """What one network costs; rates in micro-euro per MiB, minute or message. `sponsor_id` None is any sponsor."""

    id: int
    tariff_id: int
    network_id: int
    sponsor_id: int | None
    active: bool
    data_rate: int | None
    moc_rate: int | None
    mtc_rate: int | None
    mo_sms_rate: int | None
    mt_sms_rate: int | None
    start: int
    discounted: bool = False
    hidden: bool = False
    daily_cap: int = 0


@dataclass(slots=True)
class Tariff:
    """A price list: RESELLER is what the reseller pays, SUBSCRIBER what it charges."""

    id: int
    name: str
    reseller_id: int
    kind: Literal["RESELLER", "SUBSCRIBER"]
    rules: tuple[TariffRule, ...]
    indexed: tuple[TariffRule, ...] = field(default=(), repr=False, compare=False)
    """The rules that `index` was made of."""
    index: dict[tuple[int, int | None], list[TariffRule]] = field(
        default_factory=dict[tuple[int, int | None], list[TariffRule]], repr=False, compare=False
    )
    """Rules by network and sponsor, newest first; kept by the rate look-up."""


class VoipRule(NamedTuple):
    """A price per minute by called prefix, in micro-euro."""

    prefix: str
    country: str
    price: int
    start: int


class VoipTariff(NamedTuple):
    id: int
    name: str
    reseller_id: int
    provider: str | None
    deleted: bool
    cost_plan: bool
    max_rate: int
    rules: tuple[VoipRule, ...]
