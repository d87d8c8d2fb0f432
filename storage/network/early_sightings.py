"""What was reported of a line or a package before anybody knew whose it is: while an eSIM is being drawn, or nobody knows whether it was.

It is kept only while there is such an eSIM, and for its owner alone: the newest country and the highest total of each subject.
"""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.issuing.issuance import ISSUANCE, OPEN
from storage.network.line_owner import CLOCKS_DIFFER_SECONDS
from storage.network.network_tables import EarlySightingTable
from storage.statement import Command, Query, table

EARLY = table(EarlySightingTable)
# Choice: an outcome that is unknown for longer than this has lost what was reported at first; later reports tell the same.
KEPT_SECONDS = 7 * 86_400
ANY = 0.0


class Early(NamedTuple):
    """What was seen, and what it means."""

    bridge_type: str
    mcc: str | None
    mnc: str | None
    data: str
    occurred_at: float
    country: str | None
    used_bytes: int | None


class Draws(NamedTuple):
    """When eSIMs that are still being drawn were sent for: the first of all, and the last that a sighting may be of."""

    oldest: float | None
    newest: float | None


SENT = ISSUANCE.c.dispatched
DRAWS = Query(
    Draws,
    sa.select(
        sa.func.min(SENT).label("oldest"),
        sa.func.max(sa.case((sa.bindparam("latest") >= SENT, SENT))).label("newest"),
    ).where(ISSUANCE.c.state.in_(OPEN), ISSUANCE.c.intent.is_not(None)),
)
KEY = ("subject", "kind", "since")
KEPT = (*Early._fields, "received")
COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(EARLY.c[name] for name in Early._fields)


def keep_if(counts_more: sa.ColumnElement[bool]) -> Command:
    """Keep it, unless what is there counts more."""
    values: dict[str, sa.BindParameter[object]] = {name: sa.bindparam(name) for name in (*KEY, *KEPT)}
    changed: dict[str, sa.BindParameter[object]] = {name: values[name] for name in KEPT}
    return Command(
        lambda dialect: (
            dialect.insert(EARLY).values(values).on_conflict_do_update(index_elements=list(KEY), set_=changed, where=counts_more)
        )
    )


KEEP_PLACE = keep_if(EARLY.c.occurred_at < sa.bindparam("occurred_at"))
KEEP_USAGE = keep_if(EARLY.c.used_bytes < sa.bindparam("used_bytes"))
TAKE = Query(Early, sa.delete(EARLY).where(EARLY.c.subject == sa.bindparam("subject")).returning(*COLUMNS))
FORGET = Command(sa.delete(EARLY).where(EARLY.c.received < sa.bindparam("old")))


def keep_early(connection: Connection, *, subject: str, early: Early, now: float) -> None:
    """For whoever turns out to own the subject. What is older than every draw under way is nobody's who is still to come.

    The newest place is of the newest owner. Totals of different owners are kept apart by the draws between them, since the highest
    counts: of a draw that is under way, no total from before it can stand in the way of one from after it.
    """
    if early.country is None and early.used_bytes is None:
        return
    draws = connection.first(DRAWS, latest=early.occurred_at + CLOCKS_DIFFER_SECONDS) or Draws(None, None)
    # What came before every draw that is under way is nobody's for ever.
    oldest = now if draws.oldest is None else draws.oldest
    connection.run(FORGET, old=max(now - KEPT_SECONDS, oldest - CLOCKS_DIFFER_SECONDS))
    if draws.newest is None:
        return
    values = early._asdict()
    if early.country is not None:
        connection.run(KEEP_PLACE, subject=subject, kind="place", since=ANY, received=now, **values)
    if early.used_bytes is not None:
        connection.run(KEEP_USAGE, subject=subject, kind="usage", since=draws.newest, received=now, **values)


def take_early(connection: Connection, *, subject: str, since: float) -> list[Early]:
    """What was kept, oldest first; it is kept no longer. What happened before `since` is a previous owner's."""
    kept = [early for early in connection.all(TAKE, subject=subject) if early.occurred_at >= since - CLOCKS_DIFFER_SECONDS]
    return sorted(kept, key=lambda early: early.occurred_at)
