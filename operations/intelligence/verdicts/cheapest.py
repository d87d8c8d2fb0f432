"""The plan of packages for what a stored line used, by the same search as optimize_package."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from clients.ocs.packages import PackageList
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.stored_use import FleetNetworks, stored_line_use
from operations.intelligence.lines.usage import last_whole_days
from operations.intelligence.offers.offers import OfferCatalogue
from operations.intelligence.offers.plans import LinePackagePlan, draft_plan, finish_plans
from operations.times import WEEK_DAYS
from storage.fleet_usage import FleetUsageRow


class CheapestPackages(NamedTuple):
    """The least that packages cost a customer in 30 days, micro-euro, with what stays outside them; and their templates."""

    price: int
    templates: tuple[int, ...]


class StoredLinePlan:
    """The plan of a stored line at one moment (Unix seconds). It is searched for once, when somebody asks: that takes milliseconds."""

    def __init__(
        self,
        line: FleetLine,
        usage: Sequence[FleetUsageRow],
        packages: PackageList,
        offers: OfferCatalogue,
        networks: FleetNetworks,
        now: float,
    ) -> None:
        self._line, self._usage, self._packages, self._offers, self._networks, self._now = line, usage, packages, offers, networks, now

    @cached_property
    def plan(self) -> LinePackagePlan:
        """The plan, with its verdict."""
        window, week = last_whole_days(self._now), last_whole_days(self._now, WEEK_DAYS)
        uses = [stored_line_use(self._usage, self._networks, span.first.toordinal(), span.last.toordinal()) for span in (window, week)]
        [plan] = finish_plans([draft_plan(self._line, uses[0], uses[1], self._packages, self._offers, window)], self._offers)
        return plan

    def cheapest(self) -> CheapestPackages | None:
        """The cheapest set that covers all that the line used in four weeks; None where there is none, or the search was cut short."""
        plan = self.plan
        best = plan.found.best
        if best is None or plan.uncovered or not plan.found.proven or plan.verdict == "mis_steered":
            return None
        return CheapestPackages(best.price + plan.charged_then, tuple(template for template, _ in best.counts))
