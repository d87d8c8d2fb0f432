"""Events that people are told by mail: queued for each reader in the commit that places the events."""

from collections.abc import Sequence

from operations.ledger.mail_kinds import DIGEST, next_digest, timings_of_type
from registry.ids import Ids
from storage.engine.sql import Connection
from storage.event_log import PlacedEvent
from storage.mail_notices import MailNotice, queue_notices
from storage.mail_subscriptions import MailReader, has_mail_tables, mail_readers


def queue_event_mails(connection: Connection, events: Sequence[PlacedEvent], *, now: float, ids: Ids) -> int:
    """Queue what people are to be told of `events` by mail; how many notices are new. `now`: Unix seconds.

    Call it in the transaction that places the events. An event that comes twice is told once. Nothing on a schema without notices.
    """
    del ids  # a notice is named after its person and event
    # Choice: what happened in test mode is mailed to nobody: it is tried out with endpoints and lists.
    live = [event for event in events if event.livemode]
    if not live or not has_mail_tables(connection):
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
