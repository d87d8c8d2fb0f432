"""Mails over the kills: whoever is told of everything at once is told of each event, and of none in two mails."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from operations.languages import texts_in
from operations.ledger.event_letters import happened_text
from tests.harness.caught_mails import CaughtMail
from tests.harness.tenant_stage import TenantStage

HOUR_MS = 3_600_000
MAILS_IN_AN_HOUR = 20
EVENTS_TO_MAIL = "select id, organisation from event_log where livemode = 1"
MAIL_NOTICES = "select person, event, type, ended_ms, mail from mail_notice"


class ToldReader(NamedTuple):
    """Somebody who is mailed all events of an organisation at once."""

    person: str
    organisation: str
    address: str


class NoticeRow(NamedTuple):
    """What the database says of one person and event. `ended_ms`: when it became the mail `mail`; None: it has not yet."""

    person: str
    event: str
    type: str
    ended_ms: int | None
    mail: str


class MailEnding(NamedTuple):
    """What is there when all is over. `events`: their organisations by their ids; `waiting`: the ids of mails that were not sent."""

    events: dict[str, str]
    readers: Sequence[ToldReader]
    notices: Sequence[NoticeRow]
    waiting: Sequence[str]
    caught: Sequence[CaughtMail]


class MailCount(NamedTuple):
    """What came of the mails. `lost`: events that somebody was not told; `twice`: mails that came again after a kill."""

    mails: int
    events: int
    lost: int
    twice: int


def mail_ending(stage: TenantStage) -> MailEnding:
    """Of the stage's readers; there are none where nobody catches mails."""
    readers = [ToldReader(tenant.reader, tenant.id, tenant.address) for tenant in stage.tenants]
    people = {reader.person for reader in readers}
    return MailEnding(
        events=dict(stage.rows(EVENTS_TO_MAIL)),
        readers=readers,
        notices=[row for each in stage.rows(MAIL_NOTICES) if (row := NoticeRow(*each)).person in people],
        waiting=[id for (id,) in stage.rows("select id from mail")],
        caught=[] if stage.mails is None else list(stage.mails.mails),
    )


def broken_mails(ending: MailEnding) -> list[str]:
    """What is lost, doubled, or sent to somebody else; empty where all held."""
    notices = {(notice.person, notice.event): notice for notice in ending.notices}
    caught = defaultdict[str, list[CaughtMail]](list)
    for mail in ending.caught:
        caught[mail.id].append(mail)
    broken = [f"{mail} waits still" for mail in ending.waiting]
    for reader in ending.readers:
        own = defaultdict[str, list[NoticeRow]](list)
        for event in (event for event, organisation in ending.events.items() if organisation == reader.organisation):
            notice = notices.get((reader.person, event))
            if notice is None or not notice.mail or notice.mail not in caught:
                broken.append(f"{event} was mailed to {reader.address} never: {notice}")
            else:
                own[notice.mail].append(notice)
        for mail, told in own.items():
            broken += wrong_copies(caught[mail], told, reader)
        broken += over_the_hour(reader, own.values())
    named = {notice.mail for notice in ending.notices}
    return broken + [f"{mail} tells of no event" for mail in caught if mail not in named]


def wrong_copies(copies: Sequence[CaughtMail], told: Sequence[NoticeRow], reader: ToldReader) -> list[str]:
    """Copies that no kill explains, that differ, that went to somebody else, or that do not tell what they are to tell."""
    first = copies[0]
    lives = Counter(copy.life for copy in copies)
    broken = [f"{first.id} was sent {count} times by one server" for count in lives.values() if count > 1]
    if any((copy.to, copy.text) != (reader.address, first.text) for copy in copies):
        broken.append(f"{first.id} went to somebody else, or said something else the second time")
    lines = first.text.splitlines()
    unsaid = [sentence for sentence in sentences_of(told) if sentence not in lines]
    if unsaid or (len(told) == 1 and told[0].event not in first.text):
        broken.append(f"{first.id} does not tell of {unsaid or told[0].event}")
    return broken


def sentences_of(told: Sequence[NoticeRow]) -> list[str]:
    """The lines that a mail about these events has: one for each type, with how often it happened where that was not once."""
    words = texts_in("en")
    often = Counter(notice.type for notice in told)
    return [happened_text(words, type) + (f" ({count} times)" if count > 1 else "") for type, count in often.items()]


def over_the_hour(reader: ToldReader, mails: Iterable[Sequence[NoticeRow]]) -> list[str]:
    """Hours in which somebody has had more mails than an hour may have."""
    moments = sorted(told[0].ended_ms or 0 for told in mails)
    ends = [later for first, later in zip(moments, moments[MAILS_IN_AN_HOUR:], strict=False) if later - first < HOUR_MS]
    return [f"{reader.address} had more than {MAILS_IN_AN_HOUR} mails in the hour that ended at {ends[0]}"] if ends else []


def count_mails(ending: MailEnding) -> MailCount:
    copies = Counter(mail.id for mail in ending.caught)
    events = sum(ending.events.get(event) is not None for _, event, *_ in ending.notices)
    lost = sum(" never: " in line for line in broken_mails(ending))
    return MailCount(len(copies), events, lost, sum(count - 1 for count in copies.values()))


async def all_mailed(stage: TenantStage) -> None:
    """Until what waits for the next hour's mails, too, is mailed: nobody dies any more."""
    for _ in range(MAILS_IN_AN_HOUR):
        await stage.network.advance(HOUR_MS / 1000 + 1)
        await stage.servers.settled(stage.network.clock.ahead)
        if await stage.mails_are_sent() and not stage.number("select count(*) from mail_notice where ended_ms is null"):
            return
