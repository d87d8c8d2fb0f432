"""How a line was used in four weeks, which packages of the catalogue sell, how much of them is used, and to whom another could be sold."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from statistics import median
from typing import Literal, NamedTuple, cast

import orjson

from clients.ocs.packages import PackageList
from clients.ocs.templates import Template
from operations.intelligence.lines.fleet_lines import parse_day
from operations.intelligence.lines.usage import LineUse
from operations.upstream.connection import Upstream
from operations.upstream.lines import PackageState, package_state
from operations.upstream.resellers import own_templates, zone_countries
from operations.upstream.usage import USAGE_TYPE_DATA, micro_euros
from operations.vocabulary import upstream_text

LineSegment = Literal["machine", "heavy", "frequent_traveller", "occasional_traveller", "at_home", "dormant", "not_active"]
MACHINE_DAYS, MACHINE_BYTES = 4, 2_000_000
HEAVY_BYTES, HEAVY_MEDIANS = 1_000_000_000, 4
TRAVEL_DAYS, TRAVEL_COUNTRIES = 7, 3
SEGMENT_RULES: dict[LineSegment, str] = {
    "machine": "data only, on 4 days or more, at most 2 MB per day with use",
    "heavy": "no machine; at least 1 GB and 4 times the median of lines with data",
    "frequent_traveller": "of the others: in 3 countries, or 7 days outside its main one",
    "occasional_traveller": "of the others: in 2 countries",
    "at_home": "of the others: in one country",
    "dormant": "ACTIVE, and no use",
    "not_active": "not ACTIVE, and no use",
}


class CountryStay(NamedTuple):
    """A country in which a line was used: on how many days, and how much data."""

    iso2: str
    days: int
    data_bytes: int


class UsageProfile(NamedTuple):
    """A line's four weeks. `late` is the second half of them."""

    days: int
    early_bytes: int
    late_bytes: int
    early_used: bool
    late_used: bool
    data_only: bool
    stays: tuple[CountryStay, ...]
    """The main country first: where it was on most days, of equals with most data."""

    @property
    def data_bytes(self) -> int:
        return self.early_bytes + self.late_bytes


def usage_profile(use: LineUse, middle: date) -> UsageProfile:
    """The figures of `use`; `middle` is the first day of the second half."""
    days = Counter(visit.iso2 for visit in use.visits)
    data = Counter[str]()
    for place in use.places:
        if place.usage_type == USAGE_TYPE_DATA:
            data[place.iso2] += place.quantity
    stays = sorted(
        (CountryStay(iso2, count, data[iso2]) for iso2, count in days.items()), key=lambda stay: (-stay.days, -stay.data_bytes, stay.iso2)
    )
    late = [day for day in use.days if day.day >= middle]
    late_bytes = sum(day.data_bytes for day in late)
    return UsageProfile(
        len(use.days),
        use.data_bytes - late_bytes,
        late_bytes,
        len(late) < len(use.days),
        bool(late),
        all(place.usage_type == USAGE_TYPE_DATA for place in use.places),
        tuple(stays),
    )


UNUSED_PROFILE = UsageProfile(0, 0, 0, early_used=False, late_used=False, data_only=True, stays=())
ProfileParts = tuple[int, int, int, bool, bool, bool, list[tuple[str, int, int]]]


def profile_text(found: UsageProfile) -> str:
    """The profile as it is stored with a line; '' where the line was not used."""
    return orjson.dumps([*found[:-1], [list(stay) for stay in found.stays]]).decode() if found.days else ""


def stored_profile(text: str) -> UsageProfile:
    """The profile that `text` was made of."""
    if not text:
        return UNUSED_PROFILE
    days, early, late, early_used, late_used, data_only, stays = cast("ProfileParts", orjson.loads(text))
    return UsageProfile(days, early, late, early_used, late_used, data_only, tuple([CountryStay(*stay) for stay in stays]))


HEAVY_SEGMENTS: frozenset[LineSegment] = frozenset({"frequent_traveller", "occasional_traveller", "at_home"})
"""Lines of these are `heavy` if they use so much."""


def line_segment(found: UsageProfile, *, is_active: bool) -> LineSegment:
    """The segment of a line with the profile `found`, however much it used."""
    if not found.days:
        return "dormant" if is_active else "not_active"
    if found.data_only and found.days >= MACHINE_DAYS and found.data_bytes <= MACHINE_BYTES * found.days:
        return "machine"
    away = sum(stay.days for stay in found.stays[1:])
    if len(found.stays) >= TRAVEL_COUNTRIES or away >= TRAVEL_DAYS:
        return "frequent_traveller"
    return "occasional_traveller" if len(found.stays) > 1 else "at_home"


def least_heavy_bytes(used: Sequence[int]) -> float:
    """How much data a heavy line uses at least, where lines with data used so much each."""
    return max(HEAVY_BYTES, HEAVY_MEDIANS * (median(used) if used else 0.0))


class TemplateForSale(NamedTuple):
    """A template. `price` is in micro-euros; 0: none is told."""

    id: int
    name: str
    price: int
    data_bytes: int
    days: int
    zone_id: int
    sponsor: int | None
    countries: frozenset[str]


async def read_templates_for_sale(upstream: Upstream) -> dict[int, TemplateForSale]:
    """Every template that lines can get, by number; a minute old at most, its countries two. Waits for the network."""
    templates = await own_templates(upstream)
    countries = {zone: frozenset(names) for zone, names in (await zone_countries(upstream)).items()}
    return {row.id: row for row in (template_for_sale(template, countries) for template in templates)}


def template_for_sale(template: Template, countries: Mapping[int | None, frozenset[str]]) -> TemplateForSale:
    zone = template.get("locationzoneid") or template.get("rdbLocationZones", {}).get("locationzoneid", 0)
    return TemplateForSale(
        template.get("prepaidpackagetemplateid", 0),
        upstream_text(template.get("prepaidpackagetemplatename")),
        micro_euros(template.get("cost")),
        template.get("databyte", 0),
        template.get("perioddays", 0),
        zone,
        template.get("esimSponsor"),
        countries.get(zone, frozenset()),
    )


def next_larger_template(template: TemplateForSale, templates: Iterable[TemplateForSale]) -> TemplateForSale | None:
    """The next template of the same zone and sponsor with more data, a higher price and no fewer days."""
    fit = [
        other
        for other in templates
        if (other.zone_id, other.sponsor) == (template.zone_id, template.sponsor)
        and other.data_bytes > template.data_bytes
        and other.price > template.price
        and other.days >= template.days
    ]
    return min(fit, key=lambda other: (other.data_bytes, other.price, other.id), default=None)


def cheapest_template_in(country: str, templates: Iterable[TemplateForSale]) -> TemplateForSale | None:
    """The cheapest package with data that works in `country`."""
    fit = [template for template in templates if country in template.countries and template.data_bytes > 0 and template.price > 0]
    return min(fit, key=lambda template: (template.price, template.id), default=None)


UpsellKind = Literal["larger_package", "renewal", "first_package"]
NEARLY_USED_SHARE, HALF_USED_SHARE = 0.9, 0.5
UPSELL_RULES: dict[UpsellKind, str] = {
    "larger_package": "90 % or more of a current package's data is used, and most data did not go past it on networks that it does not "
    "cover; extra price of the next larger one of its zone and sponsor",
    "renewal": "no current package, and the last one ended in these 28 days, half used or more; its price again",
    "first_package": "data used, and no package in these 28 days; the cheapest one that works in its main country",
}
CURRENT_PACKAGE_STATES: frozenset[PackageState] = frozenset({"running", "exhausted", "assigned", "scheduled"})


class SoldPackage(NamedTuple):
    """A package of a line, as far as it holds data."""

    template_id: int
    assigned: date | None
    ended: date | None
    limit: int
    used: int
    state: PackageState
    zone_id: int


class UpsellOffer(NamedTuple):
    """What could be sold to a line, and what for, in micro-euros."""

    kind: UpsellKind
    price: int


def sold_packages(found: PackageList, now: float) -> tuple[SoldPackage, ...]:
    """The packages that hold data, the newest last. `now`: Unix seconds."""
    single = found.get("callUseSingleCounter", False)
    rows = [
        SoldPackage(
            row.get("templateId") or row.get("packageTemplate", {}).get("prepaidpackagetemplateid", 0),
            parse_day(row.get("tsassigned")),
            parse_day(row.get("tsexpirationutc")),
            row.get("pckdatabyte", 0),
            row.get("useddatabyte", 0),
            package_state(row, now, single_counter=single),
            row.get("locationzoneid") or row.get("rdbLocationZones", {}).get("locationzoneid", 0),
        )
        for row in found.get("packages", [])
        if row.get("pckdatabyte", 0) > 0
    ]
    return tuple(sorted(rows, key=lambda row: row.assigned or date.min))


def upsell_offer(
    packages: Sequence[SoldPackage], profile: UsageProfile, templates: Mapping[int, TemplateForSale], first: date
) -> UpsellOffer | None:
    """What could be sold to a line; None where the catalogue has no price for it."""
    current = [package for package in packages if package.state in CURRENT_PACKAGE_STATES]
    if current:
        return larger_package_offer(current, templates)
    lately = [package for package in packages if package.ended is not None and package.ended >= first]
    if lately:
        return renewal_offer(lately[-1], templates)
    got = any(package.assigned is not None and package.assigned >= first for package in packages)
    if got or not profile.data_bytes or not profile.stays:
        return None
    template = cheapest_template_in(profile.stays[0].iso2, templates.values())
    return None if template is None else UpsellOffer("first_package", template.price)


def larger_package_offer(current: Iterable[SoldPackage], templates: Mapping[int, TemplateForSale]) -> UpsellOffer | None:
    """The step from the newest package to the next larger one, where every current package is nearly used up."""
    listed = list(current)
    if any(package.used < NEARLY_USED_SHARE * package.limit for package in listed):
        return None
    template = templates.get(listed[-1].template_id)
    more = None if template is None else next_larger_template(template, templates.values())
    return None if template is None or more is None else UpsellOffer("larger_package", more.price - template.price)


def renewal_offer(last: SoldPackage, templates: Mapping[int, TemplateForSale]) -> UpsellOffer | None:
    """The same package again, where half of it was used and the catalogue has its price."""
    template = templates.get(last.template_id)
    return (
        UpsellOffer("renewal", template.price)
        if template is not None and template.price > 0 and last.used >= HALF_USED_SHARE * last.limit
        else None
    )


class TemplateSales(NamedTuple):
    """One template, over the lines whose packages were read."""

    lines: set[int]
    sold: int
    sold_before: int
    data_sold: int
    data_used: int


def template_sales(held: Mapping[int, Sequence[SoldPackage]], first: date, days: int) -> dict[int, TemplateSales]:
    """By template: packages of the last `days` days, and of as many days before."""
    before, found = first - timedelta(days=days), dict[int, TemplateSales]()
    for line, packages in held.items():
        for package in packages:
            if package.assigned is not None and package.assigned >= before:
                found[package.template_id] = add_package_sale(found.get(package.template_id), line, package, package.assigned >= first)
    return found


def add_package_sale(former: TemplateSales | None, line: int, package: SoldPackage, new: bool) -> TemplateSales:
    """Counts one more package. Data beyond its limit does not belong to it."""
    one = former or TemplateSales(set(), 0, 0, 0, 0)
    one.lines.add(line)
    used = min(package.used, package.limit)
    return TemplateSales(one.lines, one.sold + new, one.sold_before + (not new), one.data_sold + package.limit, one.data_used + used)


def merge_template_sales(parts: Iterable[TemplateSales]) -> TemplateSales:
    listed = list(parts)
    return TemplateSales(
        set[int]().union(*(part.lines for part in listed)),
        sum(part.sold for part in listed),
        sum(part.sold_before for part in listed),
        sum(part.data_sold for part in listed),
        sum(part.data_used for part in listed),
    )
