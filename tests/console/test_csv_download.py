"""Lists of the console as files: which rows and members they hold, what a spreadsheet makes of them, and when they end."""

import csv
import io
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.changes.plans.sheet import FORMULA_BEGINNINGS, table_lines
from operations.event_types.order import ORDER_PAID
from registry.caller import Role, Tier
from registry.ports import AuditRecord
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.console.conftest import DemoConsole
from tests.console.test_shops_page import bought
from tests.console.webhook_stage import webhook_stage
from tests.pages.browser import Browser
from tests.pages.site import Site
from tests.pages.trail import trail
from transports.web.console import csv_download
from transports.web.console.csv_download import csv_cell

AUDIT = "/console/organisation/audit?format=csv"
MARK = b"\xef\xbb\xbf"


def read_table(content: bytes) -> list[dict[str, str]]:
    """The rows of a file, as a program reads them that knows of the mark."""
    assert content.startswith(MARK) and content.endswith(b"\r\n")
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


async def file_of(browser: Browser, path: str, name: str) -> list[dict[str, str]]:
    """The rows of the file that the page's own link leads to."""
    page = await browser.get(path)
    link = next(tag.attributes["href"] for tag in page.page.tags if tag.attributes.get("href", "").endswith("format=csv"))
    assert link.partition("?")[0] == path.partition("?")[0]
    answer = await browser.http.get(link)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    disposition, quoted, day = answer.headers["content-disposition"].partition(f'filename="{name}-')
    assert (disposition, bool(quoted), len(day)) == ("attachment; ", True, len('2026-11-27.csv"'))
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
    return read_table(answer.content)


@pytest.mark.long
@given(
    st.lists(
        st.lists(
            st.text(max_size=12) | st.sampled_from(["=1+1", "+", "-2", "@a", "\tb", "\r=", '="a"', "a\r\n=b"]), min_size=2, max_size=4
        ),
        max_size=4,
    )
)
def test_no_text_is_a_formula_and_every_text_is_read_as_it_was(lines: list[list[str]]) -> None:
    content = table_lines(lines).decode()
    assert not lines or content.endswith("\r\n")
    read = list(csv.reader(io.StringIO(content, newline="")))
    assert read == [[f"'{cell}" if cell.startswith(FORMULA_BEGINNINGS) else cell for cell in line] for line in lines]
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for line in read for cell in line)


def test_a_cell_holds_a_number_as_it_is_words_of_a_list_and_json_of_what_has_parts() -> None:
    assert [csv_cell(value) for value in (None, True, -1.5, ["a", "b"], {"amount": 3}, [{"a": 1}], "-x")] == [
        "", "true", -1.5, "a b", '{"amount":3}', '[{"a":1}]', "-x",
    ]  # fmt: skip
    assert table_lines([[csv_cell(-1.5), csv_cell("-x")]]) == b"-1.5,'-x\r\n"


async def test_the_file_of_the_fleet_holds_every_line_of_the_filters_with_the_columns_of_the_page(
    demo: Browser, demo_server: DemoConsole
) -> None:
    rows = await file_of(demo, "/console/fleet?status=ACTIVE&columns=name.msisdn.tags&sort=-last_used", "fleet")
    asked = {"status": "ACTIVE", "limit": 200, "fields": "name,msisdn", "sort": "-last_used"}
    listed = demo_server.api.get("/v1/fleet/lines", params=asked).json()["data"]
    assert len(rows) > 100  # more than a page shows
    assert list(rows[0]) == ["iccid", "name", "msisdn", "tags"]
    assert [(row["iccid"], row["name"], row["msisdn"]) for row in rows] == [
        (line["iccid"], line["name"] or "", line["msisdn"] or "") for line in listed
    ]


@pytest.mark.long
async def test_the_results_of_a_change_are_a_file_and_the_page_says_who_planned_it(demo: Browser, demo_server: DemoConsole) -> None:
    api = demo_server.api
    lines = [line["iccid"] for line in api.get("/v1/fleet/lines", params={"status": "ACTIVE", "limit": 3}).json()["data"]]
    asked = {"change": {"action": "set_status", "status": "SUSPENDED"}, "lines": {"iccids": lines}}
    plan = api.post("/v1/changes", json=asked).json()
    key = api.get("/v1/whoami").json()["credential"]
    assert plan["planned_by"]["credential"] == key and plan["planned_by"]["person"].startswith("usr_")
    assert api.get(f"/v1/changes/{plan['id']}").json()["planned_by"] == plan["planned_by"]
    rows = await file_of(demo, f"/console/changes/{plan['id']}?rows=planned", "changes")
    assert [(row["iccid"], row["state"], row["after"], row["undoable"]) for row in rows] == [
        (iccid, "planned", '{"status":"SUSPENDED"}', "true") for iccid in lines
    ]
    page = await demo.get(f"/console/changes/{plan['id']}")
    assert f"/console/organisation/keys/{key}" in page.page.html and "Planned by" in page.page.text
    assert api.post(f"/v1/changes/{plan['id']}/cancel", json={}).status_code == 200


@pytest.mark.long
async def test_the_file_of_orders_holds_no_code_and_nothing_of_a_buyer(demo: Browser, demo_server: DemoConsole) -> None:
    headers = {"Accept": "text/html", "Accept-Language": "en"}
    async with httpx.AsyncClient(base_url=demo_server.server.base_url, headers=headers, timeout=60) as http:
        number, iccid = await bought(Browser(http))
    rows = await file_of(demo, "/console/shops/orders?storefront=demo&status=ready", "orders")
    order = next(row for row in rows if row["id"] == number)
    assert (order["plan"], order["currency"], order["refund"]) == ("nordics-1gb", "EUR", "")
    whole = str(rows)
    assert "@travel.example" not in whole and "LPA:" not in whole and "ord_" not in whole and iccid not in whole


@pytest.mark.long
async def test_the_file_of_deliveries_holds_those_of_the_filters(site: Site, hers: Browser, fjord: str) -> None:
    stage = webhook_stage(site, hers, fjord)
    async with receiver(status_answer("204 No Content")) as hook:
        endpoint = await stage.endpoint(hook.url(), "order.paid")
        events = [await stage.write(ORDER_PAID) for _ in range(2)]
        await stage.deliver()
    await stage.sender.aclose()
    rows = await file_of(hers, f"/console/webhooks/deliveries?endpoint={endpoint}&state=delivered", "deliveries")
    assert {(row["event"], row["type"], row["endpoint"]) for row in rows} == {(event, "order.paid", endpoint) for event in events}
    answer = await hers.http.get(f"/console/webhooks/deliveries?endpoint={endpoint}&state=failed&format=csv")
    assert read_table(answer.content) == []
    wrong = await hers.http.get("/console/webhooks/deliveries?since=yesterday&format=csv")
    assert (wrong.status_code, wrong.headers["content-type"]) == (400, "text/html; charset=utf-8")


@pytest.fixture
async def formula(site: Site, browser: Browser) -> AsyncGenerator[str]:
    """Somebody with a formula for a name is signed in, and 250 calls of theirs stand in the log; their organisation."""
    person = await site.person("eve@fjord.example", name="=HYPERLINK(1)")
    organisation = await site.organisation(person, "Sheets", tier=Tier.ENTERPRISE)
    await site.sign_in(browser, "eve@fjord.example", "/console")
    for number in range(250):
        record = AuditRecord(site.clock.now(), organisation, "http", "get_balance", person, "", "ok", 200, 1.0, f"req_{number}")
        site.service.pipeline.journal.record(record)
    await site.service.flush()
    yield organisation


@pytest.mark.long
async def test_the_file_of_the_audit_log_holds_every_page_of_the_list_and_is_itself_one_row_of_it(
    site: Site, browser: Browser, formula: str
) -> None:
    del formula
    rows = await file_of(browser, "/console/organisation/audit?way=http", "audit-log")
    assert (len(rows), {row["operation"] for row in rows}, {row["surface"] for row in rows}) == (250, {"get_balance"}, {"http"})
    assert len({row["request_id"] for row in rows}) == 250 and {row["principal_name"] for row in rows} == {"'=HYPERLINK(1)"}
    assert len(await trail(site, "console.organisation.audit.csv")) == 1
    assert await trail(site, "list_audit_log") == []
    shown = await browser.get("/console/organisation/audit?way=web")
    assert "Downloaded a list" in shown.page.text and "Looked at a page" not in shown.page.text
    head = await browser.http.head(AUDIT)
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.long
async def test_a_file_ends_at_the_most_rows_that_one_holds_and_says_so(
    browser: Browser, formula: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del formula
    for most, kept in ((120, 120), (100, 100), (250, 250)):
        monkeypatch.setattr(csv_download, "MOST_CSV_ROWS", most)
        rows = read_table((await browser.http.get(f"{AUDIT}&way=http")).content)
        assert [row["at"][:1] for row in rows] == ["2"] * kept + ["#"] * (most < 250)
    assert "narrow the filters" in read_table((await browser.http.get(f"{AUDIT}&looks=shown")).content)[-1]["at"]


async def taken(site: Site, browser: Browser, path: str, query: bytes, first: Callable[[], Awaitable[None]]) -> tuple[int, bytes]:
    """What is sent for a GET; `first` is done once its first piece has come."""
    cookies = "; ".join(f"{one.name}={one.value}" for one in browser.http.cookies.jar)
    status, pieces, asked = list[int](), list[bytes](), list[bool]()

    async def receive() -> MutableMapping[str, Any]:
        if asked:
            await anyio.sleep_forever()
        asked.append(True)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            status.append(message["status"])
            return
        pieces.append(message.get("body", b""))
        if len(pieces) == 2:  # the heading, and the first rows
            await first()

    scope: MutableMapping[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1:8000"), (b"cookie", cookies.encode())],
        "client": ("203.0.113.7", 50000),
        "server": ("127.0.0.1", 8000),
    }
    with anyio.fail_after(20):
        await site.app(scope, receive, send)
    return status[0], b"".join(pieces)


@pytest.mark.long
async def test_a_file_ends_when_its_reader_signs_out_and_a_third_at_once_has_to_wait(site: Site, browser: Browser, formula: str) -> None:
    path, query = "/console/organisation/audit", b"format=csv&way=http"
    statuses = list[int]()

    async def they_sign_out() -> None:
        statuses.append((await browser.http.get(f"{path}?format=csv")).status_code)
        await browser.send((await browser.get("/console/events")).page.form("/auth/sign-out"))

    async def another_begins() -> None:
        statuses.append((await taken(site, browser, path, query, they_sign_out))[0])

    status, content = await taken(site, browser, path, query, another_begins)
    rows = read_table(content)
    assert ([status, *statuses], len(rows)) == ([200, 503, 200], 101)
    assert rows[-1]["at"].startswith("# The list goes on, and this file does not: you have signed out")
    assert (await browser.get(AUDIT)).path.startswith("/auth/sign-in")
    del formula


@pytest.mark.long
async def test_what_somebody_may_not_list_is_a_page_and_no_file(site: Site, browser: Browser, fjord: str) -> None:
    await site.join(await site.person("bo@fjord.example"), fjord, Role.MEMBER)
    await site.sign_in(browser, "bo@fjord.example", "/console")
    seen = await browser.get(AUDIT)
    assert (seen.status, seen.answer.headers["content-type"]) == (403, "text/html; charset=utf-8")
    assert "content-disposition" not in seen.answer.headers


async def test_files_that_are_asked_for_at_one_moment_are_no_more_than_may_be_read(browser: Browser, formula: str) -> None:
    del formula
    statuses = list[int]()

    async def take() -> None:
        statuses.append((await browser.http.get(f"{AUDIT}&way=http")).status_code)

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(take)
    assert sorted(statuses) == [200, 200, 503, 503, 503, 503]
