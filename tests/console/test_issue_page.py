"""The pages Issue, on the demo: what was asked for, what is sold, what is left, and what a person settles."""

import re
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest

from tests.console.conftest import DemoConsole
from tests.console.test_csv_download import file_of
from tests.network_facts import TEMPLATE
from tests.pages.browser import Browser, Seen

NEW, PRODUCTS, LEDGER = "/console/issue/new", "/console/issue/products", "/console/issue/ledger"


def shows_no_codes(seen: Seen) -> bool:
    return "LPA:" not in seen.page.html and "K2-" not in seen.page.html and "TEST-" not in seen.page.html


@pytest.mark.long
async def test_an_esim_is_issued_once_and_its_page_says_that_it_is_there_without_codes(demo: Browser, demo_server: DemoConsole) -> None:
    assert "/console/issue" in (await demo.get("/console")).page.html
    form = (await demo.get(NEW)).page.form(NEW)
    seen = await demo.send(form, plan="test_eu_1gb", note="order 1042")
    assert seen.status == 200 and re.fullmatch(r"/console/issue/intents/cni_\w+\?done=issued", seen.path)
    again = await demo.send(form, plan="test_eu_1gb", note="order 1042")
    assert again.path == seen.path
    assert "It has its eSIM." in seen.page.text and "order 1042" in seen.page.text and shows_no_codes(seen)
    listed = await demo.get("/console/issue")
    assert "Every intent of this page has come to its end." in listed.page.text and shows_no_codes(listed)
    assert seen.path.partition("?")[0] in listed.page.html
    first = demo_server.api.get("/v1/connectivity/intents", params={"limit": 1}).json()["data"][0]["id"]
    assert (await demo.get(f"/console/issue?after={first}")).status == 200


@pytest.mark.long
async def test_an_intent_that_waits_gets_its_plan_after_a_question(demo: Browser) -> None:
    waiting = await demo.send((await demo.get(NEW)).page.form(NEW), plan="")
    page = waiting.path.partition("?")[0]
    assert "It waits for a plan: choose one, and its eSIM is issued." in waiting.page.text
    asked = await demo.send(waiting.page.form(page, "confirm"), plan="test_global_1gb")
    assert "Issue this eSIM?" in asked.page.text and "Waits for a plan" in (await demo.get(page)).page.text
    issued = await demo.send(asked.page.form(page))
    assert (issued.path, "It has its eSIM." in issued.page.text, shows_no_codes(issued)) == (f"{page}?done=issued", True, True)
    assert (await demo.get("/console/issue/intents/cni_nobodys")).status == 404


async def test_intents_are_found_by_their_state_and_days_and_the_pages_keep_what_was_asked(demo: Browser) -> None:
    await demo.send((await demo.get(NEW)).page.form(NEW), plan="test_eu_1gb")
    waiting = [await demo.send((await demo.get(NEW)).page.form(NEW), plan="") for _ in range(2)]
    seen = await demo.get("/console/issue?status=requires_plan&from=2024-01-01")
    shown = re.findall(r'href="/console/issue/intents/(cni_\w+)"', seen.page.html)
    assert {each.path.rpartition("/")[2].partition("?")[0] for each in waiting} <= set(shown)
    assert "Waits for a plan: choose one" not in seen.page.text and "It has its eSIM." not in seen.page.text
    assert (
        f'href="/console/issue?{"status=requires_plan&amp;from=2024-01-01"}' in (await demo.get(seen.path + f"&after={shown[0]}")).page.html
    )
    noted = await demo.send((await demo.get(NEW)).page.form(NEW), plan="", note="Order Nº 7")
    labelled = (await demo.get("/console/issue?label=Order+N%C2%BA+7")).page
    assert re.findall(r'href="/console/issue/intents/(cni_\w+)"', labelled.html) == [noted.path.rpartition("/")[2].partition("?")[0]]
    assert "Order Nº 7" in labelled.text and "No intent matches" in (await demo.get("/console/issue?label=Order")).page.text
    none = await demo.get("/console/issue?status=failed&to=2020-01-01")
    assert "No intent matches" in none.page.text and none.status == 200


@pytest.mark.long
async def test_a_product_is_defined_compared_and_issued_from_the_stock_after_a_question(demo: Browser) -> None:
    seen = await demo.get(PRODUCTS)
    assert "You have defined no product yet" in seen.page.text
    given = {"name": "Nordic 1", "package_template_id": str(TEMPLATE), "validity_days": "30", "countries": "dk, no", "price_cents": "9,90"}
    refused = await demo.send(seen.page.form(PRODUCTS, "make"), **given, data_mb="5000")
    assert (refused.status, refused.page.form(PRODUCTS, "make").fields["price_cents"]) == (400, "9,90")
    made = await demo.send(refused.page.form(PRODUCTS, "make"), **given, data_mb="1000")
    product = made.path.partition("?")[0]
    assert product.startswith(f"{PRODUCTS}/cnp_") and "Its template gives what it promises now." in made.page.text
    assert "The template of every product of this page gives what is promised." in (await demo.get(PRODUCTS)).page.text
    form = (await demo.get(f"{NEW}?plan={product.rpartition('/')[2]}")).page.form(NEW)
    asked = await demo.send(form)
    assert "takes an eSIM out of your stock" in asked.page.text
    issued = await demo.send(asked.page.form(NEW))
    line = re.search(r'href="/console/lines/(89\d+)"', issued.page.html)
    assert line is not None and shows_no_codes(issued)
    found = await demo.get(f"{LEDGER}?iccid={line[1]}&state=issued")
    assert "an intent" in found.page.text and line[1] in found.page.text
    assert "No eSIM matches" in (await demo.get(f"{LEDGER}?iccid={line[1]}&state=failed")).page.text


async def test_the_stock_of_each_account_is_counted_by_the_charging_system_only_when_asked(demo: Browser) -> None:
    seen = await demo.get("/console/issue/stock")
    assert "fleet_health" not in seen.page.html and "Ask the charging system and count now" in seen.page.text
    counted = await demo.get("/console/issue/stock?count=now")
    assert "Issued in 30 days" in counted.page.text and "8101" in counted.page.text


def issue(server: DemoConsole, key: str) -> None:
    body = {"accountId": 8101, "packageTemplateId": TEMPLATE}
    said = server.api.post("/v1/subscribers/issue-from-inventory", json=body, headers={"X-Idempotency-Key": key})
    assert said.status_code == 201, said.text


@contextmanager
def database_of(server: DemoConsole) -> Generator[sqlite3.Connection]:
    args = [str(each) for each in cast("list[object]", server.server.process.args)]
    with closing(sqlite3.connect(Path(args[args.index("--data") + 1]) / "service.db", timeout=30)) as connection:
        yield connection
        connection.commit()


def lose(server: DemoConsole, key: str, seconds: int) -> None:
    """As the service leaves an issuance of which nobody knows what became of it, asked for so many seconds ago."""
    with database_of(server) as connection:
        connection.execute(
            "UPDATE issuance SET state = 'outcome_unknown', iccid = NULL, held = NULL, package_id = NULL, due_ms = 99999999999999, "
            "dispatched = dispatched - :ago, updated = updated - :ago, stock = 'stk_none' WHERE key = :key",
            {"ago": seconds, "key": key},
        )


@pytest.mark.long
async def test_the_file_of_the_ledger_holds_every_row_of_the_filters_whatever_they_are_named(
    demo: Browser, demo_server: DemoConsole
) -> None:
    key = f"file-{uuid4().hex[:8]}"
    issue(demo_server, key)
    with database_of(demo_server) as connection:
        columns = [str(row[1]) for row in connection.execute("PRAGMA table_info(issuance)")]
        other = {"key": "'=sum-' || printf('%03d', n)", "state": "'failed'", "note": "'no_inventory'", "iccid": "NULL", "held": "NULL"}
        other["dispatched"] = "issuance.dispatched - 400000"  # behind whatever the pages of other tests show
        values = ", ".join(other.get(name, f"issuance.{name}") for name in columns)
        connection.execute(
            "WITH RECURSIVE places(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM places WHERE n < 249) "
            f"INSERT INTO issuance ({', '.join(columns)}) SELECT {values} FROM issuance, places WHERE issuance.key = ?",
            (key,),
        )
    rows = await file_of(demo, f"{LEDGER}?state=failed", "issuances")
    assert sorted(row["idempotency_key"] for row in rows if "sum-" in row["idempotency_key"]) == [f"'=sum-{n:03d}" for n in range(250)]
    told = {(row["state"], row["iccid"], row["account_id"], row["error"]) for row in rows if "sum-" in row["idempotency_key"]}
    assert told == {("failed", "", "8101", '{"code":"no_inventory","message":"The account had no free eSIM"}')}
    [issued] = [row for row in await file_of(demo, LEDGER, "issuances") if row["idempotency_key"] == key]
    assert issued["state"] == "issued" and re.fullmatch(r"89[0-9]{16,20}", issued["iccid"])


@pytest.mark.long
async def test_what_nobody_knows_comes_first_and_is_settled_once_a_day_has_passed(demo: Browser, demo_server: DemoConsole) -> None:
    old, new = f"old-{uuid4().hex[:8]}", f"new-{uuid4().hex[:8]}"
    assert "Of every eSIM that was asked for it is known what became of it." in (await demo.get(LEDGER)).page.text
    for key, seconds in ((old, 90_000), (new, 60)):
        issue(demo_server, key)
        lose(demo_server, key, seconds)
    seen = await demo.get(LEDGER)
    assert "1 eSIM waits for a person." in seen.page.text and seen.page.text.index(old) < seen.page.text.index(new)
    assert "The service looks for 24 hours by itself. You can settle it from" in seen.page.text
    form = seen.page.form(LEDGER, "settle")
    assert form.fields["about"] == old
    empty = await demo.send(form, outcome="issued", reason="I looked")
    assert (empty.status, empty.page.form(LEDGER, "settle").fields["reason"]) == (400, "I looked")
    asked = await demo.send(form, outcome="not_issued", reason="Nothing left the stock")
    assert "no eSIM was drawn for it" in asked.page.text and old in (await demo.get(f"{LEDGER}?state=outcome_unknown")).page.text
    settled = await demo.send(asked.page.form(LEDGER, "settle"))
    assert settled.path == f"{LEDGER}?done=settled", settled.page.text[:600]
    failed = await demo.get(f"{LEDGER}?state=failed")
    assert old in failed.page.text and "A person looked, and said that none was drawn." in failed.page.text
    first = await demo.get(f"{LEDGER}?state=issued&after={old}")
    assert (first.status, f'href="{LEDGER}?state=issued"' in first.page.html) == (200, True)


async def test_pages_of_an_organisation_that_has_issued_nothing_say_what_to_do(hers: Browser) -> None:
    assert "No eSIM was asked for by an intent yet" in (await hers.get("/console/issue")).page.text
    assert "No eSIM was drawn from stock yet" in (await hers.get(LEDGER)).page.text
    assert "No stock is known yet" in (await hers.get("/console/issue/stock")).page.text
