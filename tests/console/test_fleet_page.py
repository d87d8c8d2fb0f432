"""The page Fleet: its columns and its saved views, which stand in addresses that a colleague can open."""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.console.conftest import DemoConsole
from tests.pages.browser import Browser, Seen
from tests.pages.document import Form
from transports.web.console.views import MOST_VIEWS

FLEET = "/console/fleet"


def headings(seen: Seen) -> list[str]:
    """What stands over the columns, without the boxes and the ICCID."""
    cells = seen.page.html.partition("<thead>")[2].partition("</thead>")[0].split("<th")[3:]
    return [each.partition(">")[2].partition("<")[0] for each in cells]


def view_form(seen: Seen, do: str, **named: str) -> Form:
    return seen.page.form(FLEET, do, **named)


@pytest.mark.long
async def test_the_columns_of_the_address_are_shown_in_their_order_and_unknown_ones_are_ignored(demo: Browser) -> None:
    usual = await demo.get(FLEET)
    assert headings(usual) == ["Name", "Status", "Country", "Last used", "Package", "Data left", "Problems"]
    seen = await demo.get(f"{FLEET}?status=ACTIVE&columns=msisdn&columns=balance&columns=pin&columns=name")
    assert headings(seen) == ["Name", "Phone number", "Balance"]
    assert "€" in seen.page.text
    kept = seen.page.form("/console/changes/new").fields
    assert (kept["columns"], kept["status"]) == ("name.msisdn.balance", "ACTIVE")
    filters = next(form for form in seen.page.forms if form.action == FLEET and "text" in form.fields)
    assert filters.fields["columns"] == "name.msisdn.balance"
    assert headings(await demo.get(f"{FLEET}?columns=activation_code.puk1")) == headings(usual)


async def test_each_value_of_a_line_names_its_column_and_says_that_it_stands_in_a_table(demo: Browser) -> None:
    seen = await demo.get(f"{FLEET}?columns=name.status.country")
    parts = [tag for tag in seen.page.tags if tag.name in ("table", "tr", "th", "td")]
    roles = [tag.attributes["role"] for tag in parts]
    assert roles[:7] == ["table", "row", *["columnheader"] * 5]
    assert roles[7:13] == ["row", "cell", "rowheader", "cell", "cell", "cell"]
    assert [tag.attributes.get("data-label") for tag in parts[7:13]] == [None, None, None, "Name", "Status", "Country"]


@pytest.mark.long
async def test_a_saved_view_is_a_name_for_the_address_until_it_is_forgotten(demo: Browser) -> None:
    seen = await demo.get(f"{FLEET}?status=SUSPENDED&columns=name.tags&sort=-last_used")
    form = view_form(seen, "save_view")
    saved = await demo.send(form, view="  Asleep <b> ")
    query = dict(parse_qsl(urlsplit(saved.path).query))
    assert query == {"status": "SUSPENDED", "columns": "name.tags", "sort": "-last_used"}
    again = await demo.get(FLEET)
    links = [tag.attributes["href"] for tag in again.page.tags if tag.attributes.get("class") == "chip long"]
    assert links == [saved.path] and "Asleep &lt;b&gt;" in again.page.html
    forgotten = await demo.send(view_form(again, "forget_view", view="Asleep <b>"))
    assert forgotten.status == 200 and "Asleep" not in forgotten.page.html
    assert not any(one.name.startswith("console_views") for one in demo.http.cookies.jar)


@pytest.mark.long
async def test_a_browser_keeps_ten_views_of_names_that_are_short_enough(demo: Browser, demo_server: DemoConsole) -> None:
    form = view_form(await demo.get(f"{FLEET}?country=no"), "save_view")
    for wrong in ("", "x" * 41):
        seen = await demo.send(form, view=wrong)
        assert (seen.status, view_form(seen, "save_view").fields["view"]) == (400, wrong)
        assert "at most 40 characters" in (seen.page.wrong("view") or "")
    for number in range(MOST_VIEWS):
        assert (await demo.send(form, view=f"v{number}")).status == 200
    full = await demo.send(form, view="one more")
    assert full.status == 409 and "keeps 10 views" in (full.page.wrong("view") or "")
    assert (await demo.send(form, view="v3")).status == 200  # takes the place of the former one

    cookie = next(one for one in demo.http.cookies.jar if one.name.startswith("console_views"))
    assert (cookie.path, cookie.has_nonstandard_attr("HttpOnly"), len(cookie.value or "") <= 2048) == ("/console", True, True)
    demo.http.cookies.set(cookie.name, f"A{cookie.value}", domain=cookie.domain, path=cookie.path)
    assert "v3" not in (await demo.get(FLEET)).page.text  # nobody else has made it
    assert demo_server.cookies.keys().isdisjoint({cookie.name})


async def test_a_form_that_asks_for_something_else_is_refused(demo: Browser) -> None:
    form = view_form(await demo.get(FLEET), "save_view")
    assert (await demo.post(FLEET, {**form.fields, "do": "burn"})).status == 400


async def test_a_text_whose_hits_are_all_on_the_first_page_is_not_counted_once_more(demo: Browser, demo_server: DemoConsole) -> None:
    iccid = demo_server.api.get("/v1/fleet/lines", params={"limit": 1}).json()["data"][0]["iccid"]
    one = await demo.get(f"{FLEET}?text={iccid}")
    assert re.search(r"\b1 line\b", one.page.text) and iccid in one.page.text and "countOnly" not in one.page.text
    many = await demo.get(f"{FLEET}?text=89")
    assert "countOnly" in many.page.text
