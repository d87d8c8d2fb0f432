"""Mails of events: at once or in the digest of a day, once, to those who may read them, and ended by their link."""

import re
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from zoneinfo import ZoneInfo

import anyio
import httpx
import pytest
from inline_snapshot import snapshot

from clients.mail.letter import Letter
from clients.mail.smtp import mime_message, smtp_settings
from operations.event_types.catalogue import EVENT_TYPES
from operations.languages import spoken_languages, texts_in
from operations.ledger.event_letters import EventMails
from operations.ledger.event_placing import queue_event_mails
from operations.ledger.mail_kinds import ADMIN_MAIL_TYPES, next_digest
from registry.caller import Role
from storage.engine.sql import Connection
from storage.event_log import events_behind
from storage.people import create_person
from tests.events.mail_stage import LINE, ORDER, MailStage
from tests.pages.site import HTTPS

DIGEST = {"kinds": {"esim.*": "digest"}, "digest_hour": 7, "timezone": "Europe/Berlin"}
LINK = re.compile(r"https://esim\.example/auth/unsubscribe/\S+")


def without_links(letter: Letter) -> str:
    return LINK.sub("(link)", letter.text)


def addresses(letters: list[Letter]) -> list[str]:
    return sorted(letter.to.partition("@")[0] for letter in letters)


@pytest.mark.parametrize("language", spoken_languages())
def test_every_type_of_events_has_a_sentence_in_every_language(language: str) -> None:
    words = texts_in(language).words
    assert [name for name in (*EVENT_TYPES, *ADMIN_MAIL_TYPES) if f"happened.{name.replace('.', '_')}" not in words] == []


@pytest.mark.parametrize("language", spoken_languages())
async def test_a_share_of_the_quota_that_an_admin_has_set_is_not_told_as_another_one(mails: MailStage, language: str) -> None:
    await mails.choose("ada", kinds={}, language=language)
    await mails.happen("organisation.quota_80", percent=50, used=50, limit=100)
    letter = next(letter for letter in await mails.mailed() if letter.to.startswith("ada"))
    assert "80" not in letter.subject, letter.subject


async def test_admins_are_told_at_once_of_what_needs_them(mails: MailStage) -> None:
    await mails.happen("order.needs_review", order=ORDER, email="buyer@example.com", name="Nils Buyer", token="t0ken")
    letters = await mails.mailed()
    assert addresses(letters) == ["ada", "bo"]
    assert letters[0].subject == "An order needs your review"
    assert without_links(letters[0]) == snapshot("""\
This is about your organisation Fjord (org_01kjmma2g00000000000000009).

An order needs your review
  When: 1 March 2026, 12:00 UTC
  About: ord_01k0a8w7zv6q4k3m2n1p0r9s8t
  Event: evt_01kjmma2g0000000000000000a

Your account: https://esim.example/auth/account

You get this mail because you are a member of this organisation and are told of this by mail.

No more mails of this kind: (link)
""")
    assert not any(word in f"{letter.subject}{letter.text}{letter.html}" for letter in letters for word in ("buyer", "Nils", "t0ken"))
    assert await mails.mailed() == []


async def test_an_event_is_told_once_however_often_it_is_queued(mails: MailStage) -> None:
    await mails.happen("order.needs_review")

    def again(connection: Connection) -> int:
        events = events_behind(connection, organisation=mails.organisation, position=0, last=10, types=EVENT_TYPES, most=10)
        return queue_event_mails(connection, events, now=mails.site.clock.now())

    assert await mails.site.service.store.write(again) == 0
    assert len(await mails.mailed()) == 2
    assert await mails.site.service.store.write(again) == 0
    assert await mails.mailed() == []


async def test_a_member_is_mailed_what_they_chose_and_never_what_admins_read(mails: MailStage) -> None:
    await mails.choose("cy", kinds={"*": "at_once"}, language="de")
    await mails.happen("esim.issued", line=LINE, iccid=LINE, intent="cni_01k0a8w7zv6q4k3m2n1p0r9s8t", plan="p_1")
    await mails.happen("organisation.quota_exceeded")
    letters = await mails.mailed()
    assert addresses(letters) == ["ada", "bo", "cy"]
    (own,) = [letter for letter in letters if letter.to.startswith("cy")]
    assert own.subject == "Eine eSIM wurde ausgegeben"
    assert without_links(own) == snapshot("""\
Es geht um Ihre Organisation Fjord (org_01kjmma2g00000000000000009).

Eine eSIM wurde ausgegeben
  Wann: 1. März 2026, 12:00 Uhr (UTC)
  Leitung (ICCID): 8999012345678901237
  Worum es geht: cni_01k0a8w7zv6q4k3m2n1p0r9s8t
  Ereignis: evt_01kjmma2g0000000000000000g

Ihr Konto: https://esim.example/auth/account

Sie erhalten diese E-Mail, weil Sie Mitglied dieser Organisation sind und per E-Mail darüber informiert werden.

Keine E-Mails dieser Art mehr: (link)
""")


async def test_what_happened_in_test_mode_is_mailed_to_nobody(mails: MailStage) -> None:
    await mails.happen("order.needs_review", livemode=0)
    assert await mails.mailed() == []


async def test_who_has_proved_no_address_is_mailed_nothing(mails: MailStage) -> None:
    nameless = mails.deps.ids.new("usr_")

    def write(connection: Connection) -> None:
        create_person(connection, id=nameless, now=mails.site.clock.now(), subject="elsewhere")

    await mails.site.service.store.write(write)
    await mails.site.join(nameless, mails.organisation, Role.ADMIN)
    await mails.happen("invoice.overdue")
    assert addresses(await mails.mailed()) == ["ada", "bo"]


async def test_who_lost_the_role_before_the_mail_was_made_is_told_nothing_of_it(mails: MailStage) -> None:
    await mails.happen("organisation.quota_exceeded")
    await mails.site.join(mails.people["bo"], mails.organisation, Role.MEMBER)
    assert addresses(await mails.mailed()) == ["ada"]


async def test_more_than_twenty_in_an_hour_come_in_one_mail(mails: MailStage) -> None:
    await mails.choose("bo", kinds={"order.*": "digest"})
    await mails.happen("order.needs_review", count=30, order=ORDER)
    letters = await mails.mailed()
    assert len(letters) == 20
    assert [letter.subject for letter in letters[18:]] == ["An order needs your review", "More happened than fits into single mails"]
    assert without_links(letters[-1]) == snapshot("""\
This is about your organisation Fjord (org_01kjmma2g00000000000000009).

You got as many mails as go out within an hour. This one has all the rest.

An order needs your review (11 times)
  1 March 2026, 12:00 UTC: ord_01k0a8w7zv6q4k3m2n1p0r9s8t
  1 March 2026, 12:00 UTC: ord_01k0a8w7zv6q4k3m2n1p0r9s8t
  1 March 2026, 12:00 UTC: ord_01k0a8w7zv6q4k3m2n1p0r9s8t
  1 March 2026, 12:00 UTC: ord_01k0a8w7zv6q4k3m2n1p0r9s8t
  1 March 2026, 12:00 UTC: ord_01k0a8w7zv6q4k3m2n1p0r9s8t
  and 6 more

Your account: https://esim.example/auth/account

You get this mail because you are a member of this organisation and are told of this by mail.

No more mails of this kind: (link)
""")
    await mails.happen("invoice.overdue", count=2)
    assert addresses(await mails.mailed()) == ["bo", "bo"], "Ada has had her twenty"
    mails.site.clock.advance(3600)
    letters = await mails.mailed()
    assert (addresses(letters), [letter.subject for letter in letters]) == (["ada"] * 2, ["An invoice is overdue"] * 2)


@pytest.mark.long
async def test_after_hours_without_a_mail_server_nobody_gets_more_than_twenty_at_once(mails: MailStage) -> None:
    for _ in range(5):
        await mails.happen("invoice.overdue", count=10)
        await EventMails(mails.deps).step()
        mails.site.clock.advance(1800)
    late = await mails.site.letters()
    assert [addresses(late).count(name) for name in ("ada", "bo")] == [20, 20]
    mails.site.clock.advance(3600)
    later = [letter for letter in await mails.mailed() if letter.to.startswith("ada")]
    assert (len(later), "An invoice is overdue (11 times)" in later[-1].text) == (20, True)


async def test_a_digest_comes_at_its_hour_with_all_of_the_day(mails: MailStage) -> None:
    await mails.choose("cy", **DIGEST)
    mails.at("2027-01-16T10:00:00+01:00")
    await mails.happen("esim.issued", count=7, line=LINE)
    mails.at("2027-01-17T06:59:58+01:00")
    await mails.happen("esim.first_attach", line=LINE)
    assert await mails.mailed() == []
    mails.at("2027-01-17T07:00:01+01:00")
    (letter,) = await mails.mailed()
    assert (letter.to, letter.subject) == ("cy@fjord.example", "What happened in the last day")
    assert without_links(letter) == snapshot("""\
This is about your organisation Fjord (org_01kjmma2g00000000000000009).

An eSIM was issued (7 times)
  16 January 2027, 09:00 UTC: 8999012345678901237
  16 January 2027, 09:00 UTC: 8999012345678901237
  16 January 2027, 09:00 UTC: 8999012345678901237
  16 January 2027, 09:00 UTC: 8999012345678901237
  16 January 2027, 09:00 UTC: 8999012345678901237
  and 2 more

An eSIM was seen in a network for the first time
  17 January 2027, 05:59 UTC: 8999012345678901237

Your account: https://esim.example/auth/account

You get this mail because you are a member of this organisation and are told of this by mail.

No more mails of this kind: (link)
""")
    await mails.happen("esim.issued")
    assert await mails.mailed() == []


@pytest.mark.long
@pytest.mark.parametrize(("first", "hour"), [("2026-03-27", 2), ("2026-03-27", 7), ("2026-10-23", 2), ("2026-10-23", 7)])
async def test_a_digest_comes_once_a_day_when_the_clock_is_changed(mails: MailStage, first: str, hour: int) -> None:
    zone = ZoneInfo("Europe/Berlin")
    mails.at(f"{first}T12:00:00+00:00")
    await mails.choose("cy", **{**DIGEST, "digest_hour": hour})
    sent: list[datetime] = []
    for _ in range(4 * 24 * 2):
        await mails.happen("esim.issued")
        letters = await mails.mailed()
        sent += [datetime.fromtimestamp(mails.site.clock.now(), zone)] * len(letters)
        mails.site.clock.advance(1800)
    days = [moment.date() for moment in sent]
    assert days == [days[0] + timedelta(days=number) for number in range(4)]
    changed = datetime(2026, 3, 29).date()
    assert [(moment.hour, moment.minute) for moment in sent] == [(3 if (hour, day) == (2, changed) else hour, 0) for day in days]


@pytest.mark.long
def test_every_hour_of_every_zone_comes_once_on_each_day_of_a_change() -> None:
    for name in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC"):
        for hour in range(24):
            for start in ("2026-03-01", "2026-09-20"):
                now, days = datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp(), list[int]()
                for _ in range(50):
                    due_ms, day = next_digest(hour, name, now)
                    assert due_ms > now * 1000
                    now = due_ms / 1000
                    days.append(day)
                whole = [datetime.strptime(str(day), "%Y%m%d") for day in days]
                assert whole == [whole[0] + timedelta(days=number) for number in range(50)], (name, hour)


async def test_another_hour_moves_the_digest_that_waits_and_the_day_has_one_all_the_same(mails: MailStage) -> None:
    await mails.choose("cy", **DIGEST)
    mails.at("2027-01-16T06:00:00+01:00")
    await mails.happen("esim.issued")
    await mails.choose("cy", **{**DIGEST, "digest_hour": 9})
    mails.at("2027-01-16T07:30:00+01:00")
    assert await mails.mailed() == []
    mails.at("2027-01-16T09:00:01+01:00")
    assert len(await mails.mailed()) == 1
    await mails.choose("cy", **{**DIGEST, "digest_hour": 18})
    await mails.happen("esim.issued")
    mails.at("2027-01-16T18:00:01+01:00")
    assert await mails.mailed() == []
    mails.at("2027-01-17T18:00:01+01:00")
    assert len(await mails.mailed()) == 1


async def test_two_workers_at_once_make_one_mail_of_a_notice(mails: MailStage) -> None:
    await mails.happen("order.needs_review")
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(EventMails(mails.deps).step)
    assert len(await mails.site.letters()) == 2


async def test_a_mail_can_be_ended_from_outside_by_one_post_and_by_looking_at_it_never(mails: MailStage) -> None:
    await mails.happen("organisation.stock_low")
    letter = next(letter for letter in await mails.mailed() if letter.to.startswith("bo"))
    assert letter.unsubscribe is not None and letter.unsubscribe in letter.text
    message = message_from_bytes(
        mime_message(letter, smtp_settings("smtp://mail.example", "Fjord <no-reply@fjord.example>"), "mail_1", 0).as_bytes(),
        policy=policy.default,
    )
    assert (message["List-Unsubscribe"].strip(), message["List-Unsubscribe-Post"]) == (
        f"<{letter.unsubscribe}>",
        "List-Unsubscribe=One-Click",
    )
    assert message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in message.walk()][1:] == ["text/plain", "text/html"]
    assert "http" not in re.sub(r'href="https://esim\.example[^"]*"', "", str(letter.html)), "nothing is loaded from anywhere"
    path = letter.unsubscribe.removeprefix(HTTPS)
    async with mails.site.browser() as browser:
        seen = await browser.get(path)
        assert (seen.status, "An order" in seen.page.text, "The stock of eSIMs is low" in seen.page.text) == (200, False, True)
        assert (await mails.ask("bo")).json()["kinds"] == {}
        for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            answer = await browser.http.post(path, content=b"List-Unsubscribe=One-Click", headers={"Content-Type": kind})
            assert answer.status_code == 200, answer.text
        assert (await browser.http.post(path[:-3], content=b"")).status_code == 404
        assert (await browser.get(path[:-3])).status == 404
    assert (await mails.ask("bo")).json()["kinds"] == {"organisation.stock_low": "off"}
    assert (await mails.ask("ada")).json()["kinds"] == {}
    await mails.happen("organisation.stock_low")
    assert addresses(await mails.mailed()) == ["ada"]
    token = path.rpartition("/")[2].encode()
    assert not any(token in line for line in mails.site.log), "the log does not hold what ends the mails"


async def test_the_link_of_a_digest_ends_the_digest_alone(mails: MailStage) -> None:
    await mails.choose("cy", kinds={"esim.*": "digest", "usage.*": "at_once"})
    await mails.happen("esim.issued")
    mails.site.clock.advance(86_400)
    (letter,) = await mails.mailed()
    async with mails.site.browser() as browser:
        await browser.http.post(str(letter.unsubscribe).removeprefix(HTTPS), content=b"List-Unsubscribe=One-Click")
    assert (await mails.ask("cy")).json()["kinds"] == {"esim.*": "off", "usage.*": "at_once"}


async def test_the_link_does_not_end_what_one_admin_is_always_told(mails: MailStage) -> None:
    await mails.choose("ada", kinds={"*": "off"})
    await mails.happen("invoice.overdue")
    (letter,) = await mails.mailed()
    async with mails.site.browser() as browser:
        seen = await browser.http.post(str(letter.unsubscribe).removeprefix(HTTPS), content=b"List-Unsubscribe=One-Click")
    assert (seen.status_code, "o admin would be mailed" in seen.text) == (409, True)


async def test_a_name_with_line_breaks_and_marks_becomes_no_header_and_no_tag(mails: MailStage) -> None:
    person = mails.people["ada"]
    mails.organisation = await mails.site.organisation(person, "Fjord\r\nBcc: all@example.com <b>\u202e{x}")
    await mails.happen("invoice.overdue")
    (letter,) = await mails.mailed()
    raw = mime_message(letter, smtp_settings("smtp://mail.example", "no-reply@fjord.example"), "mail_1", 0).as_bytes()
    assert [name for name in message_from_bytes(raw) if name in ("Bcc", "Cc")] == []
    assert "Fjord" not in letter.subject and "\u202e" not in letter.text
    assert "<b>" not in str(letter.html) and "&lt;b&gt;" in str(letter.html)


async def test_the_worker_makes_the_mails_by_itself(mails: MailStage) -> None:
    await mails.happen("invoice.overdue")
    await mails.site.service.worker.step()
    assert addresses(await mails.site.letters()) == ["ada", "bo"]


async def test_admins_are_mailed_that_an_endpoint_has_another_address_whoever_changed_it(mails: MailStage) -> None:
    transport, headers = httpx.ASGITransport(app=mails.site.app), {"Authorization": f"Bearer {await mails.session('cy')}"}
    async with httpx.AsyncClient(transport=transport, base_url=mails.site.base_url, headers=headers) as http:
        path = "/v1/connectivity/webhook_endpoints"
        endpoint = (await http.post(path, json={"url": "https://hooks.example.com/ours"})).json()["id"]
        before = len(await mails.site.letters())
        for change in ({"description": "Desk"}, {"url": "https://hooks.example.com/ours"}, {"url": "https://elsewhere.example.com/s3cret"}):
            assert (await http.patch(f"{path}/{endpoint}", json=change)).status_code == 200
        told = (await mails.site.letters())[before:]
    assert sorted(letter.to for letter in told) == ["ada@fjord.example", "bo@fjord.example"]
    assert told[0].subject == "The address of a webhook endpoint was changed"
    for word in (endpoint, mails.organisation, mails.people["cy"]):
        assert word in told[0].text
    assert "elsewhere" not in told[0].text
