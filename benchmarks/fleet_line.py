"""What a simulated network knows of one line at a moment: its packages, where it is, what it used and what that cost, and who pays.

Read from the network's own records, never over the wire.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from math import inf
from typing import NamedTuple

from benchmarks.intelligence_packages import Cheapest, cheapest, coverable, needs_of, wares_of
from simulators.network.charging import find_tariff_rule
from simulators.network.entities import DATA, DAY_SECONDS, MT_SMS, Cdr, Line, Package
from simulators.network.packages import SERIES_LEAD_SECONDS, next_series_creation
from simulators.network.world import Network, World

WINDOW_DAYS, MONTH_DAYS = 28, 30
REFUSED_SESSION = "CCR-I"
"""A data session that ended as it began, since nobody paid. Every other one is told of at its end."""


class ObservedNetwork:
    """A network, whose clock says what now is, and the same network four weeks later."""

    def __init__(self, network: World, later: World) -> None:
        self.network, self.later = network, later
        self.now, self.today = network.now, network.now // DAY_SECONDS
        self._places = {code: place for place in network.networks.values() for code in place.codes}
        self._countries = {
            zone.id: frozenset(network.networks[number].iso2 for number in zone.network_ids) for zone in network.zones.values()
        }

    def records(self, line: Line) -> list[Cdr]:
        """The call records of the last four weeks."""
        first, end = (self.today - WINDOW_DAYS) * DAY_SECONDS, self.today * DAY_SECONDS
        return [cdr for cdr in line.cdrs if first <= cdr.at < end]

    def place(self, mcc: str, mnc: str) -> Network:
        """The network with this code."""
        return self._places[mcc, mnc]

    def countries(self, package: Package) -> frozenset[str]:
        """Where the package's zone has a network."""
        return self._countries[package.zone_id]


class DataSession(NamedTuple):
    """`outside`: on a network that no zone of the line's packages has. `size` is in bytes, 0 where the session was refused."""

    outside: bool
    at: int
    size: int


class LineState:
    """One line. Moments are Unix seconds, days are UTC days since 1970, money is micro-euro."""

    def __init__(self, observed: ObservedNetwork, line: Line) -> None:
        self.observed, self.line = observed, line
        self.now, self.today = observed.now, observed.today

    def present(self, days: int) -> bool:
        """Whether a network saw the line in the last `days` days."""
        return self.line.sighting is not None and self.line.sighting.at >= self.now - days * DAY_SECONDS

    @cached_property
    def place(self) -> Network | None:
        """The network that saw the line last."""
        seen = self.line.sighting
        return None if seen is None else self.observed.place(seen.mcc, seen.mnc)

    @cached_property
    def packages(self) -> list[Package]:
        """Those that hold data."""
        return [package for package in self.line.packages if package.data_limit]

    def running(self, lag: int) -> list[Package]:
        """The packages within their dates, paused or not, where each ends `lag` seconds after its end; a negative lag ends it before."""
        begun = [package for package in self.packages if package.activated is None or package.activated <= self.now]
        return [package for package in begun if package.expires is None or package.expires + lag > self.now]

    def stocked(self, lag: int = 0, empty_share: float = 0.0) -> list[Package]:
        """The running packages that are not paused and have more left than `empty_share` of their data."""
        running = [package for package in self.running(lag) if package.active]
        return [package for package in running if package.units_left(DATA) > empty_share * (package.data_limit or 0)]

    @cached_property
    def next_start(self) -> int | None:
        """When the next package begins that has a date: one that the line has, or the next of a series."""
        dated = [package.activated for package in self.packages if package.activated is not None and package.activated > self.now]
        due = [next_series_creation(self.observed.network, self.line, series) for series in self.line.series]
        return min([*dated, *(moment + SERIES_LEAD_SECONDS for moment in due if moment is not None)], default=None)

    @cached_property
    def repetitions_left(self) -> list[float]:
        """How many packages each series will make that runs or has come to its end."""
        left: list[float] = []
        for series in self.line.series:
            rest = inf if series.occurrences is None else series.occurrences - series.created
            if next_series_creation(self.observed.network, self.line, series) is not None or (series.active and rest == 0):
                left.append(rest)
        return left

    @cached_property
    def pays(self) -> bool:
        """Whether a balance buys a mebibyte of data where the line is."""
        line, network = self.line, self.observed.network
        if self.place is None:
            return False
        tariff = line.mobile_plan_id or network.resellers[line.reseller_id].mobile_plan_id
        rule = find_tariff_rule(network, tariff, self.place.network_id, line.sim.sponsor_id, self.now)
        account = network.accounts[line.account_id]
        balance = (0 if account.package_only else account.balance) if line.use_account else line.balance
        return rule is not None and rule.data_rate is not None and balance >= max(rule.data_rate, 1)

    @cached_property
    def uses(self) -> list[Cdr]:
        """Its call records without incoming messages, which are free and come whoever has left."""
        return [cdr for cdr in self.line.cdrs if cdr.usage_type != MT_SMS]

    @cached_property
    def used_days(self) -> list[int]:
        """The days with use, ascending."""
        return sorted({cdr.at // DAY_SECONDS for cdr in self.uses})

    def days_used(self, first: int, end: int) -> int:
        """On how many days it was used, from `first` until before `end`, both counted from today."""
        return sum(first <= day - self.today < end for day in self.used_days)

    @cached_property
    def used_later(self) -> bool:
        """Whether it is used in the four weeks that follow."""
        later = self.observed.later.lines[self.line.id].cdrs[len(self.line.cdrs) :]
        return any(cdr.usage_type != MT_SMS for cdr in later)

    @cached_property
    def records(self) -> list[Cdr]:
        """The call records of the last four weeks."""
        return self.observed.records(self.line)

    @cached_property
    def data_by_day(self) -> dict[int, int]:
        """Bytes of the last four weeks, by days with any."""
        found = Counter[int]()
        for cdr in self.records:
            if cdr.usage_type == DATA:
                found[cdr.at // DAY_SECONDS] += cdr.quantity
        return dict(found)

    @cached_property
    def countries_by_day(self) -> dict[int, set[str]]:
        """Where it was used, by days with records."""
        found: dict[int, set[str]] = {}
        for cdr in self.line.cdrs:
            found.setdefault(cdr.at // DAY_SECONDS, set()).add(self._country(cdr.network_id))
        return found

    @cached_property
    def days_there(self) -> int:
        """How many days ago the stay in the present country began: its first day with use there and none in another country after it."""
        seen, place = self.line.sighting, self.place
        if seen is None or place is None:
            return 0
        left = max((day for day, places in self.countries_by_day.items() if places - {place.iso2}), default=0)
        days = (day for day, places in self.countries_by_day.items() if place.iso2 in places and day >= left)
        return self.today - min(days, default=seen.at // DAY_SECONDS)

    def works_here(self, package: Package) -> bool:
        """Whether the package's zone has a network of the country where the line is."""
        return self.place is not None and self.place.iso2 in self.observed.countries(package)

    def sessions_there(self, packages: Sequence[Package], days: int) -> list[DataSession]:
        """The data sessions of the last `days` days in countries of the packages, each of which counts from when the line had it."""
        since = self.now - days * DAY_SECONDS
        paid = [(cdr.network_id, cdr.at, cdr.quantity) for cdr in self.line.cdrs if cdr.usage_type == DATA and cdr.at >= since]
        refused = [(event.network_id, event.at, 0) for event in self.line.events if event.at >= since and event.code == REFUSED_SESSION]
        found: list[DataSession] = []
        for network_id, at, size in (*paid, *refused):
            held = [package for package in packages if package.assigned <= at]
            if self._country(network_id) in self._countries(held):
                found.append(DataSession(not self._covers(held, network_id), at, size))
        return found

    def is_beside(self, packages: Sequence[Package]) -> bool:
        """Whether the network that saw the line last is outside of the packages, in a country of theirs."""
        place = self.place
        return place is not None and place.iso2 in self._countries(packages) and not self._covers(packages, place.network_id)

    def _countries(self, packages: Sequence[Package]) -> set[str]:
        return {iso2 for package in packages for iso2 in self.observed.countries(package)}

    def _covers(self, packages: Sequence[Package], network_id: int) -> bool:
        return any(network_id in self.observed.network.zones[package.zone_id].network_ids for package in packages)

    def _country(self, network_id: int) -> str:
        return self.observed.network.networks[network_id].iso2

    def income(self, *, whole: bool) -> int:
        """What the customer paid in the last four weeks for use outside of packages, and for packages.

        `whole`: packages that were assigned or ran in these weeks with all their price; else each by the part of its life that lay in them.
        """
        first = (self.today - WINDOW_DAYS) * DAY_SECONDS
        shares = [(package, self._share_of_life(package)) for package in self.line.packages]
        if whole:
            paid = sum(package.cost for package, share in shares if share or package.assigned >= first)
        else:
            paid = round(sum(package.cost * share for package, share in shares))
        return paid + sum(cdr.subscriber_cost for cdr in self.records)

    def _share_of_life(self, package: Package) -> float:
        """The part of a package's life that lay in the last four weeks."""
        if package.activated is None or package.expires is None or package.expires <= package.activated:
            return 0.0
        end = self.today * DAY_SECONDS
        inside = min(package.expires, end) - max(package.activated, end - WINDOW_DAYS * DAY_SECONDS)
        return max(0, inside) / (package.expires - package.activated)

    @cached_property
    def monthly_price(self) -> int:
        """What the customer pays in 30 days."""
        return self.income(whole=False) * MONTH_DAYS // WINDOW_DAYS

    @cached_property
    def lasting_charges(self) -> int:
        """What the customer is charged in 30 days for calls and messages, whichever data packages the line has."""
        return sum(cdr.subscriber_cost for cdr in self.records if cdr.usage_type != DATA) * MONTH_DAYS // WINDOW_DAYS

    @cached_property
    def cheapest_price(self) -> Cheapest | None:
        """The least that packages cost in 30 days which cover all that was used; None: nothing was, or none do."""
        needs, wares = needs_of(self.observed, self.line), wares_of(self.observed, self.line)
        if coverable(needs, wares) != needs or not any(needs.values()):
            return None
        return cheapest(needs, wares)
