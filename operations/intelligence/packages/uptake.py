"""Which packages sell, how much of them is used, and to whom another could be sold."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Literal, NamedTuple

from clients.ocs.wire.package import Package, PackageList
from operations.intelligence.lines.habits import Habits
from operations.intelligence.lines.told_days import day_told
from operations.intelligence.packages.wares import Ware, covering, larger
from operations.services.network.package_state import PackageState, state_of

Upsell = Literal["larger_package", "renewal", "first_package"]
NEARLY, HALF = 0.9, 0.5
UPSELL_RULES: dict[Upsell, str] = {
    "larger_package": "90 % or more of a current package's data is used; extra price of the next larger one of its zone and sponsor",
    "renewal": "no current package, and the last one ended in these 28 days, half used or more; its price again",
    "first_package": "data used, and no package in these 28 days; the cheapest one that works in its main country",
}
CURRENT: frozenset[PackageState] = frozenset({"running", "exhausted", "assigned", "scheduled"})


class Held(NamedTuple):
    """A package of a line, as far as it holds data."""

    template_id: int
    assigned: date | None
    ended: date | None
    limit: int
    used: int
    state: PackageState


class Offer(NamedTuple):
    """What could be sold to a line, and what for, in micro-euros."""

    kind: Upsell
    price: int


def held_of(found: PackageList, now: float) -> tuple[Held, ...]:
    """The packages with data, the newest last."""
    single = found.get("callUseSingleCounter", False)
    rows = [held(row, now, single=single) for row in found.get("packages", []) if row.get("pckdatabyte", 0) > 0]
    return tuple(sorted(rows, key=lambda row: row.assigned or date.min))


def held(row: Package, now: float, *, single: bool) -> Held:
    """One package."""
    return Held(
        row.get("templateId") or row.get("packageTemplate", {}).get("prepaidpackagetemplateid", 0),
        day_told(row.get("tsassigned")),
        day_told(row.get("tsexpirationutc")),
        row.get("pckdatabyte", 0),
        row.get("useddatabyte", 0),
        state_of(row, now, single_counter=single),
    )


def offer(packages: Sequence[Held], habits: Habits, wares: Mapping[int, Ware], first: date) -> Offer | None:
    """What could be sold to a line; nothing where the catalogue has no price for it."""
    current = [package for package in packages if package.state in CURRENT]
    if current:
        return larger_offer(current, wares)
    lately = [package for package in packages if package.ended is not None and package.ended >= first]
    if lately:
        return renewal(lately[-1], wares)
    if packages_since(packages, first) or not habits.data_bytes or not habits.stays:
        return None
    ware = covering(habits.stays[0].iso2, wares.values())
    return None if ware is None else Offer("first_package", ware.price)


def larger_offer(current: Iterable[Held], wares: Mapping[int, Ware]) -> Offer | None:
    """For the newest package that is nearly used up, when no other has data left."""
    listed = list(current)
    if any(package.used < NEARLY * package.limit for package in listed):
        return None
    ware = wares.get(listed[-1].template_id)
    more = None if ware is None else larger(ware, wares.values())
    return None if ware is None or more is None else Offer("larger_package", more.price - ware.price)


def renewal(last: Held, wares: Mapping[int, Ware]) -> Offer | None:
    """The same once more."""
    ware = wares.get(last.template_id)
    return Offer("renewal", ware.price) if ware is not None and ware.price > 0 and last.used >= HALF * last.limit else None


def packages_since(packages: Iterable[Held], first: date) -> bool:
    """Whether the line was given one on that day or later."""
    return any(package.assigned is not None and package.assigned >= first for package in packages)


class Sales(NamedTuple):
    """One template, over the lines whose packages were read."""

    lines: set[int]
    sold: int
    sold_before: int
    data_sold: int
    data_used: int


def sales(held: Mapping[int, Sequence[Held]], first: date, days: int) -> dict[int, Sales]:
    """By template: packages of these days and of as many before."""
    before, found = first - timedelta(days=days), dict[int, Sales]()
    for line, packages in held.items():
        for package in packages:
            if package.assigned is not None and package.assigned >= before:
                found[package.template_id] = added(found.get(package.template_id), line, package, package.assigned >= first)
    return found


def added(former: Sales | None, line: int, package: Held, new: bool) -> Sales:
    """One package more. Data beyond a limit is not the package's."""
    one = former or Sales(set(), 0, 0, 0, 0)
    one.lines.add(line)
    used = min(package.used, package.limit)
    return Sales(one.lines, one.sold + new, one.sold_before + (not new), one.data_sold + package.limit, one.data_used + used)


def together(parts: Iterable[Sales]) -> Sales:
    """Several templates as one."""
    listed = list(parts)
    return Sales(
        set[int]().union(*(part.lines for part in listed)),
        sum(part.sold for part in listed),
        sum(part.sold_before for part in listed),
        sum(part.data_sold for part in listed),
        sum(part.data_used for part in listed),
    )
