"""The whole simulated network at one moment: records by id, the clock, and the look-ups the wire needs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from clients.sandbox.ocs.agenda import Agenda
from clients.sandbox.ocs.entities import Account, Line, Package, Reseller, Series, Template, Token, Transaction
from clients.sandbox.ocs.lookup import Lookup
from clients.sandbox.ocs.places import Country, DestinationList, Network, NetworkProfile, Sponsor, SteeringList, Zone
from clients.sandbox.ocs.prices import Tariff, VoipTariff


class Push(NamedTuple):
    """A notification that waits to be sent: to which URL, and the JSON body."""

    at: int
    url: str
    body: dict[str, object]


@dataclass(slots=True)
class World:
    """Everything. `now` is the simulated time in Unix seconds; only `life.run_to` moves it."""

    seed: int
    now: int
    row_cap: int = 1000
    """listSubscriber answers at most this many rows."""
    countries: dict[str, Country] = field(default_factory=dict[str, Country])
    networks: dict[int, Network] = field(default_factory=dict[int, Network])
    sponsors: dict[int, Sponsor] = field(default_factory=dict[int, Sponsor])
    resellers: dict[int, Reseller] = field(default_factory=dict[int, Reseller])
    sponsored: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    """Reseller id to the ids of its sponsors."""
    accounts: dict[int, Account] = field(default_factory=dict[int, Account])
    profiles: dict[int, NetworkProfile] = field(default_factory=dict[int, NetworkProfile])
    zones: dict[int, Zone] = field(default_factory=dict[int, Zone])
    destinations: dict[int, DestinationList] = field(default_factory=dict[int, DestinationList])
    steering: dict[int, SteeringList] = field(default_factory=dict[int, SteeringList])
    tariffs: dict[int, Tariff] = field(default_factory=dict[int, Tariff])
    voip_tariffs: dict[int, VoipTariff] = field(default_factory=dict[int, VoipTariff])
    templates: dict[int, Template] = field(default_factory=dict[int, Template])
    lines: dict[int, Line] = field(default_factory=dict[int, Line])
    """By subscriber id, ascending."""
    tokens: dict[str, Token] = field(default_factory=dict[str, Token])
    transactions: list[Transaction] = field(default_factory=list[Transaction])
    pushes: list[Push] = field(default_factory=list[Push])
    """Waiting to be sent, oldest first."""
    packages: dict[int, Package] = field(default_factory=dict[int, Package])
    """Every package on a line, by id: the same objects as in Line.packages."""
    series: dict[int, Series] = field(default_factory=dict[int, Series])
    counters: dict[str, int] = field(default_factory=dict[str, int])
    agenda: Agenda = field(default_factory=Agenda, repr=False, compare=False)
    lookup: Lookup = field(default_factory=Lookup, repr=False, compare=False)

    def next_id(self, kind: str) -> int:
        """The next id of a kind; the seed sets where each begins."""
        value = self.counters.get(kind, 0) + 1
        self.counters[kind] = value
        return value

    def family(self, reseller_id: int) -> frozenset[int]:
        """A reseller and its descendants: what its token may see."""
        found = {reseller_id}
        for reseller in self.resellers.values():  # a parent has a lower id than its children
            if reseller.parent_id in found:
                found.add(reseller.id)
        return frozenset(found)

    def forget(self) -> None:
        """Look everything up anew that is kept for speed."""
        self.lookup, self.agenda = Lookup(), Agenda()

    def lines_of(self, account_id: int) -> Sequence[Line]:
        """An account's lines, lowest id first."""
        return self.lookup.of_account(self.lines, account_id)
