"""Kinds of mails: which events somebody is told by mail, at once or once a day, by what they chose or by what admins get unasked."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, Literal, NamedTuple, cast
from zoneinfo import ZoneInfo

import orjson

from operations.event_types.catalogue import EVENT_TYPES
from operations.languages import DEFAULT_LANGUAGE
from registry.caller import Role
from storage.mail_subscriptions import MailReader

MailTiming = Literal["at_once", "digest", "off"]
AT_ONCE: Final = "at_once"
DIGEST: Final = "digest"
MAIL_OFF: Final = "off"

SECURITY_AND_MONEY_TYPES = (
    "esim.issuance_unknown",
    "order.needs_review",
    "organisation.endpoint_disabled",
    "organisation.balance_low",
    "organisation.quota_exceeded",
    "payment.dispute_opened",
    "invoice.overdue",
)
"""What at least one admin is always told."""

ADMIN_MAIL_TYPES = (*SECURITY_AND_MONEY_TYPES, "organisation.stock_low", "organisation.quota_80")
"""What admins are told at once who have chosen nothing else."""

REPORT_MAIL_TYPE = "intelligence.report"
"""A report of a schedule of one's own: it comes by the schedule's choice, and no other one is asked for it."""

DEFAULT_DIGEST_HOUR = 8
DEFAULT_MAIL_ZONE = "UTC"


def mail_types() -> Sequence[str]:
    """The types of events that somebody may be told by mail."""
    return (*EVENT_TYPES, *(name for name in ADMIN_MAIL_TYPES if name not in EVENT_TYPES))


@lru_cache(maxsize=1024)
def mail_types_of(pattern: str) -> tuple[str, ...]:
    """The types that a name or a glob such as `order.*` stands for."""
    return tuple(name for name in mail_types() if fnmatchcase(name, pattern))


def for_admins_alone(type: str) -> bool:
    """Whether only admins may read events of this type; of a type that nobody has declared it is taken to be so."""
    declared = EVENT_TYPES.get(type)
    return declared is None or declared.admin


def chosen_timing(kinds: Mapping[str, MailTiming], type: str) -> MailTiming | None:
    """What `kinds` say of a type: its name decides before a glob, and a longer glob before a shorter one. None: they say nothing."""
    if type in kinds:
        return kinds[type]
    found = [pattern for pattern in kinds if fnmatchcase(type, pattern)]
    return kinds[max(found, key=lambda pattern: (len(pattern), pattern))] if found else None


def mail_timing(kinds: Mapping[str, MailTiming], type: str, *, is_admin: bool) -> MailTiming:
    """When somebody who has chosen `kinds` is told an event of this type. What they may not read they are never told."""
    return timing_by_role(chosen_timing(kinds, type), type, is_admin=is_admin)


def timing_by_role(chosen: MailTiming | None, type: str, *, is_admin: bool) -> MailTiming:
    """When somebody who has `chosen` this for a type, or nothing, is told of it."""
    if for_admins_alone(type) and not is_admin:
        return MAIL_OFF
    return chosen or (AT_ONCE if is_admin and type in ADMIN_MAIL_TYPES else MAIL_OFF)


@lru_cache(maxsize=1024)
def read_kinds(text: str | None) -> Mapping[str, MailTiming]:
    """What somebody chose, of the JSON that is stored; nothing where nothing is."""
    return cast("Mapping[str, MailTiming]", orjson.loads(text)) if text else {}


@lru_cache(maxsize=4096)
def timings_in(text: str | None) -> Mapping[str, MailTiming]:
    """What the JSON that is stored says of each type. The globs of many members are not compared anew for every event."""
    found: dict[str, MailTiming | None] = {type: chosen_timing(read_kinds(text), type) for type in mail_types()}
    return {type: timing for type, timing in found.items() if timing is not None}


def reader_timing(reader: MailReader, type: str) -> MailTiming:
    """When this member is told an event of this type, by their own choice alone."""
    return timing_by_role(timings_in(reader.kinds).get(type), type, is_admin=reader.role == Role.ADMIN)


def timings_of_type(readers: Iterable[MailReader], type: str) -> Sequence[tuple[MailReader, MailTiming]]:
    """The members of one organisation who are told an event of this type, and when.

    Where no admin has left security and money on, all admins are told of them at once, whatever they have chosen.
    """
    found: list[tuple[MailReader, MailTiming]] = [(reader, reader_timing(reader, type)) for reader in readers]
    admins = [(reader, timing) for reader, timing in found if reader.role == Role.ADMIN]
    nobody = type in SECURITY_AND_MONEY_TYPES and all(timing == MAIL_OFF for _, timing in admins)
    return [
        (reader, AT_ONCE if nobody and reader.role == Role.ADMIN else timing)
        for reader, timing in found
        if timing != MAIL_OFF or (nobody and reader.role == Role.ADMIN)
    ]


class DigestMoment(NamedTuple):
    """When a digest goes out, Unix milliseconds, and the local day that it is for, such as 20261127."""

    due_ms: int
    day: int


def next_digest(hour: int | None, timezone: str | None, now: float, *, after_day: int = 0) -> DigestMoment:
    """The next time after `now` (Unix seconds) that it is `hour` o'clock on a local day later than `after_day`.

    An hour that the clock skips is the moment after the gap, one that it shows twice the first of the two: each day has one.
    """
    zone = ZoneInfo(timezone or DEFAULT_MAIL_ZONE)
    at = time(DEFAULT_DIGEST_HOUR if hour is None else hour, tzinfo=zone)
    date = datetime.fromtimestamp(now, zone).date() - timedelta(days=1)
    while True:
        date += timedelta(days=1)
        moment, day = datetime.combine(date, at).astimezone(UTC).timestamp(), date.year * 10_000 + date.month * 100 + date.day
        if moment > now and day > after_day:
            return DigestMoment(int(moment) * 1000, day)


def reader_language(reader: MailReader) -> str:
    return reader.language or DEFAULT_LANGUAGE
