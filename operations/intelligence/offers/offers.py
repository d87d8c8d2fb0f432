"""What a line needs from packages in thirty days, and the packages it may get: templates with a price, of one sponsor each."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from clients.ocs.templates import Template
from operations.caches.usage import PlaceUse
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import CALENDAR_DAYS, LineUse
from operations.intelligence.offers.coverage_map import CoverageMap, read_coverage_map
from operations.times import DayWindow
from operations.upstream.connection import Upstream
from operations.upstream.lines import current_entry
from operations.upstream.resellers import SPONSOR_LIST, own_templates, read_reseller_list
from operations.upstream.signalling import NetworkCode
from operations.upstream.usage import UseKind, micro_euros, use_kind
from operations.vocabulary import upstream_text

MONTH_DAYS = 30
NEED_MARGIN_PERCENT = 10
"""Choice: a month is not the one before. A tenth more is what a line may use more before the packages are too small."""
PACKAGE_KINDS: tuple[UseKind, ...] = ("data", "calls_out", "calls_in", "sms_out", "sms_in")
"""What packages hold."""


class NeedPart(NamedTuple):
    """What is needed of one kind on one network: bytes, seconds or messages."""

    code: NetworkCode
    country: str
    operator: str
    kind: UseKind
    amount: int
    packed: bool
    """Whether a package paid some of it."""
    charged: int
    """What was charged for it outside packages in the four weeks, micro-euros."""


class PackageNeed(NamedTuple):
    """Of a line: what packages are to cover, on which of the 28 days it was used, and what stays outside packages as it was."""

    parts: tuple[NeedPart, ...]
    used: tuple[bool, ...]
    charged: int
    """What was charged outside packages in the four weeks, micro-euros: for all use."""

    @property
    def data_bytes(self) -> int:
        return sum(part.amount for part in self.parts if part.kind == "data")


def package_need(use: LineUse, window: DayWindow, *, single_counter: bool) -> PackageNeed:
    """The need that follows from `use`, what a line used in `window`.

    Choice: all data is needed, and of calls and messages only what packages paid: what was paid by the piece will be again.
    With a single counter received calls count as calls made.
    """
    found: dict[tuple[NetworkCode, UseKind], NeedPart] = {}
    for place in use.places:
        kind = use_kind(place.usage_type)
        wanted = place.quantity if kind == "data" else place.in_package
        if kind not in PACKAGE_KINDS or wanted <= 0:  # less than nothing: records that take back what earlier days counted
            continue
        counted: UseKind = "calls_out" if single_counter and kind == "calls_in" else kind
        key = (place.mcc, place.mnc), counted
        found[key] = add_to_need_part(found.get(key), place, counted, wanted)
    days = {day.day for day in use.days}
    used = tuple(window.first + timedelta(days=place) in days for place in range(window.days))
    return PackageNeed(tuple(month_of_need_part(part) for _, part in sorted(found.items())), used, use.subscriber_cost)


def add_to_need_part(former: NeedPart | None, place: PlaceUse, kind: UseKind, wanted: int) -> NeedPart:
    charged = place.subscriber_cost if kind == "data" else 0  # what else was charged is for what is not needed
    if former is None:
        return NeedPart((place.mcc, place.mnc), place.iso2, place.operator, kind, wanted, place.in_package > 0, charged)
    packed = former.packed or place.in_package > 0
    return former._replace(amount=former.amount + wanted, packed=packed, charged=former.charged + charged)


def month_of_need_part(part: NeedPart) -> NeedPart:
    """A need of 28 days as one of 30 days, with the margin, rounded up."""
    return part._replace(amount=-(-part.amount * MONTH_DAYS * (100 + NEED_MARGIN_PERCENT) // (CALENDAR_DAYS * 100)))


def monthly_cost(micro: int) -> int:
    """A cost of 28 days as one of 30 days, micro-euros."""
    return (2 * micro * MONTH_DAYS + CALENDAR_DAYS) // (2 * CALENDAR_DAYS)


def packages_in_turn(used: Sequence[bool], days: int) -> int:
    """How many packages of `days` days, one after another, reach over all days of use in thirty; the four weeks are taken to repeat.

    Choice: the thirty days begin where the fewest are needed, so that one trip is one trip.
    """
    if days >= MONTH_DAYS or not any(used):
        return 1
    if all(used):
        return -(-MONTH_DAYS // days)
    waits = days_until_use(used)
    return min(packages_in_turn_from(waits, days, start) for start in range(len(used)))


def days_until_use(used: Sequence[bool]) -> list[int]:
    """For each day of a calendar that repeats, how many days later the next day of use is; some day is one."""
    waits, wait = [0] * len(used), used.index(True)
    for day in reversed(range(len(used))):
        wait = 0 if used[day] else wait + 1
        waits[day] = wait
    return waits


def packages_in_turn_from(waits: Sequence[int], days: int, start: int) -> int:
    """The same for the thirty days from `start` on: each package begins on the first day of use that no package covers."""
    count, place = 0, waits[start]
    while place < MONTH_DAYS:
        count, place = count + 1, place + days
        place += waits[(start + place) % len(waits)]
    return count


def need_countries(parts: Iterable[NeedPart]) -> list[str]:
    """The countries where data is needed, most data first, without unknown ones."""
    amounts: dict[str, int] = {}
    for part in parts:
        if part.country and part.kind == "data":
            amounts[part.country] = amounts.get(part.country, 0) + part.amount
    return sorted(amounts, key=lambda country: (-amounts[country], country))


class MonthlyOffer(NamedTuple):
    """A template, counted for thirty days.

    A package that lasts longer counts with thirty days' part of its price (rounded up) and of what it holds (rounded down): it
    is bought once for all its days, and its next months cost nothing more.
    """

    template_id: int
    name: str
    days: int
    cost: int
    """Of one package, micro-euros."""
    price: int
    """Of one package in thirty days, micro-euros."""
    volumes: tuple[int, ...]
    """Of one package in thirty days, in the order of PACKAGE_KINDS."""
    zone_id: int
    destination_id: int | None
    sponsor_id: int | None


class SponsorPrefixes(NamedTuple):
    """Whose SIM a line has is told by the first digits of its IMSI: these, with their sponsors, longest first."""

    prefixes: Sequence[tuple[str, int]]

    def sponsor_of(self, line: FleetLine) -> int | None:
        history = current_entry(line.row.get("imsiList", ()))
        imsi = (history.get("imsi") or "") if history is not None else ""
        return next((sponsor for prefix, sponsor in self.prefixes if imsi.startswith(prefix)), None)


async def read_sponsors(upstream: Upstream) -> SponsorPrefixes:
    """The sponsors of the caller's reseller, two minutes old at most. Waits for the network."""
    sponsors = await read_reseller_list(upstream, SPONSOR_LIST)
    prefixes = [(str(row.get("prefix", "")), row.get("id", 0)) for row in sponsors if row.get("prefix")]
    return SponsorPrefixes(sorted(prefixes, key=lambda prefix: (-len(prefix[0]), prefix)))


class OfferCatalogue(NamedTuple):
    """The whole catalogue as of now."""

    offers: Sequence[MonthlyOffer]
    unpriced: int
    """How many templates have no price or no days."""
    coverage: CoverageMap
    sponsors: SponsorPrefixes
    single_counter: bool

    @property
    def costs(self) -> dict[int, int]:
        """Costs of one package by template, micro-euros."""
        return {offer.template_id: offer.cost for offer in self.offers}

    def of_sponsor(self, sponsor: int | None) -> list[MonthlyOffer]:
        """The offers for SIMs of `sponsor`. Choice: a template that names no sponsor fits all."""
        return [offer for offer in self.offers if offer.sponsor_id in (None, sponsor)]


async def read_offers(upstream: Upstream) -> OfferCatalogue:
    """The catalogue of the caller's reseller, a minute old at most; its zones two. Waits for the network."""
    templates, reseller = await own_templates(upstream), await upstream.reseller()
    sponsors = await read_sponsors(upstream)
    found = [monthly_offer(template) for template in templates]
    offers = sorted((offer for offer in found if offer is not None), key=lambda offer: offer.template_id)
    single = bool(reseller.get("chargingInfo", {}).get("CallPackageUseSingleCounter"))
    return OfferCatalogue(offers, len(found) - len(offers), await read_coverage_map(upstream), sponsors, single)


def monthly_offer(template: Template) -> MonthlyOffer | None:
    """The template as an offer. Choice: None without days or price; a price of 0 was never filled in."""
    cost, days = micro_euros(template.get("cost")), template.get("perioddays") or 0
    if cost <= 0 or days <= 0:
        return None
    counted = max(days, MONTH_DAYS)
    return MonthlyOffer(
        template.get("prepaidpackagetemplateid", 0),
        upstream_text(template.get("prepaidpackagetemplatename")),
        days,
        cost,
        -(-cost * MONTH_DAYS // counted) if days > MONTH_DAYS else cost,
        tuple(volume * MONTH_DAYS // counted if days > MONTH_DAYS else volume for volume in offer_volumes(template)),
        template.get("locationzoneid") or template.get("rdbLocationZones", {}).get("locationzoneid", 0),
        template.get("destinationzoneid") or template.get("rdbDestinationZones", {}).get("destinationzoneid"),
        template.get("sponsors", {}).get("sponsorid"),
    )


def offer_volumes(template: Template) -> tuple[int, ...]:
    """What a package holds, in the order of PACKAGE_KINDS."""
    held = (
        template.get("databyte"),
        template.get("mocsecond"),
        template.get("mtcsecond"),
        template.get("mosmsnumber"),
        template.get("mtsmsnumber"),
    )
    return tuple(max(0, volume or 0) for volume in held)
