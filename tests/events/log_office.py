"""A post office whose worker places events, and readers of its log over HTTP."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson

from operations.event_types.declaration import AnyEventType, event_entry
from operations.ledger.event_placing import EventPlacing
from storage.event_log import log_event
from tests.deliveries.post_office import PostOffice, open_post_office

Shown = dict[str, Any]

STREAM = "/v1/connectivity/events/stream"


class LogOffice:
    """One organisation with a log of events, and the worker that gives them their places and delivers them."""

    def __init__(self, office: PostOffice) -> None:
        self.office, self.world, self.http = office, office.world, office.http
        self.worker = office.worker(chores=[])
        self.placing = EventPlacing(self.world.pipeline.deps)
        self.organisation = office.caller.organisation

    async def write(self, kind: AnyEventType, organisation: str | None = None, **data: object) -> str:
        """An event with the example's data, and what is given of it, in a commit of its own; its id."""
        given: Mapping[str, Any] = {**kind.example, **data}
        whose = organisation or self.organisation
        clock, id = self.world.clock, self.world.ids.new("evt_")
        event = event_entry(kind, given, organisation=whose, id=id, now=clock.now(), livemode=True)
        await self.world.store.write(log_event, event=event)
        return event.id

    async def place(self) -> int:
        """Give places to what waits; how many events that were."""
        return await self.placing.step()

    async def deliver(self) -> int:
        """Place what waits and send what is due; how many attempts were made."""
        await self.place()
        return await self.worker.step()

    async def stream(self, http: httpx.AsyncClient | None = None, cursor: str = "0", **query: str) -> list[Shown]:
        """What a stream of what is there already gives behind a cursor: frames with id, event and data."""
        answer = await (http or self.http).get(STREAM, params={"cursor": cursor, "follow": "false", **query})
        assert answer.status_code == 200, answer.text
        return frames(answer.text)

    async def choose(self, endpoint: str, http: httpx.AsyncClient | None = None, **change: object) -> httpx.Response:
        """Update the endpoint."""
        return await (http or self.http).patch(f"/v1/connectivity/webhook_endpoints/{endpoint}", json=change)


def frames(text: str) -> list[Shown]:
    """The frames of a stream, without comments: id and event are texts, data is decoded."""
    found: list[Shown] = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append({name: orjson.loads(value) if name == "data" else value for name, value in fields.items()})
    return found


def types_of(found: list[Shown]) -> list[str]:
    """The types of the events of some frames."""
    return [each["data"]["type"] for each in found if "type" in each.get("data", {})]


@asynccontextmanager
async def open_log_office(folder: Path, url: str | None = None) -> AsyncGenerator[LogOffice]:
    async with open_post_office(folder, url) as office:
        yield LogOffice(office)
