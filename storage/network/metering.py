"""The data an intent has used, and the thresholds it crosses: each is told once, whoever reports the usage and however often.

Choice: two figures are kept apart, the sum of what was added (`used_bytes`: metered lines, a test intent's usage records) and the highest
total that somebody else counted (`reported_bytes`: package notifications and observations). Both tell of the same use, so the larger one
counts and never their sum: use that is reported both ways counts once, and no order of arrival changes what is told in the end.

The update that moves the figure locks the intent's row, so what it returns is what nobody else can move until the commit.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import orjson
import sqlalchemy as sa

from registry.ids import Ids
from storage.connection import Connection
from storage.schema import IntentTable
from storage.statement import Command, Query, table
from storage.webhooks.events import NewEvent, emit

INTENT = table(IntentTable)
THRESHOLDS = (50, 80, 100)
BYTES_PER_MB = 1_000_000
# What a JSON number holds exactly; the figure stays there rather than overflow.
MOST_BYTES = 2**53 - 1


class Metered(NamedTuple):
    """An intent after its figure moved."""

    id: str
    organisation: str
    livemode: int
    plan_id: str | None
    plan: str | None
    iccid: str | None
    used_bytes: int
    reported_bytes: int
    notified_percent: int

    @property
    def figure(self) -> int:
        """What counts."""
        return max(self.used_bytes, self.reported_bytes)


COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(INTENT.c[name] for name in Metered._fields)
SUM = sa.case((INTENT.c.used_bytes > sa.bindparam("room"), MOST_BYTES), else_=INTENT.c.used_bytes + sa.bindparam("more"))
ADD = Query(Metered, sa.update(INTENT).where(INTENT.c.id == sa.bindparam("intent")).values(used_bytes=SUM).returning(*COLUMNS))
RAISE = Query(
    Metered,
    sa.update(INTENT)
    .where(INTENT.c.id == sa.bindparam("intent"), INTENT.c.reported_bytes < sa.bindparam("total"))
    .values(reported_bytes=sa.bindparam("total"))
    .returning(*COLUMNS),
)
NOTIFY = Command(
    sa.update(INTENT)
    .where(INTENT.c.id == sa.bindparam("intent"), INTENT.c.notified_percent < sa.bindparam("percent"))
    .values(notified_percent=sa.bindparam("percent"))
)


def add_usage(connection: Connection, *, intent: str, bytes: int, now: float, ids: Ids) -> None:
    """More usage, on top of what was added before."""
    metered = connection.first(ADD, intent=intent, more=bytes, room=MOST_BYTES - bytes)
    if metered is not None:
        tell(connection, metered, now, ids)


def raise_usage(connection: Connection, *, intent: str, total: int, now: float, ids: Ids) -> None:
    """A total that somebody else counted: it moves the figure up, never down, since reports may arrive out of order."""
    metered = connection.first(RAISE, intent=intent, total=total)
    if metered is not None:
        tell(connection, metered, now, ids)


def tell(connection: Connection, metered: Metered, now: float, ids: Ids) -> None:
    """One event for each threshold that was crossed just now."""
    plan = cast(dict[str, object], orjson.loads(metered.plan or "{}"))
    data_mb = cast(int, plan.get("data_mb", 0))
    if data_mb <= 0:  # an unlimited plan
        return
    reached = metered.figure * 100 // (data_mb * BYTES_PER_MB)
    crossed = [percent for percent in THRESHOLDS if metered.notified_percent < percent <= reached]
    if not crossed or connection.run(NOTIFY, intent=metered.id, percent=crossed[-1]) == 0:
        return
    for percent in crossed:
        emit(connection, event=threshold_event(metered, percent, data_mb, now, ids), ids=ids)


def threshold_event(metered: Metered, percent: int, data_mb: int, now: float, ids: Ids) -> NewEvent:
    """usage.threshold_reached; its name in `dedup` is a second lock behind `notified_percent`."""
    data = {
        "intent": metered.id,
        "iccid": metered.iccid,
        "plan": metered.plan_id,
        "threshold_percent": percent,
        "used_mb": metered.figure / BYTES_PER_MB,
        "data_mb": data_mb,
    }
    return NewEvent(
        ids.new("evt_"),
        metered.organisation,
        metered.id,
        "usage.threshold_reached",
        metered.livemode,
        orjson.dumps(data).decode(),
        f"threshold|{metered.id}|{percent}",
        int(now),
    )
