"""get_intelligence_share: what a link opens, for how long, and what whoever has none learns."""

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from tests.abuse.test_order_guesses import faceless
from tests.reports.paper import Paper
from tests.reports.press import METHOD, SHARE, Press, open_press
from tests.reports.sheets import SHEET_ICCID, WHOLE, sheet
from tests.stage import opened

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


press = opened(open_press)


@pytest.mark.rule("4.7.60")
async def test_a_stranger_reads_the_newest_report_without_identifiers(press: Press) -> None:
    link = await press.link(sheet(headline="An older one"))
    await press.report(link, WHOLE)
    await press.report(link, sheet(), state="failed")
    assert await press.read(link) == snapshot(
        {
            "object": "intelligence.shared_report",
            "organization": "Fjord Travel",
            "composite": "fleet_health",
            "ready": True,
            "generated_at": "2027-01-15T12:00:00Z",
            "method": "Status, packages and last registration of each line, as the charging system tells them.",
            "sampled": 118,
            "of": 120,
            "sheet": {
                "title": "Fleet health",
                "headline": "3 lines are well",
                "figures": [
                    {"label": "Lines", "kind": "number", "value": 120},
                    {"label": "Cost", "kind": "money", "value": 412.25},
                    {"label": "Data", "kind": "bytes", "value": 123500000000000.0},
                    {"label": "Dearest line", "kind": "line", "value": "Line 1"},
                    {"label": "Named", "kind": "text", "value": "[redacted]"},
                    {"label": "Country", "kind": "country", "value": "NO"},
                ],
                "charts": [
                    {
                        "title": "Data by day",
                        "shape": "bar",
                        "kind": "money",
                        "places_kind": "line",
                        "places": ["Line 2", "Line 1"],
                        "series_kind": "text",
                        "series": [{"label": "Name 1", "values": [1.5, None]}, {"label": "Name 2", "values": [2, 3]}],
                    }
                ],
                "tables": [
                    {
                        "title": "Lines",
                        "columns": [
                            {"label": "Line", "kind": "line"},
                            {"label": "Network", "kind": "network"},
                            {"label": "Share", "kind": "percent"},
                            {"label": "Since", "kind": "day"},
                        ],
                        "rows": [["Line 2", "242-01", 12.345679, "2027-01-02"], ["Line 1", None, None, None]],
                        "note": "The 2 that cost most. Left out here: Name.",
                    },
                    {
                        "title": "Lines",
                        "columns": [{"label": "Account", "kind": "text"}, {"label": "Lines", "kind": "number"}],
                        "rows": [["Name 3", 4], ["Name 4", 2]],
                        "note": None,
                    },
                ],
            },
        }
    )
    assert press.world.faults == []


async def test_the_finding_is_never_in_the_answer(press: Press) -> None:
    link = await press.link(WHOLE)
    assert "kept with its owner" not in str(await press.read(link)) + (await press.page(link)).text


async def test_a_number_as_long_as_an_identifier_is_written_short(press: Press) -> None:
    link = await press.link(WHOLE)
    answer = await press.public.get(f"{SHARE}/{link.token}")
    assert '"kind":"bytes","value":1.235e+14}' in answer.text
    assert answer.json()["sheet"]["figures"][2]["value"] == 123_500_000_000_000
    assert "123 TB" in (await press.page(link)).text.replace("\u00a0", " ")


@pytest.mark.parametrize("format", ["json", "html"])
async def test_an_answer_is_nobodys_to_keep_and_only_to_be_looked_at(press: Press, format: str) -> None:
    link = await press.link(WHOLE)
    answer = await press.public.get(f"{SHARE}/{link.token}", params={"format": format})
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and policy.endswith(
        "'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    kept = ("cache-control", "x-content-type-options", "referrer-policy", "x-robots-tag")
    assert [answer.headers.get_list(name) for name in kept] == [["no-store"], ["nosniff"], ["no-referrer"], ["noindex"]]


async def test_before_the_first_report_the_link_says_that_it_is_right(press: Press) -> None:
    link = await press.link()
    assert await press.read(link) == snapshot(
        {
            "object": "intelligence.shared_report",
            "organization": "Fjord Travel",
            "composite": "fleet_health",
            "ready": False,
            "generated_at": None,
            "method": None,
            "sampled": None,
            "of": None,
            "sheet": None,
        }
    )
    assert "No report yet" in (await press.page(link)).text


@pytest.mark.rule("4.7.62")
async def test_a_deleted_schedule_ends_its_link_at_once(press: Press) -> None:
    link, other = await press.link(WHOLE), await press.link(sheet())
    await press.read(link)
    await press.end(link)
    for format in ("json", "html"):
        assert (await press.public.get(f"{SHARE}/{link.token}", params={"format": format})).status_code == 404
    assert (await press.read(other))["ready"] is True


async def test_links_of_an_organisation_that_may_not_delete_them_any_more_are_dead_until_it_may(press: Press) -> None:
    link = await press.link(WHOLE)
    await press.world.move_to(Tier.FREE, press.caller.organisation)
    assert (await press.public.get(f"{SHARE}/{link.token}")).status_code == 404
    await press.world.move_to(Tier.PRO, press.caller.organisation)
    assert (await press.read(link))["ready"] is True


async def test_wrong_ended_and_mistyped_links_are_answered_alike(press: Press) -> None:
    link, ended = await press.link(WHOLE), await press.link(WHOLE)
    await press.end(ended)
    near = link.token[:-1] + ("A" if link.token[-1] != "A" else "B")
    guesses = [near, ended.token, "x", link.token + "=", link.token.swapcase(), "%20", "%F0%9F%98%80", "a" * 4000]
    answers = [await press.public.get(f"{SHARE}/{guess}") for guess in guesses]
    answers.append(await press.public.get(f"{SHARE}/{near}", headers=BROWSER, params={"format": "json"}))
    assert len({faceless(answer) for answer in answers}) == 1
    assert (answers[0].status_code, answers[0].json()["code"], answers[0].headers["cache-control"]) == (404, "not_found", "no-store")
    assert set(answers[0].json()) == {"error", "code", "request_id", "hint"}


async def test_a_browser_is_shown_one_page_for_every_link_that_leads_to_nothing(press: Press) -> None:
    link, ended = await press.link(WHOLE), await press.link(WHOLE)
    await press.end(ended)
    answers = [await press.public.get(f"{SHARE}/{at}", headers=BROWSER) for at in (link.token + "x", ended.token, "x", "a" * 4000)]
    answers.append(await press.public.get(f"{SHARE}/{ended.token}", headers=BROWSER, params={"format": "html"}))
    answers.append(await press.public.get(f"{SHARE}/{ended.token}", params={"format": "html"}))
    assert {(answer.status_code, answer.content) for answer in answers} == {(404, answers[0].content)}
    assert len({tuple(pair for pair in answer.headers.items() if pair[0] not in ("request-id", "date")) for answer in answers}) == 1
    assert "<h1>There is no report at this link</h1>" in answers[0].text and "<script" not in answers[0].text
    kept = {name: answers[0].headers[name] for name in ("content-type", "cache-control", "referrer-policy", "x-robots-tag")}
    assert kept == {
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-robots-tag": "noindex",
    }
    assert answers[0].headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    line = press.world.lines[-1]
    assert (line.status, line.code, line.path) == (404, "not_found", "/v1/intelligence/share/{token}")


@pytest.mark.cases
@pytest.mark.parametrize(
    ("accept", "query", "is_page"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", "", True),
        ("text/html, */*;q=0.1", "", True),
        ("TEXT/HTML", "", True),
        ("application/json;q=0.9, text/html", "", True),
        ("*/*", "", False),
        ("application/json", "", False),
        ("application/json, text/html", "", False),
        ("application/json, text/html;q=0.5", "", False),
        ("application/json, text/plain, */*", "", False),
        ("text/html;q=0", "", False),
        ("application/xhtml+xml", "", False),
        ("", "", False),
        ("text/html", "?format=json", False),
        ("application/json", "?format=html", True),
    ],
)
async def test_a_browser_is_shown_the_page_and_a_program_gets_json(press: Press, accept: str, query: str, is_page: bool) -> None:
    link = await press.link(WHOLE)
    for token, status in ((link.token, 200), (link.token + "x", 404)):
        answer = await press.public.get(f"{SHARE}/{token}{query}", headers={"Accept": accept})
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (
            status,
            "text/html" if is_page else "application/json",
        )
    assert (await press.public.get(f"{SHARE}/{link.token}", headers={"Accept": accept})).headers["vary"] == "Accept"


async def test_ten_guesses_a_minute_are_all_and_orders_are_counted_with_them(press: Press) -> None:
    link = await press.link(WHOLE)
    said = [(await press.public.get(f"{SHARE}/{at}")).status_code for at in range(12)]
    assert said == [404] * 10 + [429] * 2
    right = await press.public.get(f"{SHARE}/{link.token}")
    assert (right.status_code, right.headers["cache-control"], right.headers["retry-after"]) == (429, "no-store", "6")
    press.world.clock.advance(60)
    assert (await press.read(link))["ready"] is True


async def test_a_format_that_there_is_not_is_refused_without_a_look_at_the_link(press: Press) -> None:
    link = await press.link(WHOLE)
    right, wrong = [await press.public.get(f"{SHARE}/{token}", params={"format": "pdf"}) for token in (link.token, "x")]
    assert faceless(right) == faceless(wrong)
    assert (right.status_code, right.json()["param"]) == (400, "format")


async def test_the_log_names_the_organisation_and_never_the_token(press: Press) -> None:
    link = await press.link(WHOLE)
    await press.read(link)
    await press.public.get(f"{SHARE}/{link.token}x")
    line, wrong = press.world.lines[-2:]
    assert (wrong.path, wrong.organisation, wrong.status) == ("/v1/intelligence/share/{token}", "", 404)
    assert (line.path, line.organisation, line.status) == ("/v1/intelligence/share/{token}", press.caller.organisation, 200)
    assert link.token not in str(press.world.lines)


async def test_a_fault_of_ours_is_blotted_out_and_told_to_the_operator(press: Press) -> None:
    wrong = sheet(
        figures=[{"label": "Lines", "kind": "word", "value": SHEET_ICCID}, {"label": "Where", "kind": "country", "value": "Norway"}]
    )
    link = await press.link(wrong, method=f"Counted for ola@fjord.example and +47 900 12 345, SIM {SHEET_ICCID}")
    said = await press.read(link)
    assert [figure["value"] for figure in said["sheet"]["figures"]] == ["[redacted]"] * 2
    assert said["method"] is None
    ((request_id, operation, error),) = press.world.faults
    assert (operation, request_id[:4]) == ("get_intelligence_share", "req_")
    assert str(error) == snapshot("values left out of a shared report of fleet_health: no country, no method, no word")


async def test_an_address_in_the_organisations_own_name_is_left_out_and_is_no_fault(tmp_path: Path) -> None:
    async with open_press(tmp_path, name="Fjord\u202e <b>help@fjord.example</b> +4790012345") as press:
        link = await press.link(WHOLE)
        assert (await press.read(link))["organization"] == snapshot("Fjord  <b>[redacted]</b> [redacted]")
        assert "<b>" not in (await press.page(link)).text
        assert press.world.faults == []


@pytest.mark.rule("4.7.61")
async def test_a_page_is_answered_where_it_is_asked_for(press: Press) -> None:
    page = await press.page(await press.link(WHOLE))
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    seen = Paper(page.text)
    assert all(words in seen.text for words in ("Fjord Travel", "3 lines are well", "\u20ac412.25", "Norway", "Line 2", "Name 4", METHOD))
