"""Everything that a diagnosis looks at: read at once, and what cannot be read is named, not fatal."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, NamedTuple

import anyio

from clients.ocs.packages import Package, PackageList
from clients.ocs.resellers import Account
from clients.ocs.subscribers import ProviderStatus, Subscriber
from clients.ocs.times import wire_seconds
from operations.deps import Ctx
from operations.fleet.wire_rows import line_rows
from operations.intelligence.diagnosis.line_days import LineDays, LineDaysReader
from operations.intelligence.lines.fleet_lines import fleet_line
from operations.intelligence.lines.usage import LineUse
from operations.intelligence.offers.coverage_map import CoverageMap, read_coverage_map
from operations.times import WEEK_DAYS, DayWindow, utc_today
from operations.upstream.lines import Line, PackageState, line_status_word, package_end, package_start, package_state
from operations.upstream.signalling import LineSignalling, NetworkCode, line_signalling, network_code
from operations.upstream.usage import micro_euros
from registry.clock import limit_reading_time
from registry.errors import OcsNotFound, Refusal
from storage.fleet_judgements import LinePast

FactPart = Literal["packages", "speed", "profile", "signalling", "usage", "zones", "balance"]


class DataPackage(NamedTuple):
    """A package that holds data; bytes, Unix seconds. `state` looks at the data alone: one that has messages left is exhausted."""

    id: int
    template_id: int
    zone_id: int
    state: PackageState
    limit: int
    used: int
    starts: float | None
    ends: float | None
    price: int = 0
    """Micro-euro that the customer pays for it."""

    @property
    def usable(self) -> bool:
        """Whether data can be taken from it where it works."""
        return self.state in USABLE_STATES

    @property
    def left(self) -> int:
        """Bytes that remain."""
        return max(0, self.limit - self.used)


@dataclass(slots=True)
class LineFacts:
    """What is known of a line at `now`, Unix seconds. A part that could not be read is None, and is named in `unread`."""

    now: float
    row: Subscriber
    window: DayWindow
    unread: list[FactPart]
    packages: list[DataPackage] | None = None
    supply: PackageList | None = None
    """The packages as the charging system told them."""
    upcoming: bool = False
    """Whether a series is to make its first package yet."""
    limit: str | None = None
    profile: list[ProviderStatus] | None = None
    signalling: LineSignalling | None = None
    usage: LineUse | None = None
    """Of the last seven days with today."""
    days: LineDays | None = None
    """What was used in ninety days."""
    past: LinePast | None = None
    """What the read model has of the line; None: it is in none."""
    zones: CoverageMap | None = None
    balance: float | None = None
    """EUR that use outside packages can be paid from."""

    @property
    def status(self) -> str:
        return line_status_word(self.row)

    @property
    def code(self) -> NetworkCode | None:
        info = self.row.get("networkInfo", {})
        told = network_code(info.get("lastMcc"), info.get("lastMnc"))
        return told or network_code(self.row.get("lastMcc"), self.row.get("lastMnc"))

    @property
    def seen(self) -> float | None:
        return wire_seconds(self.row.get("networkInfo", {}).get("time"))

    @property
    def last_used(self) -> float | None:
        return wire_seconds(self.row.get("lastUsageDate"))

    @property
    def usable(self) -> list[DataPackage]:
        """Packages from which data can be taken now."""
        return [package for package in self.packages or () if package.usable]


async def read_line_facts(ctx: Ctx, line: Line) -> LineFacts:
    """All parts at once. Choice: signalling and use of the last seven days, today included. Waits for the network."""
    limit_reading_time()
    last = utc_today(ctx.now)
    facts = LineFacts(ctx.now, line.row, DayWindow(last - timedelta(days=WEEK_DAYS - 1), last), [])
    reader = FactReader(ctx, line, facts)
    parts: dict[FactPart, Callable[[], Awaitable[None]]] = {
        "packages": reader.packages,
        "speed": reader.speed,
        "profile": reader.profile,
        "signalling": reader.signalling,
        "usage": reader.usage,
        "zones": reader.zones,
        "balance": reader.balance,
    }
    async with anyio.create_task_group() as group:
        for part, read in parts.items():
            group.start_soon(read_fact, facts, part, read)
    facts.unread.sort(key=list(parts).index)
    return facts


async def read_fact(facts: LineFacts, part: FactPart, read: Callable[[], Awaitable[None]]) -> None:
    """Reads one part into `facts`; a part that is refused is noted as missing."""
    try:
        await read()
    except Refusal:
        facts.unread.append(part)


class FactReader:
    """Reads the parts of one line."""

    def __init__(self, ctx: Ctx, line: Line, facts: LineFacts) -> None:
        self._ctx, self._line, self._facts = ctx, line, facts
        self._ocs, self._lock = line.upstream.ocs, anyio.Lock()

    async def packages(self) -> None:
        found = await self._ocs.packages.list_packages(self._line.subscriber_id, version="v2")
        self._facts.supply, self._facts.packages = found, data_packages(found, self._facts.now)
        waiting = [series for series in found.get("recurring", []) if series.get("active") is not False and not series.get("nbCreated")]
        self._facts.upcoming = bool(waiting)

    async def speed(self) -> None:
        self._facts.limit = await self._ocs.subscriber.hlr_get_bitrate(self._line.imsi)

    async def profile(self) -> None:
        """What the provider said of the profile; a provider that does not know it has said nothing."""
        try:
            self._facts.profile = await self._ocs.subscriber.get_sim_provider_status(self._line.sim_id)
        except OcsNotFound:
            self._facts.profile = []

    async def signalling(self) -> None:
        window = self._facts.window
        found = await self._ocs.statistics.network_events_over_period(self._line.subscriber_id, window.first, window.last)
        self._facts.signalling = line_signalling(found)

    async def usage(self) -> None:
        """The use of the line. A row without an ICCID belongs to no line that could be read."""
        line, rows = fleet_line(self._line.row), line_rows(self._line.row, personal=False)
        if line is not None and rows is not None:
            reader = LineDaysReader(self._ctx, self._line, line, rows[0])
            self._facts.past = await reader.past()
            self._facts.days = await reader.read(self._facts.past, await self._accounts())
            self._facts.usage = self._facts.days.week

    async def _accounts(self) -> Sequence[Account]:
        """The caller's accounts. Two parts need them: whoever comes second waits for the first."""
        async with self._lock:
            return await self._line.upstream.accounts()

    async def zones(self) -> None:
        self._facts.zones = await read_coverage_map(self._line.upstream)

    async def balance(self) -> None:
        """The line's own balance, or the account's if that pays; an account that has packages only has no balance to spend."""
        row = self._facts.row
        if not row.get("useAccountForCharging"):
            self._facts.balance = row.get("balance")
            return
        for account in await self._accounts():
            if account.get("id") == row.get("accountId"):
                self._facts.balance = 0.0 if account.get("packageOnly") else account.get("balance")


USABLE_STATES = frozenset({"running", "assigned"})


def data_packages(found: PackageList, now: float) -> list[DataPackage]:
    """The packages that hold data, by id. `now`: Unix seconds. Others cannot explain why there is data or none."""
    single = found.get("callUseSingleCounter", False)
    held = [data_package(row, now, single) for row in found.get("packages", []) if row.get("pckdatabyte", 0) > 0]
    return sorted(held)


def data_package(row: Package, now: float, single: bool) -> DataPackage:
    limit, used = row.get("pckdatabyte", 0), row.get("useddatabyte", 0)
    state = package_state(row, now, single_counter=single)
    if used >= limit and state in USABLE_STATES:
        state = "exhausted"
    starts, ends = package_start(row), package_end(row)
    template = row.get("templateId") or row.get("packageTemplate", {}).get("prepaidpackagetemplateid", 0)
    zone = row.get("locationzoneid") or row.get("rdbLocationZones", {}).get("locationzoneid", 0)
    return DataPackage(
        row.get("subscriberprepaidpackageid", 0),
        template,
        zone,
        state,
        limit,
        used,
        None if starts is None else starts.timestamp(),
        None if ends is None else ends.timestamp(),
        micro_euros(row.get("cost")),
    )


def packages_in_date(packages: Sequence[DataPackage], now: float) -> list[DataPackage]:
    """The packages that have not expired, blocked ones included."""
    return [package for package in packages if package.state != "expired" and (package.ends is None or package.ends > now)]
