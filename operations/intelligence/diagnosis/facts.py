"""Everything that a diagnosis looks at: read at once, and what cannot be read is named, not fatal."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeVar, cast

import anyio

from clients.ocs.failure import OcsNotFound
from clients.ocs.wire.package import PackageList
from clients.ocs.wire.reseller import Account
from clients.ocs.wire.subscriber import ProviderStatus, Subscriber
from operations.deps import Ctx
from operations.intelligence.coverage.map import Code, CoverageMap, code_of, coverage_of
from operations.intelligence.fleet.reading import line_of, status_word
from operations.intelligence.lines.registrations import Signalling, signalling_of
from operations.intelligence.lines.use import use_of
from operations.intelligence.packages.held import DataPackage, data_packages
from operations.services.network.lines import Line
from operations.services.network.usage_weeks import LineUse
from operations.services.network.utc_moment import seconds_of
from operations.services.network.windows import WEEK, Window, today
from registry.active_request import read_until
from registry.errors import Refusal

T = TypeVar("T")
Part = Literal["packages", "speed", "profile", "signalling", "usage", "zones", "balance"]


@dataclass(slots=True)
class Facts:
    """What is known of a line. None: it could not be read; `unread` says of what."""

    now: float
    row: Subscriber
    window: Window
    unread: list[Part]
    packages: list[DataPackage] | None = None
    upcoming: bool = False
    """Whether a series is to make its first package yet."""
    limit: str | None = None
    profile: list[ProviderStatus] | None = None
    signalling: Signalling | None = None
    usage: LineUse | None = None
    zones: CoverageMap | None = None
    balance: float | None = None
    """EUR that use outside packages can be paid from."""

    @property
    def status(self) -> str:
        """In our words."""
        return status_word(self.row)

    @property
    def code(self) -> Code | None:
        """The network it was seen on last."""
        info = self.row.get("networkInfo", {})
        told = code_of(info.get("lastMcc"), info.get("lastMnc"))
        return told or code_of(self.row.get("lastMcc"), self.row.get("lastMnc"))

    @property
    def seen(self) -> float | None:
        """When."""
        return seconds_of(self.row.get("networkInfo", {}).get("time"))

    @property
    def usable(self) -> list[DataPackage]:
        """Packages that data can be taken from."""
        return [package for package in self.packages or () if package.usable]


async def facts_of(ctx: Ctx, line: Line) -> Facts:
    """All parts at once. Choice: signalling of the last seven days with today, and use of as many."""
    read_until()
    last = today(ctx.now)
    facts = Facts(ctx.now, line.row, Window(last - timedelta(days=WEEK - 1), last), [])
    reader = Reader(ctx, line, facts)
    parts: dict[Part, Callable[[], Awaitable[None]]] = {
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
            group.start_soon(attempt, facts, part, read)
    facts.unread.sort(key=list(parts).index)
    return facts


async def attempt(facts: Facts, part: Part, read: Callable[[], Awaitable[None]]) -> None:
    """One part, or a note that it is missing, whoever refused it."""
    try:
        await read()
    except Refusal:
        facts.unread.append(part)


class Reader:
    """Reads the parts of one line."""

    def __init__(self, ctx: Ctx, line: Line, facts: Facts) -> None:
        self._ctx, self._line, self._facts = ctx, line, facts
        self._ocs = line.upstream.ocs

    async def packages(self) -> None:
        """Packages and series."""
        found = await self._ocs.packages.list_packages(self._line.subscriber_id, version="v2")
        self._facts.packages = data_packages(found, self._facts.now)
        self._facts.upcoming = upcoming(found)

    async def speed(self) -> None:
        """The limit that holds now."""
        self._facts.limit = await self._ocs.subscriber.hlr_get_bitrate(self._line.imsi)

    async def profile(self) -> None:
        """What the provider said of the profile; one that does not know it has said nothing."""
        try:
            self._facts.profile = await self._ocs.subscriber.get_sim_provider_status(self._line.sim_id)
        except OcsNotFound:
            self._facts.profile = []

    async def signalling(self) -> None:
        """Registrations and sessions."""
        window = self._facts.window
        found = await self._ocs.statistics.network_events_over_period(self._line.subscriber_id, window.first, window.last)
        self._facts.signalling = signalling_of(found)

    async def usage(self) -> None:
        """What it used. A row that does not tell its own ICCID is of no line that could be read."""
        line = line_of(self._line.row)
        if line is not None:
            self._facts.usage = await use_of(self._line.upstream, line, self._facts.window, self._ctx.deps.weeks, self._facts.now)

    async def zones(self) -> None:
        """Where packages work."""
        self._facts.zones = await coverage_of(self._line.upstream)

    async def balance(self) -> None:
        """The line's own balance, or its account's where that pays; an account of packages only has none to spend."""
        row = self._facts.row
        if not row.get("useAccountForCharging"):
            self._facts.balance = row.get("balance")
            return
        accounts = await self._line.upstream.accounts()
        account = next((found for found in accounts if found.get("id") == row.get("accountId")), cast(Account, {}))
        self._facts.balance = 0.0 if account.get("packageOnly") else account.get("balance")


def upcoming(found: PackageList) -> bool:
    """Whether a series has not made its first package."""
    return any(series.get("active") is not False and not series.get("nbCreated") for series in found.get("recurring", []))
