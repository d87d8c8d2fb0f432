"""What the network bridge saw of a line; the first sight of a country is an event, once per intent."""

from typing import NamedTuple

import orjson
import sqlalchemy as sa

from registry.ids import Ids
from storage.connection import Connection
from storage.events import NewEvent, emit
from storage.intents import Holder, find_holder
from storage.metering import raise_usage
from storage.schema import IntentTable, NetworkEventTable
from storage.statement import Command, table

INTENT, SEEN = table(IntentTable), table(NetworkEventTable)


class Sighting(NamedTuple):
    """One observation. `data` is JSON text of the members we know; `country` and `used_bytes` are what they mean."""

    bridge_type: str
    iccid: str
    mcc: str | None
    mnc: str | None
    data: str
    occurred_at: float
    country: str | None
    used_bytes: int | None


INSERT = Command(
    sa.insert(SEEN).values(
        {name: sa.bindparam(name) for name in ("id", "intent", "iccid", "bridge_type", "mcc", "mnc", "data", "occurred_at", "created")}
    )
)
FIRST_ATTACH = Command(
    sa.update(INTENT).where(INTENT.c.id == sa.bindparam("intent"), INTENT.c.attached_at.is_(None)).values(attached_at=sa.bindparam("at"))
)


def observe(connection: Connection, *, seen: Sighting, now: float, ids: Ids) -> str | None:
    """Record a sighting against the intent that owns the ICCID: its id, or None when no intent does."""
    holder = find_holder(connection, iccid=seen.iccid)
    if holder is None:
        return None
    connection.run(
        INSERT,
        id=ids.new("nev_"),
        intent=holder.id,
        iccid=seen.iccid,
        bridge_type=seen.bridge_type,
        mcc=seen.mcc,
        mnc=seen.mnc,
        data=seen.data,
        occurred_at=seen.occurred_at,
        created=int(now),
    )
    if seen.country is not None and connection.run(FIRST_ATTACH, intent=holder.id, at=int(seen.occurred_at)) == 1:
        emit(connection, event=attach_event(holder, seen, now, ids), ids=ids)
    if seen.used_bytes is not None:
        raise_usage(connection, intent=holder.id, total=seen.used_bytes, now=now, ids=ids)
    return holder.id


def attach_event(holder: Holder, seen: Sighting, now: float, ids: Ids) -> NewEvent:
    """esim.first_attach."""
    data = {
        "intent": holder.id,
        "iccid": seen.iccid,
        "plan": holder.plan_id,
        "mcc": seen.mcc,
        "mnc": seen.mnc,
        "country": seen.country,
    }
    return NewEvent(
        ids.new("evt_"),
        holder.organisation,
        holder.id,
        "esim.first_attach",
        holder.livemode,
        orjson.dumps(data).decode(),
        f"attach|{holder.id}",
        int(now),
    )
