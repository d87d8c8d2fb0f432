"""What holds for all pages of the console: who sees them, what they cost, and that nothing foreign runs on them."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from operations.languages import spoken_languages
from registry.caller import Tier
from registry.policy import quota_period
from storage.quota import read_quota_used
from tests.pages.browser import Browser
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site, open_site
from tests.pages.test_every_page import HOSTILE_MARKUP
from tests.pages.trail import trail
from transports.web.console.app import CONSOLE_ROUTES, CONSOLE_TEXTS
from transports.web.console.assets import console_asset
from transports.web.console.request import same_call

pytestmark = pytest.mark.long

PAGES = [path for path, route in CONSOLE_ROUTES.items() if route.show and route.private and "{" not in path and path != "/events/stream"]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types console; "
    "frame-ancestors 'none'"
)
PAGE_CALL = re.compile(r"reseller call (\w+)")
"""A call in the list of those that a page has asked."""
OUT_OF_THE_RECORD = {"query_fleet", "fleet_problems", "fleet_sync_status"}
"""Answered out of what was read of the fleet, without a call."""
PLACE = re.compile(r"\{\w*\}")
HOSTILE_NAMES = ["$(id)", "`id`", "it's", '"; id; "', "a\u202eb\x1b[31m", "$HOME \\ \n id", HOSTILE_MARKUP]


async def test_a_page_leads_a_stranger_to_sign_in_and_back(site: Site, browser: Browser, fjord: str) -> None:
    for path in PAGES:
        seen = await browser.get(f"/console{path}?text=88")
        assert seen.page.form("/auth/sign-in").fields["next"] == f"/console{path}?text=88"
    seen = await site.sign_in(browser, ADA_ADDRESS, wanted := f"/console{PAGES[-1]}?text=88")
    assert seen.path == wanted


async def check_pages(browser: Browser, language: str, *, statuses: tuple[int, ...]) -> set[str]:
    """Every page, as closed to foreign code as the policy says, with one heading, in the language, and its forms sealed.

    The elements that there are on any of them.
    """
    elements = set[str]()
    browser.http.headers["Accept-Language"] = language
    for path in PAGES:
        seen = await browser.get(f"/console{path}")
        assert seen.status in statuses, path
        assert seen.answer.headers["content-security-policy"] == POLICY
        assert seen.answer.headers["cache-control"] == "no-store"
        tags = [tag.name for tag in seen.page.tags]
        assert tags.count("h1") == tags.count("main") == seen.page.html.partition("</head>")[0].count("<title>") == 1, path
        assert next(tag for tag in seen.page.tags if tag.name == "html").attributes["lang"] == language
        ids = [tag.attributes["id"] for tag in seen.page.tags if "id" in tag.attributes]
        assert len(ids) == len(set(ids)), path
        for tag in seen.page.tags:
            assert "style" not in tag.attributes and not any(name.startswith("on") for name in tag.attributes), (path, tag)
        for form in seen.page.forms:
            assert form.method == "get" or form.fields["csrf"], path
        elements.update(tags)
    return elements


async def test_every_page_of_the_demo_is_closed_and_readable(demo: Browser) -> None:
    await check_pages(demo, "de", statuses=(200,))


async def test_every_page_of_an_organisation_that_is_not_connected_says_what_to_do(hers: Browser) -> None:
    await check_pages(hers, "en", statuses=(200, 409))


async def test_hostile_names_stay_texts_on_every_page(site: Site, browser: Browser) -> None:
    person = await site.person("evil@fjord.example", name=HOSTILE_MARKUP)
    await site.organisation(person, HOSTILE_MARKUP)
    await site.sign_in(browser, "evil@fjord.example", "/console")
    assert (await check_pages(browser, "en", statuses=(200, 409))).isdisjoint({"img", "iframe"})


async def test_pages_leave_a_free_organisation_its_quota(site: Site, browser: Browser) -> None:
    person = await site.person("free@fjord.example")
    organisation = await site.organisation(person, "Free", tier=Tier.FREE)
    await site.sign_in(browser, "free@fjord.example", "/console/fleet")
    before = len(await trail(site, "console.fleet"))
    for _ in range(40):
        site.clock.advance(1)
        await browser.http.get("/console/fleet")
    rows = await trail(site, "console.fleet")
    assert len(rows) - before == 40
    period = quota_period(site.clock.now()).name
    assert await site.service.store.read(read_quota_used, organisation=organisation, period=period) == 0
    assert {(row.surface, row.organisation != "") for row in rows} == {("web", True)}
    assert await trail(site, "query_fleet") == []


async def test_the_sixty_first_page_of_a_minute_is_refused_and_the_next_minute_shows_it(tmp_path: Path) -> None:
    async with open_site(tmp_path, burst_limit=True) as site, site.browser() as browser:
        await site.organisation(await site.person(ADA_ADDRESS), "Fjord")
        await site.sign_in(browser, ADA_ADDRESS, "/console/fleet")
        statuses = [(await browser.http.get("/console/fleet")).status_code for _ in range(60)]
        assert statuses == [409] * 59 + [429]
        refused = await browser.post("/console/language", {"language": "de"})  # forms are counted with the pages
        assert refused.status == 429
        site.clock.advance(60)
        assert (await browser.http.get("/console/fleet")).status_code == 409


async def test_a_form_without_its_seal_or_of_another_site_changes_nothing(hers: Browser) -> None:
    form = (await hers.get("/console")).page.form("/console/language")
    assert (await hers.post("/console/language", {**form.fields, "csrf": "x"})).status == 403
    assert (await hers.post("/console/language", form.fields, Origin="https://evil.example")).status == 403
    assert (await hers.post("/console/language", form.fields, **{"Sec-Fetch-Site": "cross-site"})).status == 403
    assert hers.cookie("console_language") is None


async def test_a_chosen_language_stays_in_the_browser(hers: Browser) -> None:
    seen = await hers.send((await hers.get("/console")).page.form("/console/language"))
    assert (seen.path, "Heute" in seen.page.text) == ("/console", True)
    assert "Flotte" in (await hers.get("/console/fleet")).page.text


async def test_a_first_visit_is_three_requests_of_sixty_kilobytes_together(demo: Browser) -> None:
    page = (await demo.get("/console")).page
    named = [tag.attributes.get("href" if tag.name == "link" else "src", "") for tag in page.tags if tag.name in ("link", "script", "img")]
    asked = ["/console", *dict.fromkeys(address for address in named if address and not address.startswith("data:"))]
    assert len(asked) <= 3, asked
    sent = 0
    for address in asked:
        async with demo.http.stream("GET", address, headers={"Accept-Encoding": "gzip"}) as answer:
            assert answer.status_code == 200
            sent += len(b"".join([piece async for piece in answer.aiter_raw()]))
    assert 10_000 < sent <= 60_000


async def test_pages_ask_the_charging_system_for_nothing_that_they_do_not_show(demo: Browser) -> None:
    lines = (await demo.get("/console/fleet")).page.tags
    line = next(tag.attributes["href"] for tag in lines if "/console/lines/" in tag.attributes.get("href", ""))
    asked = dict[str, set[str]]()
    for path in (*PAGES, line.removeprefix("/console")):
        calls = set(PAGE_CALL.findall((await demo.get(f"/console{path}")).page.html))
        asked[path] = {name for name in calls - OUT_OF_THE_RECORD if CATALOGUE.operations[name].upstream}
    accounts = {"list_reseller_accounts"}
    assert {path: names for path, names in asked.items() if names and path != "/money/economics"} == {
        "/money": accounts,
        "/money/invoices/new": accounts,
    }


async def test_a_file_is_kept_for_good_and_another_name_is_none(browser: Browser) -> None:
    for ending in ("css", "js"):
        answer = await browser.http.get(f"/console/assets/{console_asset(ending).name}", headers={"Accept-Encoding": "gzip"})
        assert (answer.status_code, answer.headers["content-encoding"]) == (200, "gzip")
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.content == console_asset(ending).content
    assert (await browser.http.get("/console/assets/0123456789abcdef.css")).status_code == 404


def test_both_languages_have_the_same_texts_with_the_same_places() -> None:
    for file in CONSOLE_TEXTS.glob("*.toml"):
        sections = tomllib.loads(file.read_text())
        if "en" not in sections:  # English is read from declarations: test_translations.py
            assert sections.keys() == {*spoken_languages()} - {"en"}, file.name
            continue
        assert sections.keys() == set(spoken_languages()), file.name
        english = {name: sorted(PLACE.findall(text)) for name, text in sections["en"].items()}
        for language, texts in sections.items():
            assert {name: sorted(PLACE.findall(text)) for name, text in texts.items()} == english, (file.name, language)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_copied_lines_hold_nothing_that_a_shell_runs(name: str) -> None:
    call = same_call(CATALOGUE.operations["query_fleet"], {"text": name}, "http://127.0.0.1:1")
    for line in (call.curl, call.command):
        script = f'curl() {{ printf \'%s\\n\' "$@"; }}; reseller() {{ curl "$@"; }}; {line}'
        printed = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True, check=True, env={"RESELLER_API_KEY": "ak_1"})
        assert printed.stderr == "" and "uid=" not in printed.stdout
        assert not re.search("[\u202e\x1b]", line)
