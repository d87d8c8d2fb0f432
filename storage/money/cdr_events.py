"""Call detail records: a batch is kept, each event id once, and added to the sums of its months, in one transaction.

Every transaction takes its rows in the same order: events, sums, months, periods, and within each the order of the keys. So none of two
that overlap ever waits for the other while the other waits for it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import BadRequest
from registry.ids import Ids
from storage.calls.expired_keys import is_closed
from storage.connection import Connection
from storage.listed import listed, packed
from storage.long import Long
from storage.money.cdr_sums import MOST_OF_MONTH, MOST_OF_SIM, Addition, add_to_months, add_to_sums
from storage.money.invoice_periods import month_of, month_text, open_periods
from storage.money.money_tables import CdrEventTable
from storage.money.record_digests import REVISION, removed_ids
from storage.statement import Command, Dialect, Query, table

EVENT = table(CdrEventTable)


class CdrEvent(NamedTuple):
    """One record; `occurred_at` is Unix seconds."""

    event: str
    iccid: str
    occurred_at: int
    bytes_up: int
    bytes_down: int
    network: str | None
    country: str | None


class Kept(NamedTuple):
    """The id of a record that was not there before."""

    event: str


KINDS = {
    **dict.fromkeys(("event", "iccid"), sa.Text),
    **dict.fromkeys(("occurred_at", "bytes_up", "bytes_down"), sa.BigInteger),
    **dict.fromkeys(("network", "country"), sa.Text),
}


def keeping(dialect: Dialect) -> sa.Executable:
    """Insert what is new, and say which that was; a parallel batch with the same event is waited for."""
    given = listed(dialect, "events", "given", **KINDS)
    organisation = sa.bindparam("organisation", type_=sa.Text)
    rows = sa.select(organisation, *given.c).order_by(given.c.event)
    insert = dialect.insert(EVENT).from_select(["organisation", *CdrEvent._fields], rows)
    return insert.on_conflict_do_nothing(index_elements=["organisation", "event"]).returning(EVENT.c.event)


KEEP = Query(Kept, keeping)
REMOVE_REPEATS = Command(
    lambda dialect: sa.delete(EVENT).where(
        EVENT.c.organisation == sa.bindparam("organisation"),
        EVENT.c.event.in_(sa.select(listed(dialect, "events", "given", event=sa.Text).c.event)),
    )
)


@Long
def ingest(connection: Connection, *, organisation: str, events: Sequence[CdrEvent], now: float, ids: Ids) -> int:
    """Keep the events that are new, add them to their months and open the months' periods; returns how many were new.

    Of events with one id the first is kept. A batch that a sum cannot hold is refused whole.
    """
    first: dict[str, CdrEvent] = {}
    for event in events:
        first.setdefault(event.event, event)
    kept = connection.all(KEEP, organisation=organisation, events=packed([tuple(first[id]) for id in sorted(first)]))
    repeats = remove_repeats(connection, organisation, [row.event for row in kept])
    new = [first[row.event] for row in kept if row.event not in repeats]
    additions = added_up(new)
    months = sum_of_months(additions)
    add(connection, organisation, additions, months, lambda addition: events.index(largest(new, addition)))
    open_periods(connection, organisation=organisation, months=months, now=now, ids=ids)
    return len(new)


def remove_repeats(connection: Connection, organisation: str, events: Sequence[str]) -> set[str]:
    """Remove those of the records just stored that were stored before and removed since; returns their ids.

    Choice: after they are stored, not before. Of a record that is being removed the INSERT waits for the end, and a statement after it
    sees the digest that stays; one before might not, and the record would count twice.
    """
    if not events or not is_closed(connection, revision=REVISION):
        return set()
    repeats = removed_ids(connection, organisation=organisation, events=events)
    if repeats:
        connection.run(REMOVE_REPEATS, organisation=organisation, events=packed([[event] for event in repeats]))
    return set(repeats)


def added_up(events: Sequence[CdrEvent]) -> list[Addition]:
    """One sum for each SIM and month, in the order of their keys."""
    sums: dict[tuple[int, str], Addition] = {}
    for _, iccid, occurred_at, up, down, network, country in events:
        key = (month_of(occurred_at), iccid)
        before = sums.get(key)
        if before is None:
            sums[key] = Addition(*key, up, down, up + down, 1, network, country)
        else:
            agreed = before.network if before.network == network else None, before.country if before.country == country else None
            sums[key] = Addition(
                *key, before.bytes_up + up, before.bytes_down + down, before.bytes_total + up + down, before.events + 1, *agreed
            )
    return [sums[key] for key in sorted(sums)]


def sum_of_months(additions: Sequence[Addition]) -> dict[int, int]:
    """Bytes of each month, in the order of the months."""
    months: dict[int, int] = {}
    for addition in additions:
        months[addition.month] = months.get(addition.month, 0) + addition.bytes_total
    return months


def add(
    connection: Connection, organisation: str, additions: Sequence[Addition], months: dict[int, int], place: Callable[[Addition], int]
) -> None:
    """All of it, or a refusal that undoes all of it; `place` says which event of the batch to name."""
    if not additions:
        return
    taken = add_to_sums(connection, organisation=organisation, additions=additions)
    for addition in additions:
        if (addition.month, addition.iccid) not in taken or addition.bytes_total > MOST_OF_SIM:
            raise too_much(f"events[{place(addition)}]", "its SIM's records", addition.month, f"{MOST_OF_SIM} bytes (2^53-1)")
    grown = add_to_months(connection, organisation=organisation, additions=months.items())
    if len(grown) < len(months):
        raise too_much("events", "all records", min(months.keys() - grown), f"{MOST_OF_MONTH} bytes (2^63-1)")


def largest(events: Sequence[CdrEvent], addition: Addition) -> CdrEvent:
    """The event with the most bytes of a SIM's month: if one is wrong, it is this."""
    of = (event for event in events if (month_of(event.occurred_at), event.iccid) == (addition.month, addition.iccid))
    return max(of, key=lambda event: event.bytes_up + event.bytes_down)


def too_much(param: str, what: str, month: int, most: str) -> BadRequest:
    """The refusal of a batch that takes a sum beyond what is held exactly."""
    return BadRequest(
        f"{param}: with this batch {what} of {month_text(month)} would add up to more than {most}, up and down together",
        param=param,
        hint="Check the unit, which is bytes, and that no record comes under two ids. Nothing of this batch was stored",
    )
