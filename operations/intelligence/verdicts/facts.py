"""What verdicts on a line are made of: its row, its packages, what it used, and where, at one moment. Nothing here asks anybody.

The same facts are made of the stored model and of a live read, so that both get the same verdicts. Times are Unix seconds, 0.0: never or
not known; days are ordinals of UTC days; money is micro-euro.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import orjson

from clients.ocs.packages import RecurringSeries
from clients.ocs.times import wire_seconds
from operations.fleet.line_reading import SERIES_AHEAD_SECONDS, next_repetition
from operations.fleet.wire_rows import ordinal
from operations.intelligence.offers.coverage_map import CoverageMap
from operations.intelligence.verdicts.cheapest import CheapestPackages
from operations.upstream.signalling import NetworkCode
from operations.upstream.usage import USAGE_TYPE_DATA
from storage.fleet_packages import FleetPackageRow
from storage.fleet_usage import FleetUsageRow

DAY = 86_400
WINDOW_DAYS = 28
PRESENT_DAYS = 7
INCOMING_SMS = 22


class HeldPackageFacts(NamedTuple):
    """A package of a line. `starts`, `ends`: 0.0 where it waits for its first use."""

    id: int
    template_id: int
    zone_id: int
    active: bool
    assigned: float
    starts: float
    ends: float
    limit: int
    used: int
    price: int
    series_id: int

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)

    def has_begun(self, now: float) -> bool:
        return self.starts <= now

    def has_ended(self, now: float) -> bool:
        return 0 < self.ends <= now


class RefusedSession(NamedTuple):
    """A data session that the charging system refused."""

    at: float
    mcc: int
    mnc: int


class LineIdentity(NamedTuple):
    """The row of a line, as far as verdicts look at it."""

    subscriber_id: int
    iccid: str
    account_id: int
    status: str
    status_since: float
    sim_status: str
    issued: float
    activated: float
    last_used: float
    sighted: float
    mcc: int
    mnc: int
    country: str
    data_allowed: int
    speed_limit: int
    steering_list: int


@dataclass(frozen=True)
class VerdictFacts:
    """Everything that is known of a line at `now`. `networks`: countries of codes, as records told them."""

    now: float
    line: LineIdentity
    packages: Sequence[HeldPackageFacts]
    """With data, by id."""
    all_packages: Sequence[HeldPackageFacts]
    series: Sequence[RecurringSeries]
    usage: Sequence[FleetUsageRow]
    """Of the last 90 days, in the order of days."""
    refused: Sequence[RefusedSession]
    coverage: CoverageMap
    networks: Mapping[NetworkCode, str]
    find_cheapest: Callable[[], CheapestPackages | None] = lambda: None
    """Searches the cheapest packages for what was used, which takes some milliseconds; None: none cover it all."""

    @cached_property
    def today(self) -> int:
        return ordinal(self.now)

    @cached_property
    def code(self) -> NetworkCode | None:
        """The network that saw the line last."""
        return (self.line.mcc, self.line.mnc) if self.line.mcc else None

    @cached_property
    def country(self) -> str | None:
        """The country of that network."""
        return None if self.code is None else self.coverage.country(self.code) or self.line.country or None

    def country_of(self, code: NetworkCode) -> str | None:
        """The country of a network, as records told it, or by its code."""
        return self.networks.get(code) or self.coverage.country(code)

    def present(self, days: int = PRESENT_DAYS) -> bool:
        """Whether a network saw the line in the last `days` days, by a registration or a use."""
        return max(self.line.last_used, self.line.sighted) >= self.now - days * DAY

    def running(self) -> list[HeldPackageFacts]:
        """The packages within their dates, paused or not."""
        return [package for package in self.packages if package.has_begun(self.now) and not package.has_ended(self.now)]

    @cached_property
    def stocked(self) -> list[HeldPackageFacts]:
        """The running packages that are not paused and have data left."""
        return [package for package in self.running() if package.active and package.left > 0]

    @cached_property
    def next_start(self) -> float | None:
        """When the next package begins that has a date: one that the line has, or the next of a series."""
        dated = [package.starts for package in self.packages if package.starts > self.now]
        coming = [moment + SERIES_AHEAD_SECONDS for row in self.series if (moment := next_repetition(row, self.now)) is not None]
        return min([*dated, *coming], default=None)

    @cached_property
    def used_days(self) -> list[int]:
        """The days with use, ascending; messages that come in are no use, since they come whoever has left."""
        return sorted({row.day for row in self.usage if row.kind != INCOMING_SMS and row.mcc})

    def days_used(self, first: int, end: int) -> int:
        """On how many days the line was used, from `first` until before `end`, both counted from today."""
        return sum(first <= day - self.today < end for day in self.used_days)

    @cached_property
    def recent(self) -> list[FleetUsageRow]:
        """The use of the last four weeks, today left out."""
        return [row for row in self.usage if self.today - WINDOW_DAYS <= row.day < self.today]

    @cached_property
    def data_by_day(self) -> dict[int, int]:
        """Bytes of the last four weeks, by days with any."""
        found: dict[int, int] = {}
        for row in self.recent:
            if row.kind == USAGE_TYPE_DATA and row.quantity > 0:
                found[row.day] = found.get(row.day, 0) + row.quantity
        return found

    @cached_property
    def countries_by_day(self) -> dict[int, set[str]]:
        """Where the line was used, by days with use."""
        found: dict[int, set[str]] = {}
        for row in self.usage:
            if row.mcc and (country := self.country_of((row.mcc, row.mnc))):
                found.setdefault(row.day, set()).add(country)
        return found

    @cached_property
    def stay_began(self) -> int | None:
        """The first day of the stay in the present country: with use there, and none in another country after it; None: not known."""
        here = self.country
        if here is None:
            return None
        left = max((day for day, countries in self.countries_by_day.items() if countries - {here}), default=0)
        days = [day for day, countries in self.countries_by_day.items() if here in countries and day >= left]
        if days:
            return min(days)
        return ordinal(self.line.sighted) if self.line.sighted > 0 else None

    @cached_property
    def network_cost(self) -> int:
        """What networks charged the operator in the last four weeks."""
        return sum(row.network_cost for row in self.recent)

    @cached_property
    def usage_income(self) -> int:
        """What the customer was charged for use outside packages in the last four weeks."""
        return sum(row.usage_income for row in self.recent)

    def package_income(self, *, whole: bool) -> int:
        """What the customer paid for packages in the last four weeks, micro-euro.

        `whole`: those that were assigned or ran in these weeks with all their price; else each by the part of its life that lay in them.
        """
        end = (self.now // DAY) * DAY
        first = end - WINDOW_DAYS * DAY
        paid = 0.0
        for package in self.all_packages:
            share = share_of_life(package, first, end)
            if whole:
                paid += package.price if share or package.assigned >= first else 0
            else:
                paid += package.price * share
        return round(paid)

    @cached_property
    def monthly_price(self) -> int:
        """What the customer pays in 30 days."""
        return (self.package_income(whole=False) + self.usage_income) * 30 // WINDOW_DAYS

    @cached_property
    def usual_income(self) -> int:
        """What the customer pays a month while packages run."""
        dated = [package for package in self.all_packages if package.ends > package.starts]
        running = [package.price * 30 * DAY / (package.ends - package.starts) for package in dated]
        return max(self.monthly_price, round(running[-1]) if running else 0)

    def lost_income(self, since: float) -> int:
        """What of the usual income stays out a month since a moment (0.0: not known): use outside packages goes on bringing some in.

        That is judged by the whole days since then, and by the last seven at most.
        """
        first = max(self.today - PRESENT_DAYS, ordinal(since - 1) + 1 if since > 0 else 0)
        days = self.today - first
        coming = sum(row.usage_income for row in self.usage if first <= row.day < self.today)
        return max(0, self.usual_income - (coming * 30 // days if days > 0 else 0))

    @cached_property
    def last_covered_day(self) -> int | None:
        """The last day on which a package paid for data; None: not known."""
        return max((row.day for row in self.usage if row.kind == USAGE_TYPE_DATA and row.covered > 0), default=None)

    def works_in(self, package: HeldPackageFacts, country: str) -> bool:
        """Whether the package's zone has a network of the country; of a zone that is not the reseller's nobody can say it has not."""
        return not self.coverage.knows(package.zone_id) or bool(self.coverage.options([package.zone_id], country))


def share_of_life(package: HeldPackageFacts, first: float, end: float) -> float:
    """The part of a package's life that lay between two moments."""
    if package.ends <= package.starts or package.starts <= 0:
        return 0.0
    inside = min(package.ends, end) - max(package.starts, first)
    return max(0.0, inside) / (package.ends - package.starts)


def packages_of_rows(rows: Iterable[FleetPackageRow]) -> list[HeldPackageFacts]:
    """The packages among stored rows, by id."""
    found: list[HeldPackageFacts] = []
    for row in rows:
        if row.series:
            continue
        told = cast("Mapping[str, object]", orjson.loads(row.facts))
        assigned, series = told.get("tsassigned"), told.get("recurringPackage")
        found.append(
            HeldPackageFacts(
                row.id,
                row.template_id,
                row.zone_id,
                bool(row.active),
                (wire_seconds(assigned) or 0.0) if isinstance(assigned, str) else 0.0,
                row.starts,
                row.ends,
                row.data_limit,
                row.data_used,
                row.price,
                series if isinstance(series, int) else 0,
            )
        )
    return found


def series_of_rows(rows: Iterable[FleetPackageRow]) -> list[RecurringSeries]:
    return [cast("RecurringSeries", orjson.loads(row.facts)) for row in rows if row.series]


def refused_of_text(text: str) -> list[RefusedSession]:
    return [RefusedSession(float(at), int(mcc), int(mnc)) for at, mcc, mnc in orjson.loads(text)] if text else []
