"""Events get their places in the log, in one transaction with their deliveries to endpoints and with what people are mailed."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby

import orjson

from operations.deps import Deps
from operations.event_types.catalogue import PROMISED_TYPES, types_of_patterns
from operations.ledger.event_rights import ChooserRights
from operations.ledger.mail_kinds import DIGEST, next_digest, timings_of_type
from operations.ledger.webhooks import end_endpoint
from registry.ids import Ids
from storage.deliveries import queue_deliveries
from storage.endpoint_selections import EndpointSelection, list_selections
from storage.engine.sql import Connection
from storage.event_lines import UNKNOWN_LINE, LineBounds, bounds_of_lines
from storage.event_log import PlacedEvent, place_events, waits_for_place
from storage.mail_notices import MailNotice, queue_notices
from storage.mail_subscriptions import MailReader, mail_readers
from storage.webhook_endpoints import enabled_endpoints

PLACED_AT_ONCE = 500

CHOICE_SECONDS = 60
"""Choice: no clock of ours is this far from another one, and no promised event waits this long before it is asked who gets it."""


@lru_cache(maxsize=4096)
def chosen_types(types: str) -> frozenset[str]:
    """The names of the types that a selection (a JSON list of names and globs) stands for."""
    return types_of_patterns(tuple(orjson.loads(types)))


@lru_cache(maxsize=4096)
def chosen_tags(tags: str) -> frozenset[str]:
    """The tags of a selection (a JSON list)."""
    return frozenset(orjson.loads(tags))


def wants_event(selection: EndpointSelection, event: PlacedEvent, lines: dict[str, LineBounds]) -> bool:
    """Whether an endpoint has chosen an event: its type, and where it has chosen tags, a line with one of them."""
    if selection.types is None or event.type not in chosen_types(selection.types):
        return False
    if selection.tags is None:
        return True
    return not lines.get(event.line or "", UNKNOWN_LINE).tags.isdisjoint(chosen_tags(selection.tags))


class EventPlacing:
    """The placing of a process: any number of processes may place, and one does at a time."""

    def __init__(self, deps: Deps) -> None:
        self._deps, self._ids = deps, deps.ids
        self._rights = ChooserRights(deps.internal_calls.operations_in)

    async def step(self) -> int:
        """Gives places to all that waits; returns how many events that were."""
        deps, placed = self._deps, 0
        while await deps.store.read(waits_for_place):
            found = await deps.store.write(self.place, now=deps.clock.now())
            placed += found
            if found < PLACED_AT_ONCE:
                break
        if placed:
            deps.wake_worker()
        return placed

    def place(self, connection: Connection, *, now: float) -> int:
        """One transaction: places, deliveries to the endpoints that have chosen the events, and notices for people. `now`: Unix seconds."""
        events = place_events(connection, most=PLACED_AT_ONCE)
        for organisation, own in groupby(events, key=lambda event: event.organisation):
            queue_chosen(connection, organisation, list(own), rights=self._rights, ids=self._ids, now=now, again=False)
        queue_event_mails(connection, events, now=now)
        return len(events)


def queue_chosen(
    connection: Connection, organisation: str, events: Sequence[PlacedEvent], *, rights: ChooserRights, ids: Ids, now: float, again: bool
) -> int:
    """Queue events of an organisation for the endpoints that have chosen them and may read them now; how many deliveries that were.

    `again`: what was sent before is sent again.
    """
    selections = list_selections(connection, organisation=organisation)
    if not selections:
        return 0
    enabled = set(enabled_endpoints(connection, organisation=organisation))
    tagged = sorted({event.line for event in events if event.line is not None}) if any(each.tags for each in selections) else []
    lines = bounds_of_lines(connection, organisation=organisation, lines=tagged)
    wanted = dict[str, list[str]]()
    for selection in selections:
        if selection.types is None:
            missed = [] if again else promised_meanwhile(selection, events)
            for event in missed if selection.endpoint in enabled else []:
                wanted.setdefault(event, []).append(selection.endpoint)
        elif selection.endpoint in enabled:
            for event in readable_choice(connection, selection, events, lines, rights=rights, ids=ids, now=now):
                wanted.setdefault(event, []).append(selection.endpoint)
    types, now_ms = {event.id: event.type for event in events}, int(now * 1000)
    for event, endpoints in wanted.items():
        named = {"event": event, "type": types[event], "organisation": organisation}
        queue_deliveries(connection, **named, endpoints=endpoints, now_ms=now_ms, ids=ids, again=again)
    return sum(map(len, wanted.values()))


def promised_meanwhile(selection: EndpointSelection, events: Sequence[PlacedEvent]) -> list[str]:
    """The ids of promised events that were perhaps written while the endpoint had chosen types, which it has not any more: neither the
    commit of such an event has queued it then, nor is it chosen now."""
    return [event.id for event in events if event.type in PROMISED_TYPES and event.created <= selection.changed + CHOICE_SECONDS]


def readable_choice(
    connection: Connection,
    selection: EndpointSelection,
    events: Sequence[PlacedEvent],
    lines: dict[str, LineBounds],
    *,
    rights: ChooserRights,
    ids: Ids,
    now: float,
) -> Iterator[str]:
    """The ids of the events that an endpoint is to get. One whose chooser has ended is disabled."""
    chosen = [event for event in events if wants_event(selection, event, lines)]
    if not chosen:
        return
    caller = rights.chooser(connection, selection, now)
    if caller is None:
        end_endpoint(connection, endpoint=selection.endpoint, organisation=selection.organisation, reason="chooser_ended", ids=ids, now=now)
        return
    yield from (event.id for event, may in zip(chosen, rights.readable(connection, caller, chosen), strict=True) if may)


def queue_event_mails(connection: Connection, events: Sequence[PlacedEvent], *, now: float) -> int:
    """Queue what people are to be told of `events` by mail; how many notices are new. `now`: Unix seconds.

    Call it in the transaction that places the events. An event that comes twice is told once.
    """
    # Choice: what happened in test mode is mailed to nobody: it is tried out with endpoints and lists.
    live = [event for event in events if event.livemode]
    if not live:
        return 0
    readers = mail_readers(connection, organisations=sorted({event.organisation for event in live}))
    of_organisation: dict[str, list[MailReader]] = {}
    for reader in readers:
        of_organisation.setdefault(reader.organisation, []).append(reader)
    return queue_notices(
        connection, notices=[notice for event in live for notice in event_notices(event, of_organisation.get(event.organisation, []), now)]
    )


def event_notices(event: PlacedEvent, readers: Sequence[MailReader], now: float) -> list[MailNotice]:
    """What the readers of one organisation are to be told of an event, and when."""
    notices: list[MailNotice] = []
    for reader, timing in timings_of_type(readers, event.type):
        due_ms, day = next_digest(reader.hour, reader.timezone, now) if timing == DIGEST else (int(now * 1000), 0)
        notices.append(MailNotice(event.organisation, reader.person, event.id, event.type, timing, day, event.created, due_ms))
    return notices
