"""The whole simulated network at one moment: records by id, the clock, and the look-ups the wire needs."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal, NamedTuple

from simulators.network.entities import (
    BalanceChange,
    Line,
    NetworkToken,
    Package,
    PackageSeries,
    PackageTemplate,
    ProviderRow,
    Reseller,
    ResellerAccount,
)
from simulators.network.line_behaviour import Agenda

SimCounts = Counter[tuple[int, str]]

AFTER_IDENTIFIERS = "~"
"""Sorts behind every digit and letter of an identifier."""


class PendingPush(NamedTuple):
    at: int
    url: str
    body: dict[str, object]


@dataclass(slots=True)
class LineIndex:
    """Look-ups of one world's lines."""

    named: dict[str, dict[str | int, int]] = field(default_factory=dict[str, dict[str | int, int]])
    sorted: dict[str, list[tuple[str, int]]] = field(default_factory=dict[str, list[tuple[str, int]]])
    accounts: dict[int, list[Line]] = field(default_factory=dict[int, list[Line]])
    free: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """Heaps of the ids of an account's free lines; one that is not free any more may still be in it."""
    sims: dict[int, SimCounts] = field(default_factory=dict[int, SimCounts])

    def line(self, lines: Mapping[int, Line], kind: str, value: str | int) -> Line | None:
        """The line that has this value now; of several the one with the lowest id."""
        if kind not in self.named:
            values, found = CURRENT_IDENTIFIERS[kind], dict[str | int, int]()
            for line in lines.values():
                for each in values(line):
                    found.setdefault(each, line.id)
            self.named[kind] = found
        id = self.named[kind].get(value)
        return None if id is None else lines[id]

    def with_prefix(self, lines: Mapping[int, Line], kind: str, prefix: str) -> list[Line]:
        """The lines that have or had a value that begins so, lowest id first."""
        if kind not in self.sorted:
            values = ALL_IDENTIFIERS[kind]
            self.sorted[kind] = sorted((each, line.id) for line in lines.values() for each in values(line))
        rows = self.sorted[kind]
        first, end = bisect_left(rows, (prefix, 0)), bisect_left(rows, (prefix + AFTER_IDENTIFIERS, 0))
        return [lines[id] for id in sorted({id for _, id in rows[first:end]})]

    def of_account(self, lines: Mapping[int, Line], account: int) -> Sequence[Line]:
        """An account's lines, lowest id first."""
        if not self.accounts:
            for line in lines.values():
                self.accounts.setdefault(line.account_id, []).append(line)
        return self.accounts.get(account, [])

    def first_free(self, lines: Mapping[int, Line], account: int) -> Line | None:
        """The account's line with the lowest id whose SIM is free."""
        if account not in self.free:
            self.free[account] = [line.id for line in self.of_account(lines, account) if line.sim.status == "FREE"]
        heap = self.free[account]
        while heap and lines[heap[0]].sim.status != "FREE":
            heappop(heap)
        return lines[heap[0]] if heap else None

    def esims(self, lines: Mapping[int, Line], account: int) -> SimCounts:
        """How many eSIMs of an account there are, by sponsor and status."""
        if account not in self.sims:
            self.sims[account] = Counter(
                (line.sim.sponsor_id, line.sim.status) for line in self.of_account(lines, account) if line.sim.esim
            )
        return self.sims[account]

    def number_changed(self, line: Line) -> None:
        """Updates the look-ups after the phone number of a line changed."""
        before, after = line.numbers[-2].number, line.numbers[-1].number
        if "msisdn" in self.named:
            if self.named["msisdn"].get(before) == line.id:
                del self.named["msisdn"][before]
            self.named["msisdn"][after] = line.id
        if "msisdnPrefix" in self.sorted:
            insort(self.sorted["msisdnPrefix"], (after, line.id))

    def sim_changed(self, line: Line, before: str) -> None:
        """Updates the look-ups after the status of a line's SIM changed from `before`."""
        after = line.sim.status
        if after == "FREE" != before and line.account_id in self.free:
            heappush(self.free[line.account_id], line.id)
        if line.sim.esim and line.account_id in self.sims:
            self.sims[line.account_id][line.sim.sponsor_id, before] -= 1
            self.sims[line.account_id][line.sim.sponsor_id, after] += 1

    def moved(self) -> None:
        """Drops the look-ups by account after lines moved."""
        self.accounts.clear()
        self.free.clear()
        self.sims.clear()


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
    indexed: tuple[int, ...] = field(default=(), repr=False, compare=False)
    """The networks that `index` was made of."""
    index: frozenset[int] = field(default=frozenset(), repr=False, compare=False)

    @property
    def networks(self) -> frozenset[int]:
        """The networks of the zone, as a set that is made once."""
        if self.indexed is not self.network_ids:
            self.indexed, self.index = self.network_ids, frozenset(self.network_ids)
        return self.index


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


@dataclass(slots=True)
class World:
    """Everything. `now` is the simulated time in Unix seconds; only `simulation.run_world_to` moves it."""

    seed: int
    now: int
    row_cap: int = 1000
    """listSubscriber answers at most this many rows."""
    tells_more: bool = field(default=False, repr=False)
    """Lists hold what the documentation leaves out: the networks of steering lists, the throttling of templates."""
    countries: dict[str, Country] = field(default_factory=dict[str, Country])
    networks: dict[int, Network] = field(default_factory=dict[int, Network])
    sponsors: dict[int, Sponsor] = field(default_factory=dict[int, Sponsor])
    resellers: dict[int, Reseller] = field(default_factory=dict[int, Reseller])
    sponsored: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    """Reseller id to the ids of its sponsors."""
    accounts: dict[int, ResellerAccount] = field(default_factory=dict[int, ResellerAccount])
    profiles: dict[int, NetworkProfile] = field(default_factory=dict[int, NetworkProfile])
    zones: dict[int, Zone] = field(default_factory=dict[int, Zone])
    destinations: dict[int, DestinationList] = field(default_factory=dict[int, DestinationList])
    steering: dict[int, SteeringList] = field(default_factory=dict[int, SteeringList])
    tariffs: dict[int, Tariff] = field(default_factory=dict[int, Tariff])
    voip_tariffs: dict[int, VoipTariff] = field(default_factory=dict[int, VoipTariff])
    templates: dict[int, PackageTemplate] = field(default_factory=dict[int, PackageTemplate])
    lines: dict[int, Line] = field(default_factory=dict[int, Line])
    """By subscriber id, ascending."""
    tokens: dict[str, NetworkToken] = field(default_factory=dict[str, NetworkToken])
    transactions: list[BalanceChange] = field(default_factory=list[BalanceChange])
    pushes: list[PendingPush] = field(default_factory=list[PendingPush])
    """Waiting to be sent, oldest first."""
    packages: dict[int, Package] = field(default_factory=dict[int, Package])
    """Every package on a line, by id: the same objects as in Line.packages."""
    series: dict[int, PackageSeries] = field(default_factory=dict[int, PackageSeries])
    counters: dict[str, int] = field(default_factory=dict[str, int])
    agenda: Agenda = field(default_factory=Agenda, repr=False, compare=False)
    lookup: LineIndex = field(default_factory=LineIndex, repr=False, compare=False)

    def next_id(self, kind: str) -> int:
        """The next id of a kind; the seed sets where each begins."""
        value = self.counters.get(kind, 0) + 1
        self.counters[kind] = value
        return value

    def queue_push(self, url: str, body: dict[str, object]) -> None:
        """Queue a notification. An empty `url` means that the reseller does not want this kind."""
        if url:
            self.pushes.append(PendingPush(self.now, url, body))

    def add_provider_status(self, line: Line, status: str, profile_type: str) -> None:
        """Append a status of the provider's profile, end the row before, and notify the reseller (ES2+)."""
        rows = line.sim.provider
        if rows:
            rows[-1].end = self.now
        rows.append(ProviderRow(status, self.now, profile_type))
        body: dict[str, object] = {"iccid": line.iccid, "imsi": line.imsi, "eid": line.sim.eid, "subsId": line.id, "status": status}
        self.queue_push(self.resellers[line.reseller_id].push.esim_url, body)

    def family(self, reseller_id: int) -> frozenset[int]:
        """A reseller and its descendants: what its token may see."""
        found = {reseller_id}
        for reseller in self.resellers.values():  # a parent has a lower id than its children
            if reseller.parent_id in found:
                found.add(reseller.id)
        return frozenset(found)

    def forget(self) -> None:
        """Drops the look-ups that are kept for speed."""
        self.lookup, self.agenda = LineIndex(), Agenda()

    def lines_of(self, account_id: int) -> Sequence[Line]:
        return self.lookup.of_account(self.lines, account_id)


CURRENT_IDENTIFIERS: Mapping[str, Callable[[Line], Iterable[str | int]]] = {
    "iccid": lambda line: (line.iccid,),
    "imsi": lambda line: (line.imsi,),
    "msisdn": lambda line: (line.number,),
    "multiImsi": lambda line: (row.imsi for row in line.multi_imsis if row.end is None),
    "activationCode": lambda line: (line.sim.activation_code,),
    "sim": lambda line: (line.sim.id,),
}
"""The values that name a line now, by the kind of identifier."""

ALL_IDENTIFIERS: Mapping[str, Callable[[Line], Iterable[str]]] = {
    "imsiPrefix": lambda line: (row.imsi for row in line.imsis),
    "iccidPrefix": lambda line: (row.iccid for row in line.imsis),
    "msisdnPrefix": lambda line: (row.number for row in line.numbers),
}
"""The values that a line has or had, by the filter that looks for their beginning."""
