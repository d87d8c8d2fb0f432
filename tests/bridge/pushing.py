"""Notifications, and what is kept of them."""

from typing import NamedTuple

import httpx
import orjson
import sqlalchemy as sa

from clients.webhooks.signature import sign_delivery
from storage.country_entries import country_history
from storage.engine.sql import Query
from storage.inbound_pushes import InboundPushTable
from storage.sightings import NetworkEventTable
from tests.network_facts import ICCID
from tests.world import World

PUSHES = "/v1/webhooks/bridge4ip"
PUSH_SECRET = "whsec_YnJpZGdlLXNlY3JldC1mb3ItdGVzdHMtMDEyMw=="
OK = {"result": {"code": 0, "msg": "OK"}}
SEEN = NetworkEventTable.table
PUSH = InboundPushTable.table


class Kept(NamedTuple):
    iccid: str
    bridge_type: str
    mcc: str | None
    mnc: str | None
    data: str
    occurred_at: float


class Count(NamedTuple):
    rows: int


KEPT = Query(Kept, sa.select(*(SEEN.c[name] for name in Kept._fields)).order_by(SEEN.c.id))
REMEMBERED = Query(Count, sa.select(sa.func.count().label("rows")).select_from(PUSH))


def push_status(state: str, iccid: str = ICCID) -> dict[str, object]:
    return {"iccid": iccid, "imsi": "001010123456789", "eid": "89049032000000000000000000000123", "subsId": 7, "status": state}


def place(iccid: str = ICCID, mcc: object = 208, mnc: object = 1, at: object = "2027-01-15T11:59:00", **more: object) -> dict[str, object]:
    return {"locationUpdate": {"iccid": iccid, "imsi": "001010123456789", "subsId": 7, "mcc": mcc, "mnc": mnc, "eventTimeUtc": at, **more}}


def signed_headers(body: bytes, world: World, id: str = "msg_1", *, age: int = 0, secret: str = PUSH_SECRET) -> dict[str, str]:
    headers = sign_delivery([secret], id, int(world.clock.now()) - age, body)
    del headers["Connectivity-Signature"]
    return headers


async def push_signed(http: httpx.AsyncClient, world: World, body: object, id: str) -> httpx.Response:
    raw = orjson.dumps(body)
    return await http.post(PUSHES, content=raw, headers={"content-type": "application/json", **signed_headers(raw, world, id)})


async def kept(world: World) -> list[Kept]:
    return await world.store.read(lambda connection: connection.all(KEPT))


async def states(world: World) -> list[str]:
    return [orjson.loads(row.data)["status"] for row in await kept(world)]


async def remembered(world: World) -> int:
    counted = await world.store.read(lambda connection: connection.first(REMEMBERED))
    assert counted is not None
    return counted.rows


async def countries(world: World, iccid: str = ICCID) -> list[str]:
    """Where a line was that the charging system does not know."""
    return [entry.country for entry in await world.store.read(country_history, iccid=iccid, limit=50, accounts=(None,))]
