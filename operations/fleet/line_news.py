"""What a sync, a judgement and our own calls find to be new of lines becomes events, in the transaction that finds it."""

from collections.abc import Collection, Sequence

from operations.event_types.line import line_events
from registry.ids import Ids
from storage.engine.sql import Connection, runs_in_thread
from storage.event_log import log_events
from storage.fleet_erasure import write_listed_lines
from storage.fleet_judgements import LineJudgement, record_judgements
from storage.fleet_line_changes import note_lines_moved, push_line_country
from storage.fleet_lines import LineWrite
from storage.fleet_readings import TimedReading, record_readings
from storage.sealing import Keyring


@runs_in_thread
def store_listed_lines(connection: Connection, *, fleet: int, lines: Sequence[LineWrite], now: float, keyring: Keyring, ids: Ids) -> int:
    """Stores listed lines and tells what is new of them; how many were stored. `now`: Unix seconds."""
    found = write_listed_lines(connection, fleet=fleet, lines=lines, now=now, keyring=keyring)
    log_events(connection, events=line_events(found.news, ids=ids, now=now))
    return found.written


@runs_in_thread
def store_readings(connection: Connection, *, fleet: int, readings: Sequence[TimedReading], now: float, keyring: Keyring, ids: Ids) -> int:
    """Stores what was read of lines and tells what is new of them; of how many it was stored. `now`: Unix seconds."""
    found = record_readings(connection, fleet=fleet, readings=readings, keyring=keyring)
    log_events(connection, events=line_events(found.news, ids=ids, now=now))
    return found.stored


def store_judgements(connection: Connection, *, fleet: int, judgements: Sequence[LineJudgement], now: float, ids: Ids) -> None:
    """Stores verdicts on lines and tells what is new of them. `now`: Unix seconds."""
    news = record_judgements(connection, fleet=fleet, judgements=judgements, now=now)
    log_events(connection, events=line_events(news, ids=ids, now=now))


def settle_moved_lines(connection: Connection, *, organisation: str, numbers: Collection[int], account: int, now: float, ids: Ids) -> None:
    """Puts the account that a call of ours moved lines to into their rows, and tells of it. `now`: Unix seconds."""
    news = note_lines_moved(connection, organisation=organisation, numbers=numbers, account=account, now=now)
    log_events(connection, events=line_events(news, ids=ids, now=now))


def tell_pushed_country(connection: Connection, *, iccid: str, country: str, occurred_at: float, now: float, ids: Ids) -> None:
    """Tells each organisation that has the line that it came into a country, where that is new. Unix seconds."""
    news = push_line_country(connection, iccid=iccid, country=country, occurred_at=occurred_at, now=now)
    log_events(connection, events=line_events(news, ids=ids, now=now))
