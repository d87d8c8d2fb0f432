"""The simulated charging system in a process of its own, which no kill touches: its log of calls is what a run is judged by."""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from clients.http import Outbound
from clients.ocs.client import Ocs, OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from tests.harness.fork_server import reseller
from tests.harness.processes import environment
from tests.harness.shared_clock import SharedClock
from tests.network_facts import CHANGE, DELETE, DRAW

NETWORK_TOKEN = "sandbox-7001-token"
ACCOUNTS = (8101, 8103)
FJORD = 7001
WRITES = (DRAW, DELETE, CHANGE)
OTHER_TEMPLATES = (*range(55011, 55036), 55040)
LINES = 1000
LOGGED = 10_000
"""Calls that the network remembers."""
FRESH = httpx.Limits(keepalive_expiry=1)
"""The simulations close a connection that was idle for 5 seconds; a call on it just then would be lost."""


class Drawn(NamedTuple):
    """How a package was asked for: what tells one key's dispatch from another's. Without days it is an intent's."""

    account: int
    template: int
    days: int | None


class Given(NamedTuple):
    """A package that was seen on a line."""

    iccid: str
    package: int


@dataclass(slots=True)
class NetworkProcess:
    """Its addresses, what it has been seen to give, and the time that it shares with the service."""

    url: str
    clock: SharedClock
    control: httpx.AsyncClient
    ocs: Ocs
    pid: int
    sims: dict[int, str] = field(default_factory=dict[int, str])
    """The ICCID of every SIM."""
    given: defaultdict[Drawn, set[Given]] = field(default_factory=lambda: defaultdict[Drawn, set[Given]](set))
    """Which packages there were at any time that somebody looked."""
    log: dict[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])
    """Every writing call that reached it, by number. It forgets old calls; what somebody looked at stays here."""
    days: int = 0
    templates: dict[int, int] = field(default_factory=dict[int, int])
    _read: int = 0
    """Every call up to this number was there when somebody read the log."""
    _free: set[int] = field(default_factory=set[int])
    _drawn: set[int] = field(default_factory=set[int])

    def next_days(self) -> int:
        """Days that no other key asks for."""
        self.days += 1
        return self.days

    def next_template(self, account: int) -> int | None:
        """A template that no other intent draws from this account; None when there is no more."""
        used = self.templates.get(account, 0)
        self.templates[account] = used + 1
        return OTHER_TEMPLATES[used] if used < len(OTHER_TEMPLATES) else None

    async def offer_of(self, template: int) -> Mapping[str, Any]:
        """What a product of `template` may promise: no more than its packages have, in a country where they work."""
        (found,) = await self.ocs.templates.list(template_id=template)
        zones = await self.ocs.zones.detailed_location_zones(FJORD)
        (zone,) = [each for each in zones if each.get("zoneId") == found.get("locationzoneid")]
        country = zone.get("operators", [])[0].get("countryIso2", "").upper()
        data, days = found.get("databyte", 0) // 1_000_000, found.get("perioddays", 0)
        return {"data_mb": data, "validity_days": days, "countries": [country], "package_template_id": template}

    async def advance(self, seconds: float) -> None:
        """Time passes, here and for the service."""
        await self._control("POST", "advance", {"seconds": int(seconds)})
        self.clock.advance(int(seconds))

    async def meet(self, **fault: object) -> None:
        """The next call of a method meets a fault."""
        await self._control("POST", "faults", fault)

    async def heal(self) -> None:
        await self._control("DELETE", "faults", {})

    async def packages(self) -> set[int]:
        """What is on the lines now that any was ever seen drawn from."""
        found: set[int] = set()
        for number in self._drawn:
            rows = (await self.ocs.packages.list_packages(number)).get("packages", [])
            found |= {row.get("subscriberprepaidpackageid", 0) for row in rows}
        return found

    async def count(self, method: str) -> int:
        return int((await self._control("GET", f"calls?method={method}&limit=0", None))["total"])

    async def look(self) -> None:
        """See what was written, and which of the lines that were free have which packages."""
        await self.read_log()
        for account in ACCOUNTS:
            for row in (await self.ocs.subscriber.list_subscriber(account)).get("subscriberList", []):
                number, sim = row.get("subscriberId", 0), row.get("sim", {})
                iccid = row.get("imsiList", [])[-1].get("iccid", "")
                self.sims[sim.get("id", 0)] = iccid
                if sim.get("status") == "FREE":
                    self._free.add(number)
                elif number in self._free:
                    await self._look_at(account, number, iccid)

    async def read_log(self) -> None:
        """See what was written. Raises AssertionError where the network may have forgotten a call that nobody has read."""
        before = await self._answered()
        for method in WRITES:
            rows: Sequence[Mapping[str, Any]] = (await self._control("GET", f"calls?method={method}&limit={LOGGED}", None))["calls"]
            self.log.update((row["number"], row) for row in rows)
        unread = await self._answered() - self._read
        assert unread <= LOGGED, f"{unread} calls since the log was read, and the network remembers {LOGGED}: read it more often"
        self._read = max(self._read, before)

    async def _answered(self) -> int:
        return int((await self._control("GET", "state", None))["calls"])

    async def _look_at(self, account: int, number: int, iccid: str) -> None:
        for package in (await self.ocs.packages.list_packages(number)).get("packages", []):
            begins, ends = package.get("tsactivationutc"), package.get("tsexpirationutc")
            days = None if begins is None or ends is None else days_between(begins, ends)
            drawn = Drawn(account, package.get("templateId", 0), days)
            self.given[drawn].add(Given(iccid, package.get("subscriberprepaidpackageid", 0)))
            self._drawn.add(number)

    async def _control(self, method: str, path: str, body: object) -> Any:
        answer = await self.control.request(method, path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()


def days_between(begins: str, ends: str) -> int:
    first, last = datetime.fromisoformat(begins), datetime.fromisoformat(ends)
    return round((last - first).total_seconds() / 86_400)


@asynccontextmanager
async def network_process(place: Path, *, lines: int = LINES) -> AsyncGenerator[NetworkProcess]:
    """`reseller sandbox ocs` for the length of a block, with enough free eSIMs for a long run."""
    clock = SharedClock(place / "clock")
    words = ("sandbox", "ocs", "--port", "0", "--lines", str(lines), "--history-days", "0", "--row-cap", str(max(lines, 5000)))
    with (place / "sandbox.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            reseller(), *words, cwd=place, env=environment(), stdout=asyncio.subprocess.PIPE, stderr=log
        )
    assert process.stdout is not None
    found = re.search(rb"http://[0-9.]+:\d+", await process.stdout.readline())
    assert found is not None, (place / "sandbox.log").read_text()
    base = found[0].decode()
    wire = OcsSettings(url=base + "/v1")
    pool = OcsPool(Outbound(ocs_limits(wire)), wire, clock)
    try:
        async with httpx.AsyncClient(base_url=base + "/control", timeout=60, verify=False, limits=FRESH) as control:
            made = NetworkProcess(base + "/v1", clock, control, pool.for_token(NETWORK_TOKEN), process.pid)
            await made.look()
            yield made
    finally:
        await pool.aclose()
        process.kill()
        await process.wait()
        clock.close()
