"""To which networks steering lists lead lines, and what follows for a line that would be better on another one.

The charging system shows the names of steering lists and not the networks in them, and a push is answered with OK alone. What a list
prefers is therefore inferred from where the lines that have it are: a list leads to a network where nearly all of its lines are on it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import comb
from typing import NamedTuple

from operations.deps import Ctx
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.money.advice import LEAST_SAVING, AdviceReason, LineAdvice, Saving
from operations.intelligence.money.network_moves import MovedLine, NetworkOfCountry, NetworkPrices, move_saving
from operations.intelligence.offers.coverage_map import CoverageMap, KnownNetwork
from registry.clock import DAY_SECONDS
from storage.fleet_steering import SteeredLines, steered_lines
from storage.line_steering import LineSteering

LEADING_SHARE, LEADING_ODDS = 0.75, 0.05
"""Choice: a list leads to a network if so many of its lines in the country are on it, since phones now and then take another one; and if
the odds are at most so high that a network has so many of them by chance, were all networks of the country alike."""
MANY_LINES = 50
"""Of so many lines three quarters are never on one network by chance: the odds need not be added up."""
PUSH_PAUSE_SECONDS = DAY_SECONDS
"""Choice: a push is not repeated within a day. It is an SMS that the SIM may get late, and the line has to register anew."""
WHY_NOT: tuple[AdviceReason, ...] = ("price_not_known", "dearer", "no_list_known", "cheapest", "not_read")
"""Of several reasons why nothing is advised, the first of these says most."""


class ListSighting(NamedTuple):
    """Lines that were seen lately on a network of a country, with the steering list that holds for them."""

    list_id: int
    sponsor: int | None
    country: str
    network_id: int
    lines: int = 1


SIGHTING_DAYS = 7
"""Choice: where a line was longer ago says nothing of where it is."""


async def sightings_of_fleet(ctx: Ctx, fleet: int, of_accounts: Mapping[int, int | None], coverage: CoverageMap) -> Iterable[ListSighting]:
    """Where the lines of each steering list are, by the read model, each line in the country where it is.

    `of_accounts`: the lists that accounts give to lines without one of their own. Waits for the database.
    """
    since = ctx.now - SIGHTING_DAYS * DAY_SECONDS
    found = await ctx.deps.store.read(steered_lines, fleet=fleet, organisation=ctx.organisation, since=since)
    return counted_sightings(found, of_accounts, coverage)


def counted_sightings(
    found: Iterable[SteeredLines], of_accounts: Mapping[int, int | None], coverage: CoverageMap
) -> Iterator[ListSighting]:
    for each in found:
        list_id, network = each.steering_list or of_accounts.get(each.account_id), coverage.find((each.mcc, each.mnc))
        if list_id is not None and network is not None:
            yield ListSighting(list_id, None if each.sponsor < 0 else each.sponsor, network.country, network.id, each.lines)


class SteeringEvidence:
    """Where the lines of each list are, by sponsor and country: SIMs of another sponsor may use other networks."""

    def __init__(self, seen: Iterable[ListSighting], coverage: CoverageMap) -> None:
        self._seen: dict[tuple[int, int | None, str], Counter[int]] = {}
        self._coverage = coverage
        for one in seen:
            self._seen.setdefault((one.list_id, one.sponsor, one.country), Counter())[one.network_id] += one.lines

    @property
    def lists(self) -> list[int]:
        return sorted({list_id for list_id, _, _ in self._seen})

    def leads_to(self, list_id: int, sponsor: int | None, country: str) -> int | None:
        """The network to which a list leads lines of a country; None: its lines are too few, or not of one mind."""
        found = self._seen.get((list_id, sponsor, country), Counter[int]())
        network_id, lines = max(found.items(), key=lambda one: (one[1], -one[0]), default=(0, 0))
        choices = max(2, len(self._coverage.networks_of(country)))
        leads = lines > 0 and lines >= LEADING_SHARE * found.total() and chance_odds(lines, found.total(), choices) <= LEADING_ODDS
        return network_id if leads else None


def chance_odds(lines: int, total: int, choices: int) -> float:
    """The odds that one of so many equal `choices` has `lines` of `total` lines or more: at most the sum of the odds of each."""
    if total > MANY_LINES:
        return 0.0
    return sum(comb(total, count) * (choices - 1) ** (total - count) for count in range(lines, total + 1)) / choices ** (total - 1)


class SteeredLine(NamedTuple):
    """A line, the network where its money goes, and what is known of its steering."""

    sponsor: int | None
    list_id: int | None
    """Its own, else its account's."""
    country: str
    network: KnownNetwork
    seen: float
    """Unix seconds."""
    zones: tuple[int, ...]
    """Of the packages that data can be taken from."""
    moved: MovedLine | None
    """None: its use could not be read."""
    is_mis_steered: bool


def steered_list(line: FleetLine, steering: LineSteering | None, of_account: int | None, at: float) -> int | None:
    """The list that holds for `line` as its row says, which was read at `at`, Unix seconds; or as it was given later through us."""
    own = line.row.get("steeringListId")
    if steering is not None and steering.assigned is not None and steering.assigned >= at:
        own = steering.list_id
    return own if own is not None else of_account


class SteeringAdviser:
    """Says for each line whether another list, or a push of its own, leads it to a better network. `known`: lists that there are."""

    def __init__(self, evidence: SteeringEvidence, known: frozenset[int] | None, coverage: CoverageMap, prices: NetworkPrices) -> None:
        self._evidence, self._known, self._coverage, self._prices = evidence, known, coverage, prices

    def advise(self, line: SteeredLine, steering: LineSteering | None, now: float) -> LineAdvice:
        """The advice at `now`, Unix seconds. `steering` is what was done to the line's steering through us."""
        if line.moved is None:
            return LineAdvice("none", "not_read")
        if line.sponsor is None:
            return LineAdvice("none", "price_not_known")
        pushed = None if steering is None else steering.pushed
        if pushed is not None and (pushed > now - PUSH_PAUSE_SECONDS or line.seen <= pushed):
            return LineAdvice("none", "pushed_lately")
        better = self._better_networks(line)
        if not isinstance(better, frozenset):
            return LineAdvice("none", better)
        own = line.list_id if self._known is None or line.list_id in self._known else None
        leads = None if own is None else self._evidence.leads_to(own, line.sponsor, line.country)
        reasons: list[AdviceReason] = []
        if leads in better:
            found = self._saving(line, leads, None)
            if isinstance(found, Saving):
                return self._push(line, leads, found) if pushed is None else LineAdvice("none", "push_did_not_help")
            reasons.append(found)
        why: AdviceReason = "no_list" if own is None else "list_leads_there" if leads == line.network.id else "list_not_known"
        changed = self._other_list(line, own, better, reasons)
        if changed is not None:
            return changed._replace(why=why if line.is_mis_steered or own is None else "cheaper_network")
        return LineAdvice("none", min(reasons, key=WHY_NOT.index) if reasons else "no_list_known")

    def _better_networks(self, line: SteeredLine) -> frozenset[int] | AdviceReason:
        """The networks of the country that its packages cover, and whose data costs the operator no more; or why there are none.

        Where its packages cover none, it may use all of them.
        """
        present = self._data_rate(line, line.network)
        there = self._coverage.options(line.zones, line.country) or self._coverage.networks_of(line.country)
        others = [network for network in there if network.id != line.network.id]
        if present is None:
            return "price_not_known"
        rates = {network.id: rate for network in others if (rate := self._data_rate(line, network)) is not None}
        found = frozenset(id for id, rate in rates.items() if rate <= present)
        if found:
            return found
        return "cheapest" if not line.is_mis_steered else "dearer" if rates else "price_not_known"

    def _data_rate(self, line: SteeredLine, network: KnownNetwork) -> int | None:
        return self._prices.buying.rate(network.id, line.sponsor, "data")

    def _saving(self, line: SteeredLine, network_id: int, elsewhere: NetworkOfCountry | None) -> Saving | AdviceReason:
        """What the line would save there, if it harms nobody and is worth a call; else why not."""
        if line.moved is None:
            return "not_read"
        found = move_saving(line.moved, line.country, network_id, elsewhere, self._coverage, self._prices)
        if not isinstance(found, Saving):
            return found
        if not found.harms_nobody:
            return "dearer"
        return found if line.is_mis_steered or found.total >= LEAST_SAVING else "cheapest"

    def _push(self, line: SteeredLine, network_id: int, saving: Saving) -> LineAdvice:
        return LineAdvice("push_steering", "list_leads_elsewhere", saving, self._coverage.network(network_id))

    def _other_list(self, line: SteeredLine, own: int | None, better: frozenset[int], reasons: list[AdviceReason]) -> LineAdvice | None:
        """The list that is known to lead to a better network, here and wherever else the line was used, and saves most."""
        found: list[tuple[int, int, int, Saving]] = []
        for list_id in self._evidence.lists:
            leads = self._evidence.leads_to(list_id, line.sponsor, line.country)
            if list_id == own or leads not in better or (self._known is not None and list_id not in self._known):
                continue
            saving = self._saving(line, leads, partial(self._evidence.leads_to, list_id, line.sponsor))
            if isinstance(saving, Saving):
                found.append((-saving.total, list_id, leads, saving))
            else:
                reasons.append(saving)
        if not found:
            return None
        _, list_id, leads, saving = min(found)
        return LineAdvice("change_steering_list", "cheaper_network", saving, self._coverage.network(leads), list_id)
