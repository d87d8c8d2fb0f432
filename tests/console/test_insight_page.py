"""The pages Insight answer questions about the fleet when they are asked, and have reports made, shown and shared."""

import re
import time
from collections.abc import Iterator

import pytest

from operations.catalogue import CATALOGUE
from operations.intelligence.reports.sheet import Sheet
from operations.intelligence.schedule_reports import SHEETS
from tests.console.conftest import DemoConsole
from tests.pages.browser import Browser, Seen
from tests.pages.site import Site
from tests.pages.trail import trail
from transports.web.console.app import console_texts
from transports.web.console.insight import BY_NAME
from transports.web.console.translations import SENTENCE_END, words_key

LINE_LINK = re.compile(r'href="/console/lines/(89\d{16,20})"')
SHARE_LINK = re.compile(r"(/v1/intelligence/share/[\w-]+)")


def said_words(sheet: Sheet) -> Iterator[str]:
    """Every text of ours in a report, as it is translated: sentences, names, and words in cells."""
    tables, charts = sheet["tables"], sheet["charts"]
    names = [sheet["headline"], *(each["label"] for each in sheet["figures"]), *(each["title"] for each in (*tables, *charts))]
    names += [column["label"] for table in tables for column in table["columns"]]
    names += [table["note"] for table in tables if table["note"] is not None]
    names += [place for chart in charts if chart["places_kind"] == "word" for place in chart["places"]]
    names += [series["label"] for chart in charts if chart["series_kind"] == "word" for series in chart["series"]]
    cells = [str(row[at]) for table in tables for row in table["rows"] for at, one in enumerate(table["columns"]) if one["kind"] == "word"]
    yield from (sentence for text in (*names, *(cell for cell in cells if cell != "None")) for sentence in SENTENCE_END.split(text))


@pytest.mark.parametrize("name", sorted(SHEETS))
def test_every_word_of_a_report_has_a_translation(name: str) -> None:
    words = console_texts("de").words
    for example in CATALOGUE.operations[name].examples:
        for text in said_words(SHEETS[name](example.answer)):
            for part in [text] if f"insight_words.{words_key(text)}" in words else text.split(", "):
                key = words_key(part)
                known = f"insight_words.{key}", f"problems.{key}", f"states.{part}", f"line.rule_{key}"
                assert any(each in words for each in known), text


@pytest.mark.long
async def test_the_index_and_the_form_of_a_question_ask_nothing(site: Site, hers: Browser) -> None:
    for path in ("/console/insight", *(f"/console/insight/{name}" for name in BY_NAME)):
        seen = await hers.get(path)
        assert (seen.status, 'class="same"' in seen.page.html) == (200, False), path
    assert [await trail(site, name) for name in BY_NAME] == [[]] * len(BY_NAME)


@pytest.mark.long
async def test_each_question_is_answered_by_a_sentence_with_figures_and_links_to_lines(demo: Browser) -> None:
    for name in BY_NAME:
        if name == "diagnose_subscriber":
            continue
        form = (await demo.get(f"/console/insight/{name}")).page.form(f"/console/insight/{name}")
        seen = await demo.send(form)
        sentence = re.search(r'<h2 id="answer">([^<]+)</h2>', seen.page.html)
        assert (seen.status, sentence is not None) == (200, True), (name, seen.page.text[:500])
        assert "lines were looked into." in seen.page.text and f"reseller call {name}" in seen.page.text
        assert 'class="chart"' in seen.page.html, name
        assert LINE_LINK.search(seen.page.html) or name in ("fleet_health", "marketing_intelligence", "audit_network_coverage"), name
    german = await demo.http.get("/console/insight/fleet_health?ask=now", headers={"Accept-Language": "de"})
    assert re.search(r"Die Flotte erreicht [\d,]+ von 100 Punkten: \d+ von \d+ ausgegebenen Leitungen", german.text)


@pytest.mark.long
async def test_pages_of_a_ranking_continue_and_keep_what_was_asked(demo: Browser) -> None:
    seen = await demo.get("/console/insight/high_cost_subscribers?ask=now&start=2020-01-01&end=2030-01-01")
    assert seen.status == 400
    form = (await demo.get("/console/insight/high_cost_subscribers")).page.form("/console/insight/high_cost_subscribers")
    seen = await demo.send(form)
    following = next(tag.attributes["href"] for tag in seen.page.tags if tag.attributes.get("rel") == "next")
    assert f"start={form.fields['start']}&end={form.fields['end']}&ask=now&after=" in following
    second = await demo.get(following)
    assert set(LINE_LINK.findall(seen.page.html)).isdisjoint(LINE_LINK.findall(second.page.html))


async def test_a_field_that_cannot_be_taken_is_marked_and_asks_nothing(site: Site, hers: Browser) -> None:
    for address, field in (
        ("fleet_health?ask=now&accountId=x", "accountId"),
        ("churn_risk?ask=now&iccid=12", "iccid"),
        ("diagnose_subscriber?ask=now", "iccid"),
    ):
        seen = await hers.get(f"/console/insight/{address}")
        assert (seen.status, seen.page.wrong(field) is not None) == (400, True), address
    assert await trail(site, "fleet_health") == []
    assert (await hers.get("/console/insight/nothing")).status == 404


async def test_why_a_line_has_no_data_is_answered_on_its_page(demo: Browser, demo_server: DemoConsole) -> None:
    iccid = demo_server.api.get("/v1/fleet/lines?limit=1").json()["data"][0]["iccid"]
    seen = await demo.get(f"/console/insight/diagnose_subscriber?ask=now&iccid={iccid}")
    assert (seen.path, "The charging system was asked for this verdict" in seen.page.text) == (f"/console/lines/{iccid}?ask=verdict", True)


async def until_made(demo: Browser, path: str) -> Seen:
    for _ in range(1200):
        seen = await demo.get(path)
        if "The report is being made." not in seen.page.text:
            return seen
        time.sleep(0.05)
    raise AssertionError("no report was made")


@pytest.mark.long
async def test_a_report_is_made_shown_with_its_chart_shared_once_and_deleted_after_a_question(
    demo: Browser, demo_server: DemoConsole
) -> None:
    form = (await demo.get("/console/insight/schedules?composite=churn_risk")).page.form("/console/insight/schedules", "create")
    assert form.fields["composite"] == "churn_risk"
    made = await demo.send(form, rhythm="weekly", weekday="TUE", at="07:30", timezone="Europe/Berlin", share="1")
    link = SHARE_LINK.search(made.page.text)
    assert link is not None and made.answer.headers["cache-control"] == "no-store"
    assert "sees the newest report, without signing in" in made.page.text and "It ends when you delete the schedule" in made.page.text
    path = next(tag.attributes["href"] for tag in made.page.tags if "/insight/schedules/sch_" in tag.attributes.get("href", ""))
    again = await demo.send(form, rhythm="weekly", weekday="TUE", at="07:30", timezone="Europe/Berlin", share="1")
    assert (again.path, "No report was made yet" in again.page.text) == (path, True)
    listed = await demo.get("/console/insight/schedules")
    assert "Each Tuesday at 07:30 (Europe/Berlin)" in listed.page.text and "shared by a link" in listed.page.text
    for page in (again, listed):
        assert SHARE_LINK.search(page.page.html) is None

    run = await demo.send(again.page.form(path, "run"))
    seen = await until_made(demo, run.path)
    assert "of being given up." in seen.page.text and 'class="chart"' in seen.page.html and LINE_LINK.search(seen.page.html)
    shared = demo_server.api.get(link[1], headers={"Accept": "text/html"}).text
    assert "of being given up" in shared and not re.search(r"89\d{16}", shared)

    asked = await demo.send(seen.page.form(path, "delete"))
    assert "its link leads nowhere at once" in asked.page.text
    gone = await demo.send(asked.page.form(path, "delete"))
    assert (gone.path, "No report is made by itself yet" in gone.page.text) == ("/console/insight/schedules", True)
    assert demo_server.api.get(link[1]).status_code == 404


@pytest.mark.long
async def test_a_report_that_failed_says_why_in_the_readers_language(demo: Browser) -> None:
    form = (await demo.get("/console/insight/schedules?composite=diagnose_subscriber")).page.form("/console/insight/schedules", "create")
    made = await demo.send(form, iccid="8988303999999999999")
    run = await demo.send(made.page.form(made.path, "run"))
    seen = await until_made(demo, run.path)
    assert "This report could not be made" in seen.page.text and "Your account has no line with this ICCID" in seen.page.text
    demo.http.headers["Accept-Language"] = "de"
    german = await demo.get(run.path)
    assert "Dieser Bericht konnte nicht erstellt werden" in german.page.text
    assert "Ihr Konto hat keine Leitung mit dieser ICCID" in german.page.text and 'lang="en"' not in german.page.html.partition("<main")[2]
    await demo.send((await demo.send(german.page.form(made.path, "delete"))).page.form(made.path, "delete"))


@pytest.mark.long
async def test_a_schedule_that_cannot_be_is_refused_beside_its_field_and_keeps_what_was_typed(hers: Browser) -> None:
    form = (await hers.get("/console/insight/schedules")).page.form("/console/insight/schedules", "create")
    for typed, field in (
        ({"rhythm": "cron", "cron": "* * * * *"}, "cron"),
        ({"at": ""}, "at"),
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"composite": "diagnose_subscriber"}, "iccid"),
        ({"webhook_url": "https://10.0.0.1/hook"}, "webhook_url"),
    ):
        seen = await hers.send(form, **typed)
        assert (seen.status, seen.page.wrong(field) is not None) == (400, True), (field, seen.page.text[:400])
        kept = seen.page.form("/console/insight/schedules", "create").fields
        assert {name: kept[name] for name in typed} == typed
    assert "No report is made by itself yet" in (await hers.get("/console/insight/schedules")).page.text
