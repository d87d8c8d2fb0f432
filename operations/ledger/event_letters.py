"""Mails of events: one for each event at once, one a day for the rest, in English and German, as plain text and as a page.

A mail names things by their ids, and nothing in it was written by somebody else but the name of the reader's own organisation. Its subject
is words of ours alone.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple, cast

import orjson

from clients.mail.letter import Attachment, Letter
from operations.deps import Deps
from operations.languages import LanguageTexts, texts_in
from operations.ledger.mail_choices import DIGEST_KIND, Unsubscription, unsubscribe_address
from operations.ledger.mail_kinds import AT_ONCE, REPORT_MAIL_TYPE, next_digest, reader_language, timings_of_type
from operations.letters import queue_letter, seal_letter
from operations.vocabulary import upstream_text
from storage.allowances import WINDOW_SECONDS, Allowance, allowance_for, recent_uses, seconds_until_allowed, take_allowances
from storage.engine.sql import Connection
from storage.event_log import PlacedEvent, find_log_event
from storage.mail_notices import (
    MailNotice,
    NoticeReader,
    end_notices,
    last_digest_day,
    late_mails,
    list_readers_due,
    move_notices,
    take_due_notices,
)
from storage.mail_subscriptions import MailReader, mail_readers
from storage.organisations import find_member
from storage.schedule_reports import schedule_of_report

EVENT_MAILS_PER_HOUR = 20
EVENT_MAIL_SECONDS = 7 * 86_400
"""For so long a mail waits for a mail server that is away."""
READERS_AT_ONCE = 50
NOTICES_AT_ONCE = 2000
SHOWN_OF_TYPE = 5
ALERT_FIGURES = {"account": "event_mail.account", "days_left": "event_mail.days_left"}
MAIL_HEAD = (
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"><style>:root{color-scheme:light dark}</style>'
)
MAIL_STYLE = (
    "box-sizing:border-box;max-width:600px;margin:0 auto;padding:24px 16px;overflow-wrap:anywhere;word-break:break-word;"
    "font:16px/1.5 -apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
)
FACTS_STYLE = "border-left:3px solid #2a8f97;padding:0 0 0 14px"
LINK_STYLE = "color:inherit;text-decoration:underline"
BUTTON_STYLE = (
    "display:inline-block;color:inherit;text-decoration:none;font-weight:600;border:2px solid #2a8f97;border-radius:6px;padding:10px 18px"
)
OWN_ID = re.compile(r"[a-z]{2,5}_[0-9a-z]{26}")


class MailSection(NamedTuple):
    """A heading, and lines under it: names with values; the name may be empty."""

    heading: str
    lines: Sequence[tuple[str, str]]


class MailLink(NamedTuple):
    """A link and what it is called."""

    name: str
    address: str


class MailPage(NamedTuple):
    """What a mail says, before it is written as text and as a page."""

    subject: str
    sections: Sequence[MailSection]
    links: Sequence[MailLink]
    small: str
    unsubscribe: MailLink | None
    language: str


def event_mail_allowance(person: str) -> Allowance:
    """How many mails somebody gets in an hour, of all their organisations."""
    return allowance_for("event_mail", person, EVENT_MAILS_PER_HOUR)


def page_letter(to: str, page: MailPage, attachment: Attachment | None = None) -> Letter:
    """The mail: the same in plain text and as a page, which loads nothing."""
    texts = [
        "\n".join([section.heading, *(f"  {name}: {value}" if name else f"  {value}" for name, value in section.lines)])
        for section in page.sections
    ]
    texts += [f"{link.name}: {link.address}" for link in page.links]
    texts.append(page.small)
    stop = page.unsubscribe
    if stop is not None:
        texts.append(f"{stop.name}: {stop.address}")
    address = None if stop is None else stop.address
    return Letter(to, page.subject, "\n\n".join(texts) + "\n", attachment, html=mail_html(page), unsubscribe=address)


def mail_html(page: MailPage) -> str:
    """The mail as a page. It loads nothing, and it reads well where a mail program takes its head away or makes its ground dark.

    So what it needs stands at the elements, and no text has a colour of its own: it has the reader's.
    """
    blocks = [html_section(section) for section in page.sections]
    blocks += [f'<p style="margin:24px 0">{html_link(link, BUTTON_STYLE)}</p>' for link in page.links]
    small = [escape(page.small)] + ([] if page.unsubscribe is None else [html_link(page.unsubscribe, LINK_STYLE)])
    blocks.append(f'<p style="margin:32px 0 0;font-size:14px">{"<br>".join(small)}</p>')
    head = f"<head>{MAIL_HEAD}<title>{escape(page.subject)}</title></head>"
    main = f'<div style="{MAIL_STYLE}">{"".join(blocks)}</div>'
    return f'<!doctype html><html lang="{escape(page.language)}">{head}<body style="margin:0">{main}</body></html>'


def html_section(section: MailSection) -> str:
    """A heading with names above their values; without them it is a sentence."""
    if not section.lines:
        return f'<p style="margin:0 0 16px">{escape(section.heading)}</p>'
    heading = f'<h2 style="margin:24px 0 8px;font-size:20px;line-height:1.3">{escape(section.heading)}</h2>'
    return heading + f'<div style="{FACTS_STYLE}">{"".join(html_fact(name, value) for name, value in section.lines)}</div>'


def html_fact(name: str, value: str) -> str:
    label = f'<strong style="font-weight:600;font-size:14px">{escape(name)}</strong><br>' if name else ""
    return f'<p style="margin:0;padding:5px 0">{label}<span style="font-size:15px">{escape(value)}</span></p>'


def html_link(link: MailLink, style: str) -> str:
    return f'<a href="{escape(link.address)}" rel="noreferrer" style="{style}">{escape(link.name)}</a>'


def happened_text(words: LanguageTexts, type: str) -> str:
    """What happened, in a sentence of ours."""
    key = f"happened.{type.replace('.', '_')}"
    return words.say(key) if key in words.words else words.say("event_mail.other")


class MailWriter:
    """Writes the mails to one member, in their language."""

    def __init__(self, deps: Deps, connection: Connection, reader: MailReader) -> None:
        self._deps, self._connection, self._reader = deps, connection, reader
        self._words = texts_in(reader_language(reader))

    def of_event(self, notice: MailNotice) -> Letter:
        """The mail about one event."""
        subject = happened_text(self._words, notice.type)
        return self._letter(subject, [MailSection(subject, self._facts(notice))], self._kind(notice))

    def of_digest(self, notices: Sequence[MailNotice]) -> Letter:
        """The mail of a day."""
        return self._letter(self._words.say("event_mail.digest_subject"), self._sections(notices), DIGEST_KIND)

    def of_rest(self, notices: Sequence[MailNotice]) -> Letter:
        """The mail with what is more than an hour's mails."""
        lead = MailSection(self._words.say("event_mail.rest_lead"), [])
        return self._letter(self._words.say("event_mail.rest_subject"), [lead, *self._sections(notices)], self._kind(notices[0]))

    def _kind(self, notice: MailNotice) -> str:
        """What the link in the mail ends: the type, or the schedule whose report it is."""
        if notice.type != REPORT_MAIL_TYPE:
            return notice.type
        return f"{REPORT_MAIL_TYPE}:{schedule_of_report(self._connection, report=notice.event)}"

    def _letter(self, subject: str, sections: Sequence[MailSection], kind: str) -> Letter:
        words, reader, deps = self._words, self._reader, self._deps
        member = find_member(self._connection, person=reader.person, organisation=reader.organisation)
        name = upstream_text(member.name if member is not None else "")
        intro = MailSection(words.say("event_mail.intro", organisation=name, id=reader.organisation), [])
        stop = unsubscribe_address(deps, Unsubscription(reader.organisation, reader.person, kind))
        page = MailPage(
            subject=subject,
            sections=[intro, *sections],
            links=[MailLink(words.say("event_mail.look"), f"{deps.site.base_url}/auth/account")] if deps.own_identity else [],
            small=words.say("event_mail.reason"),
            unsubscribe=None if stop is None else MailLink(words.say("event_mail.stop"), stop),
            language=reader_language(reader),
        )
        return page_letter(reader.address, page)

    def _sections(self, notices: Sequence[MailNotice]) -> list[MailSection]:
        """A section for each type: how often it happened, and the newest of it."""
        words = self._words
        by_type: dict[str, list[MailNotice]] = {}
        for notice in notices:
            by_type.setdefault(notice.type, []).append(notice)
        sections: list[MailSection] = []
        for type, found in by_type.items():
            lines = [(words.moment(notice.created), self._named(notice)) for notice in found[::-1][:SHOWN_OF_TYPE]]
            if len(found) > SHOWN_OF_TYPE:
                lines.append(("", words.count("event_mail.more", len(found) - SHOWN_OF_TYPE)))
            often = f" ({words.count('event_mail.kind', len(found))})" if len(found) > 1 else ""
            sections.append(MailSection(happened_text(words, type) + often, lines))
        return sections

    def _named(self, notice: MailNotice) -> str:
        """The things that an event is about, on one line."""
        event = self._event(notice)
        line = [event.line] if event is not None and event.line is not None else []
        figures = [f"{name} {value}" for name, value in self._figures(event)]
        return ", ".join([*line, *ids_in_event(event), *figures]) or notice.event

    def _facts(self, notice: MailNotice) -> list[tuple[str, str]]:
        words, event = self._words, self._event(notice)
        facts = [(words.say("event_mail.when"), words.moment(notice.created))]
        if event is not None and event.line is not None:
            facts.append((words.say("event_mail.line"), event.line))
        if ids := ids_in_event(event):
            facts.append((words.say("event_mail.about"), ", ".join(ids)))
        return [*facts, *self._figures(event), (words.say("event_mail.event"), notice.event)]

    def _figures(self, event: PlacedEvent | None) -> list[tuple[str, str]]:
        """Of which account an alert is, and for how many days what it has lasts."""
        words = self._words
        data: Mapping[str, object] = {} if event is None else event_data(event)
        found = [(key, data.get(name)) for name, key in ALERT_FIGURES.items()]
        return [(words.say(key), words.plain_number(value)) for key, value in found if isinstance(value, int | float)]

    def _event(self, notice: MailNotice) -> PlacedEvent | None:
        return find_log_event(self._connection, event=notice.event, organisation=notice.organisation)


def ids_in_event(event: PlacedEvent | None) -> list[str]:
    """The ids of ours that the data of an event names: nothing else of it is in a mail, but the figures of an alert."""
    if event is None:
        return []
    return [value for value in event_data(event).values() if isinstance(value, str) and OWN_ID.fullmatch(value)]


def event_data(event: PlacedEvent) -> Mapping[str, object]:
    return cast("Mapping[str, object]", orjson.loads(event.data))


class EventMails:
    """What makes mails of notices, as one process does it; any number of processes may."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    async def step(self) -> int:
        """Queues the mails that are due; returns how many."""
        deps, now = self._deps, self._deps.clock.now()
        queued = 0
        for whom in await deps.store.read(list_readers_due, now_ms=int(now * 1000), most=READERS_AT_ONCE):
            queued += await deps.store.write(self._tell, whom=whom, now=now)
        if queued:
            deps.post()
        return queued

    def _tell(self, connection: Connection, *, whom: NoticeReader, now: float) -> int:
        """One commit: the notices of one person that are due become mails, as far as the hour allows."""
        due = take_due_notices(connection, organisation=whom.organisation, person=whom.person, now_ms=int(now * 1000), most=NOTICES_AT_ONCE)
        readers = mail_readers(connection, organisations=[whom.organisation])
        reader = next((each for each in readers if each.person == whom.person), None)
        wanted = wanted_notices(due, readers, whom.person)
        kept = {notice.event for notice in wanted}
        end_notices(
            connection,
            person=whom.person,
            events=[notice.event for notice in due if notice.event not in kept],
            mail="",
            now_ms=int(now * 1000),
        )
        return 0 if reader is None else ReaderMails(self._deps, connection, reader, now).tell(wanted)


def wanted_notices(due: Sequence[MailNotice], readers: Sequence[MailReader], person: str) -> list[MailNotice]:
    """Those that the person may read and has not switched off meanwhile."""
    types = {notice.type for notice in due}
    told = {type for type in types if any(reader.person == person for reader, _ in timings_of_type(readers, type))}
    if any(reader.person == person for reader in readers):
        told |= types & {REPORT_MAIL_TYPE}
    return [notice for notice in due if notice.type in told]


class ReaderMails:
    """The mails to one member in one commit."""

    def __init__(self, deps: Deps, connection: Connection, reader: MailReader, now: float) -> None:
        self._deps, self._connection, self._reader, self._now = deps, connection, reader, now
        self._writer = MailWriter(deps, connection, reader)
        self._allowance = event_mail_allowance(reader.person)

    def tell(self, notices: Sequence[MailNotice]) -> int:
        """Queues mails of `notices`; returns how many. What is over the hour's limit is one mail, or waits until there may be one."""
        free, queued = self._free_mails(), 0
        at_once = [notice for notice in notices if notice.how == AT_ONCE]
        digest = self._of_new_day([notice for notice in notices if notice.how != AT_ONCE])
        if digest and free:
            queued += self._queue(self._writer.of_digest(digest), digest)
            free, digest = free - 1, []
        single = at_once if len(at_once) <= free else at_once[: max(free - 1, 0)]
        rest = at_once[len(single) :]
        for notice in single:
            queued += self._queue(self._writer.of_event(notice), [notice])
        if rest and free > len(single):
            queued += self._queue(self._writer.of_rest(rest), rest)
            rest = []
        self._put_off(rest)
        self._put_off(digest)
        return queued

    def _free_mails(self) -> int:
        """How many more mails there may be now. Those of former hours that still wait for the mail server count, too."""
        used = len(recent_uses(self._connection, self._allowance.name, self._now))
        late = late_mails(self._connection, person=self._reader.person, before=self._now - WINDOW_SECONDS)
        return max(0, EVENT_MAILS_PER_HOUR - used - late)

    def _of_new_day(self, notices: Sequence[MailNotice]) -> list[MailNotice]:
        """Those of a day that has had no digest yet; the others wait for the next day's."""
        reader = self._reader
        last = last_digest_day(self._connection, organisation=reader.organisation, person=reader.person)
        late = [notice.event for notice in notices if notice.day <= last]
        due_ms, day = next_digest(reader.hour, reader.timezone, self._now, after_day=last)
        move_notices(self._connection, person=reader.person, events=late, due_ms=due_ms, day=day)
        return [notice for notice in notices if notice.day > last]

    def _queue(self, letter: Letter, notices: Sequence[MailNotice]) -> int:
        deps, now = self._deps, self._now
        take_allowances(self._connection, wanted=[self._allowance], now=now)
        sealed = seal_letter(letter, ids=deps.ids, keyring=deps.keyring, expires_at=now + EVENT_MAIL_SECONDS)
        queue_letter(self._connection, sealed, deps.clock)
        events = [notice.event for notice in notices]
        end_notices(self._connection, person=self._reader.person, events=events, mail=sealed.id, now_ms=int(now * 1000))
        return 1

    def _put_off(self, notices: Sequence[MailNotice]) -> None:
        """These wait until the hour's limit lets one more mail go; where the mail server is away, another hour."""
        if not notices:
            return
        times = recent_uses(self._connection, self._allowance.name, self._now)
        wait = seconds_until_allowed(times, EVENT_MAILS_PER_HOUR, self._now) or WINDOW_SECONDS
        due_ms, day = int((self._now + wait) * 1000), max(notice.day for notice in notices)
        move_notices(self._connection, person=self._reader.person, events=[n.event for n in notices], due_ms=due_ms, day=day)
