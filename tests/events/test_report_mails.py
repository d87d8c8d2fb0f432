"""Reports of schedules, mailed to whoever made the schedule: a summary and a link, or a PDF, too, without lines and names."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from inline_snapshot import snapshot

from operations.intelligence.reports.report_mails import chart_table, typeset_report_pdf
from operations.intelligence.reports.sheet import Sheet, bar_chart_of, sheet_table
from operations.intelligence.schedule_reports import ScheduleRuns
from operations.ledger.event_letters import EventMails, event_mail_allowance
from operations.ledger.mail_choices import end_mails, read_unsubscription
from registry.caller import Role, Tier
from registry.errors import OcsError
from registry.limits import Limits
from storage.allowances import take_allowances
from storage.engine.sql import Connection
from storage.members import end_membership
from storage.people import claim_address
from tests.contract.stage import StubProvider
from tests.schedules.bureau import DAILY, SCHEDULES
from tests.schedules.thin import SCRIPT, SHEETS, THIN
from tests.stage import opened
from tests.world import World, open_world

ADA = "ada@fjord.example"


@dataclass
class ReportStage:
    """An organisation, and Ada, who is signed in."""

    world: World
    person: str
    organisation: str
    http: httpx.AsyncClient
    runs: ScheduleRuns

    async def create(self, **wanted: object) -> dict[str, Any]:
        answer = await self.http.post(SCHEDULES, json={**DAILY, **wanted})
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def report(self, schedule: dict[str, Any]) -> str:
        """One more report of it is made."""
        answer = await self.http.post(f"{SCHEDULES}/{schedule['id']}/run")
        assert answer.status_code == 201, answer.text
        assert await self.runs.step()
        return answer.json()["id"]


@asynccontextmanager
async def open_report_stage(folder: Path) -> AsyncGenerator[ReportStage]:
    SCRIPT.__init__()
    async with open_world(folder, THIN, limits=Limits(burst_enabled=False), sessions=StubProvider()) as world:
        person = await world.person(subject="ada")
        await world.store.write(claim_address, person=person, address=ADA)
        organisation = await world.organisation(Tier.PRO, name="Fjord", mode="managed", account=8101)
        await world.join(person, organisation, Role.ADMIN)
        async with world.client(f"session.ada.{organisation}") as http:
            yield ReportStage(world, person, organisation, http, ScheduleRuns(world.pipeline.deps, SHEETS))
        assert world.faults == []


stage = opened(open_report_stage)


async def test_a_report_is_mailed_with_its_link_and_a_summary(stage: ReportStage) -> None:
    made = await stage.create(mail="link")
    assert (made["mail"], "share_url" in made) == ("link", True)
    listed = (await stage.http.get(SCHEDULES)).json()["data"]
    assert [each["mail"] for each in listed] == ["link"]
    await stage.report(made)
    (letter,) = await stage.world.letters()
    assert (letter.to, letter.subject, letter.attachment) == (ADA, "Your scheduled report is ready", None)
    assert made["share_url"] in letter.text and made["share_url"] in str(letter.html)
    shown = letter.text.replace(made["share_url"], "(share)").replace(str(letter.unsubscribe), "(link)")
    assert shown == snapshot("""\
Fleet health
  3 lines are well
  Lines: 3
  Cost: €1.50

Whoever has this link can read the report, without lines and names in it.

Read the report: (share)

You get this mail because you are a member of this organisation and are told of this by mail.

No more mails of this kind: (link)
""")
    assert "8999012345678901237" not in f"{letter.text}{letter.html}"
    read = await stage.http.get(made["share_url"].removeprefix("https://reseller.test"))
    assert read.status_code == 200


async def test_a_report_is_mailed_as_a_pdf_without_lines_where_that_is_asked_for(stage: ReportStage) -> None:
    await stage.report(await stage.create(mail="pdf"))
    (letter,) = await stage.world.letters()
    assert letter.attachment is not None
    assert (letter.attachment.name, letter.attachment.media_type) == ("report.pdf", "application/pdf")
    assert letter.attachment.content.startswith(b"%PDF-1.7")
    assert "The same report is attached as a PDF." in letter.text


def test_tables_and_charts_of_a_report_are_set_whatever_their_texts_hold() -> None:
    sheet: Sheet = {
        "title": "Fleet #health [$]",
        "headline": "*bold* _it_ #panic()",
        "figures": [{"label": "Lines", "kind": "number", "value": 3}],
        "charts": [bar_chart_of("Days", "#x", {"a": 1.0, "b": 2.0}), bar_chart_of("None", "y", {})],
        "tables": [sheet_table("Rows", {"Line": "line", "Cost": "money"}, [[f"Line {n}", 1.5] for n in range(300)], "All of them")],
    }
    assert [column["label"] for column in chart_table(sheet["charts"][0])["columns"]] == ["", "#x"]
    pdf = typeset_report_pdf(sheet, 1_800_000_000.0)
    assert pdf is not None and pdf.startswith(b"%PDF")


async def test_a_report_that_failed_says_so_and_no_reason(stage: ReportStage) -> None:
    made = await stage.create(mail="link")
    SCRIPT.refusals += [OcsError("The line 8999012345678901237 is unknown")] * 3
    await stage.http.post(f"{SCHEDULES}/{made['id']}/run")
    for _ in range(3):
        assert await stage.runs.step()
        stage.world.clock.advance(301)
    (letter,) = await stage.world.letters()
    assert letter.subject == "Your scheduled report could not be made"
    assert "8999" not in letter.text and "unknown" not in letter.text


async def test_only_somebody_who_is_signed_in_and_has_proved_an_address_is_mailed(stage: ReportStage) -> None:
    _, secret = await stage.world.key(stage.person, stage.organisation)
    async with stage.world.client(secret) as http:
        with_key = await http.post(SCHEDULES, json={**DAILY, "mail": "link"})
    nameless = await stage.world.person(subject="bo")
    await stage.world.join(nameless, stage.organisation)
    async with stage.world.client(f"session.bo.{stage.organisation}") as http:
        without = await http.post(SCHEDULES, json={**DAILY, "mail": "pdf"})
    refused = [(answer.status_code, answer.json()["param"], answer.json()["error"]) for answer in (with_key, without)]
    assert refused == snapshot(
        [
            (400, "mail", "mail: link was asked for with an API key; reports are mailed to people, who ask for it themselves"),
            (400, "mail", "mail: pdf needs an address of yours that was proved here, and there is none"),
        ]
    )


async def test_the_link_in_the_mail_ends_the_mails_of_that_schedule_alone(stage: ReportStage) -> None:
    first, second = await stage.create(mail="link"), await stage.create(mail="link")
    await stage.report(first)
    (letter,) = await stage.world.letters()
    what = read_unsubscription(stage.world.pipeline.deps, str(letter.unsubscribe).rpartition("/")[2])
    await stage.world.store.write(end_mails, what=what, now=stage.world.clock.now())
    await stage.report(first)
    assert len(await stage.world.letters()) == 1
    await stage.report(second)
    assert len(await stage.world.letters()) == 2


async def test_a_report_over_the_hour_s_limit_is_told_when_there_may_be_a_mail_again(stage: ReportStage) -> None:
    made, now = await stage.create(mail="link"), stage.world.clock.now()

    def use_up(connection: Connection) -> None:
        for _ in range(20):
            take_allowances(connection, wanted=[event_mail_allowance(stage.person)], now=now)

    await stage.world.store.write(use_up)
    await stage.report(made)
    mails = EventMails(stage.world.pipeline.deps)
    assert (await mails.step(), await stage.world.letters()) == (0, [])
    stage.world.clock.advance(3600)
    await mails.step()
    assert [letter.subject for letter in await stage.world.letters()] == ["A report of a schedule of yours is ready"]


async def test_the_link_of_a_report_over_the_hour_s_limit_ends_the_mails_of_its_schedule_too(stage: ReportStage) -> None:
    made, other, now = await stage.create(mail="link"), await stage.create(mail="link"), stage.world.clock.now()

    def use_up(connection: Connection) -> None:
        for _ in range(20):
            take_allowances(connection, wanted=[event_mail_allowance(stage.person)], now=now)

    await stage.world.store.write(use_up)
    await stage.report(made)
    stage.world.clock.advance(3600)
    await EventMails(stage.world.pipeline.deps).step()
    (letter,) = await stage.world.letters()
    what = read_unsubscription(stage.world.pipeline.deps, str(letter.unsubscribe).rpartition("/")[2])
    await stage.world.store.write(end_mails, what=what, now=stage.world.clock.now())
    await stage.report(made)
    assert len(await stage.world.letters()) == 1, "the schedule mails nothing more"
    await stage.report(other)
    assert len(await stage.world.letters()) == 2


async def test_who_leaves_gets_no_report_that_waits_for_the_mail_server_and_none_after_coming_back(stage: ReportStage) -> None:
    made, now = await stage.create(mail="link"), stage.world.clock.now()
    await stage.report(made)

    def leave(connection: Connection) -> bool:
        return end_membership(connection, person=stage.person, organisation=stage.organisation, now=now)

    await stage.world.caller(Tier.PRO, organisation=stage.organisation)
    assert await stage.world.store.write(leave)
    assert await stage.world.letters() == []
    stage.world.clock.advance(60)
    await stage.world.join(stage.person, stage.organisation, Role.ADMIN)
    await stage.report(made)
    assert await stage.world.letters() == [], "the choice of the mail has ended with the membership"


@pytest.mark.parametrize("how", ["left", "deleted"])
async def test_nothing_is_mailed_to_who_has_left_nor_of_a_schedule_that_is_gone(stage: ReportStage, how: str) -> None:
    made = await stage.create(mail="link")
    await stage.http.post(f"{SCHEDULES}/{made['id']}/run")
    bo = await stage.world.caller(Tier.PRO, organisation=stage.organisation)
    now = stage.world.clock.now()

    def leave(connection: Connection) -> None:
        end_membership(connection, person=stage.person, organisation=stage.organisation, now=now)

    if how == "left":
        await stage.world.store.write(leave)
    else:
        async with stage.world.client(bo.secret) as http:
            assert (await http.delete(f"{SCHEDULES}/{made['id']}")).status_code == 200
    await stage.runs.step()
    assert await stage.world.letters() == []
