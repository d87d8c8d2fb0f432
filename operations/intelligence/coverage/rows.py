"""The lines outside their zones, ranked, and the networks that lines are on, summed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from operations.intelligence.coverage.advice import Advice
from operations.intelligence.coverage.map import Code, KnownNetwork
from operations.intelligence.coverage.verdicts import PROBLEMS, Action, Judged, Outside, PackageOffer

SHOWN_OPTIONS = 3
NONE = Outside(0, 0, 0)


class Row(NamedTuple):
    """A line that is not covered."""

    judged: Judged
    outside: Outside | None
    """None: its use could not be read."""
    action: Action
    offer: PackageOffer | None
    steering_list: int | None
    options: tuple[KnownNetwork, ...]

    @property
    def rank(self) -> tuple[int, int, int]:
        """Worst verdict first, then the dearest, then the lowest number: the order depends on nothing else."""
        return PROBLEMS.index(self.judged.verdict), -(self.outside or NONE).weight, self.judged.line.subscriber_id


class NetworkSum(NamedTuple):
    """The lines on one network that were seen lately."""

    country: str | None
    network: KnownNetwork | None
    code: Code
    verdicts: tuple[str, ...]
    outside: Outside


def rows_of(outside: Sequence[Judged], costs: Mapping[int, Outside | None], advice: Advice) -> list[Row]:
    """The lines that are not covered, ranked. A line that was not used in the window cost nothing."""
    rows = [row_of(one, costs.get(one.line.subscriber_id, NONE), advice) for one in outside]
    return sorted(rows, key=lambda row: row.rank)


def row_of(one: Judged, outside: Outside | None, advice: Advice) -> Row:
    """A line with what it cost and what to do."""
    offer = advice.shelf.offer(one) if one.verdict in ("outside_zone", "no_package") else None
    action: Action = "offer_package" if offer is not None else "none"
    if one.verdict == "mis_steered":
        action = advice.steering.action(one)
    cheapest = sorted(one.options, key=lambda network: (advice.prices.get(network.id, float("inf")), network.id))
    options = tuple(cheapest[:SHOWN_OPTIONS]) if one.verdict == "mis_steered" else ()
    return Row(one, outside, action, offer, advice.steering.list_of(one), options)


def sums_of(found: Sequence[Judged], rows: Sequence[Row]) -> list[NetworkSum]:
    """By network: the most mis-steered lines first, then the dearest."""
    outside = {row.judged.line.subscriber_id: row.outside for row in rows}
    groups: dict[Code, list[Judged]] = {}
    for one in found:
        if one.look.code is not None and one.look.packages is not None:
            code = one.look.code if one.network is None else (-1, one.network.id)
            groups.setdefault(code, []).append(one)
    sums = [network_sum(lines, outside) for lines in groups.values()]
    return sorted(sums, key=lambda one: (-one.verdicts.count("mis_steered"), -one.outside.weight, -len(one.verdicts), one.code))


def network_sum(lines: Sequence[Judged], outside: Mapping[int, Outside | None]) -> NetworkSum:
    """One network."""
    costs = [cost for one in lines if (cost := outside.get(one.line.subscriber_id)) is not None]
    total = Outside(sum(cost.data_bytes for cost in costs), sum(cost.cost for cost in costs), sum(cost.charged for cost in costs))
    first = lines[0]
    return NetworkSum(first.country, first.network, first.look.code or (0, 0), tuple(one.verdict for one in lines), total)
