"""Lines of a fleet, what happens to them, and what the log of events tells of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
import sqlalchemy as sa

from simulators.network.entities import Line, LineStatus, Package
from simulators.network.methods.subscribers import begin_line_status
from simulators.network.radio import attach_to_network
from simulators.network.world import World as Network
from storage.engine.sql import Connection, Query
from storage.event_log import EVENT_LOG
from tests.bridge.pushing import push_signed, push_status
from tests.fleet.stage import ReadModelStage, open_read_model_stage
from tests.network_facts import OWN_TOKEN
from tests.world import Credentials

LISTING_SECONDS = 301
"""Then the lines are listed again."""


class LoggedLineEvent(NamedTuple):
    """An event of the log."""

    organisation: str
    type: str
    line: str
    data: str


IS_OF_LINE = EVENT_LOG.c.type.like("line.%")
LOGGED_LINE_EVENTS = Query(
    LoggedLineEvent,
    sa.select(*(EVENT_LOG.c[name] for name in LoggedLineEvent._fields)).where(IS_OF_LINE).order_by(EVENT_LOG.c.arrival),
)


def read_line_events(connection: Connection) -> list[LoggedLineEvent]:
    return connection.all(LOGGED_LINE_EVENTS)


@dataclass(slots=True)
class LineEventStage:
    """The whole reseller as one organisation: its token shows the accounts 8101 to 8104, and its fleet has been read once."""

    fleet: ReadModelStage
    who: Credentials
    http: httpx.AsyncClient
    pushes: int = 0

    async def told(self, *types: str, organisation: str | None = None) -> list[dict[str, Any]]:
        """What the log tells of these types (`status_changed`), of all types of lines without any, in its order."""
        found = await self.fleet.world.store.read(read_line_events)
        own = [row for row in found if row.organisation == (organisation or self.who.organisation)]
        assert all(orjson.loads(row.data)["iccid"] == row.line for row in own)
        names = [f"line.{name}" for name in types]
        return [{"type": row.type, **orjson.loads(row.data)} for row in own if not names or row.type in names]

    async def sync(self, *, after: float = LISTING_SECONDS) -> None:
        """The chore once the lines are listed again, or after so many seconds."""
        self.fleet.clock.advance(after)
        await self.fleet.sync()

    async def set_status(self, line: Line, status: str) -> None:
        said = await self.http.put(f"/v1/subscribers/{line.iccid}/status", json={"status": status})
        assert said.status_code == 200, said.text

    async def move(self, line: Line, account: int) -> None:
        body = {"rangeType": "ICCID", "rangeStart": line.iccid, "rangeEnd": line.iccid, "destAccount": account}
        said = await self.http.post(f"/v1/accounts/{line.account_id}/move-subscribers", json=body)
        assert said.status_code == 200, said.text

    def set_status_elsewhere(self, line: Line, status: LineStatus) -> None:
        """Somebody else does it, or a process of ours that dies before it has noted it."""
        begin_line_status(self.fleet.network, line, status)

    def move_elsewhere(self, line: Line, account: int) -> None:
        line.account_id = account
        self.fleet.network.lookup.moved()

    def attach(self, line: Line, country: str) -> None:
        """The line registers in a network of the country; nothing is pushed."""
        network = self.fleet.network
        codes = {"NO": "242", "FR": "208", "DE": "262"}
        found = next(each for each in network.networks.values() if each.codes[line.id % len(each.codes)][0] == codes[country])
        attach_to_network(network, line, found.network_id, int(self.fleet.clock.now()))

    async def push(self, body: object) -> None:
        self.pushes += 1
        said = await push_signed(self.fleet.http, self.fleet.world, body, f"msg_{self.pushes}")
        assert said.status_code == 200, said.text

    async def look_at(self, line: Line) -> None:
        """A push tells that something happened to the line, so that the next sync reads it."""
        await self.push(push_status(f"state {self.pushes}", line.iccid))
        await self.sync(after=1)

    def package(self, number: int = 0) -> tuple[Line, Package]:
        """A line in service, and its only package."""
        line = self.fleet.line(number)
        return line, line.packages[0]


def has_one_package(line: Line) -> bool:
    """Whether the line is in service and has one package with data, which no series made."""
    return line.status == "ACTIVE" and not line.series and len(line.packages) == 1 and bool(line.packages[0].data_limit)


def keep_few_lines(network: Network) -> None:
    """Four lines of 8101 and three of 8102 stay, and a SIM in stock. Nobody uses them but a test."""
    kept = [line for line in network.lines_of(8101) if has_one_package(line)][:4]
    kept += [line for line in network.lines_of(8102) if line.status == "ACTIVE"][:3]
    kept += [line for line in network.lines_of(8101) if line.sim.status == "FREE"][:1]
    for line in list(network.lines.values()):
        line.persona = line.persona._replace(active_share=0.0)
        if line not in kept:
            del network.lines[line.id]
    network.lookup.moved()


@asynccontextmanager
async def open_line_event_stage(folder: Path, *, url: str | None = None) -> AsyncGenerator[LineEventStage]:
    async with open_read_model_stage(folder, url=url) as fleet:
        keep_few_lines(fleet.network)
        who, http = await fleet.beside(token=OWN_TOKEN)
        stage = LineEventStage(fleet, who, http)
        await fleet.sync()
        assert await stage.told() == []
        yield stage
