"""`python -m benchmarks.console`: every page of the console for an organisation of 100,000 lines; prints a table.

The organisation is made once, in a folder that may be kept for another run. A server answers, a network of another process counts its
calls, and an admin's browser asks for each page again and again over one connection. Times are the browser's; beside them stands the
processor time that the server spent meanwhile, which other programs of the machine do not lengthen.
"""

import argparse
import asyncio
import http.client
import json
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from benchmarks.__main__ import keep, revision
from benchmarks.console_fill import BUSY_SHARE, Database, Sizes, make_organisation, opened_database
from benchmarks.console_page import NAME
from benchmarks.contestant import Contestant
from benchmarks.fleet_reads import server
from benchmarks.fleet_runs import ask, network
from benchmarks.growth import CLOCK, IDS
from benchmarks.names import OURS_POSTGRES, OURS_SQLITE
from benchmarks.postgres import database as postgres_database
from benchmarks.processes import cpu_seconds, machine, memory_mb
from benchmarks.results import SAMPLES
from benchmarks.tables import table
from operations.secret_tokens import new_api_key, new_secret_token, secret_digest
from registry.caller import Role, Tier
from storage.api_keys import insert_key
from storage.browser_sessions import insert_browser_session
from storage.engine.migrate import upgrade_database
from storage.engine.sql import Connection
from storage.engine.store import open_store
from storage.organisations import add_member, create_organisation
from storage.people import create_person
from transports.web.pages.request import PAGE_STREAMS_OF_ALL, PAGE_STREAMS_OF_ONE, PageCookies

FRAME_MS, PAGE_MS, TODAY_MS, WAITING_MS, FIND_MS = 60.0, 120.0, 300.0, 2500.0, 100.0
FIRST_VISIT_BYTES, FIRST_VISIT_REQUESTS = 60_000, 3
STREAMS, STREAMS_MB = 200, 60.0
DAY_SECONDS = 86_400
NETWORK_LINES, NETWORK_DAYS = 400, 90
PARTS_OF_A_LINE = ("verdict", "packages", "use", "places", "sim", "steering", "offers")
ASSET = re.compile(r'(?:href|src)="(/console/assets/[^"]+)"')
STREAM_PATH, API_STREAM_PATH = "/console/events/stream", "/v1/connectivity/events/stream"


class Page(NamedTuple):
    """A page, and within how many milliseconds it is to be there."""

    name: str
    path: str
    aim: float = PAGE_MS
    asks_upstream: bool = False


class PageRun(NamedTuple):
    """What the visits to a page took, in milliseconds; `calls`: of the charging system, by a visit; `sent`: compressed bytes."""

    page: Page
    first: float
    middle: float
    p99: float
    cpu: float
    sent: int
    calls: float
    statuses: Sequence[int]


class StreamRun(NamedTuple):
    """The streams of one address: how many were opened, what the console answered to more, and memory in MB before and with them."""

    opened: int
    of_console: int
    refused: Sequence[str]
    before_mb: float
    with_mb: float


class ConsoleRun(NamedTuple):
    """Everything of one database."""

    engine: str
    rows: Mapping[str, int]
    pages: Sequence[PageRun]
    first_visit: Sequence[tuple[str, int]]
    streams: StreamRun
    load: str


def main() -> None:
    """Measure and print."""
    asked = parse()
    sizes = Sizes(asked.lines, asked.orders, asked.events)
    with ExitStack() as stack:
        port = stack.enter_context(network(NETWORK_LINES, NETWORK_DAYS))
        folder = asked.work or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="console-")))
        for engine in engines(asked):
            own = folder_of(folder, engine)
            own.mkdir(parents=True, exist_ok=True)
            url = f"sqlite:///{own / 'service.db'}" if engine == "sqlite" else stack.enter_context(postgres_database())
            if url is None:
                tell("there is no PostgreSQL server: its pages are not measured")
                continue
            if engine == "sqlite" and (own / "made").exists():
                tell(f"{own} has an organisation, which is measured as it is; its schema is brought up to this program's")
                upgrade_database(url)
            else:
                tell(f"an organisation of {sizes.lines:,} lines is made in {own}: at the full size this takes some ten minutes")
                began = time.perf_counter()
                make_organisation(own, url, port, sizes)
                (own / "made").write_text("")
                tell(f"it was made on {engine} in {time.perf_counter() - began:.0f} s")
            run = measured(engine, own, url, port, asked)
            print(report(run), flush=True)
            if engine == "sqlite" and asked.keep:
                keep_sample(run, asked.visits)


def tell(what: str) -> None:
    """A line of progress, beside the tables: somebody who waits sees for what."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def engines(asked: argparse.Namespace) -> Sequence[str]:
    """The databases to measure. What is kept is SQLite's, so that nothing else is filled for it unless it is named."""
    named: str = asked.engine or ("sqlite" if asked.keep else "sqlite,postgresql")
    return named.split(",")


def folder_of(folder: Path, engine: str) -> Path:
    """Where the database of an engine is: a folder that was given and holds a finished one is taken itself."""
    return folder if engine == "sqlite" and (folder / "made").exists() and (folder / "service.db").exists() else folder / engine


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description="The console's pages on this machine.")
    parser.add_argument("--lines", type=int, default=100_000, help="lines of the fleet (100000)")
    parser.add_argument("--orders", type=int, default=10_000, help="orders (10000)")
    parser.add_argument("--events", type=int, default=1_000_000, help="events in the log, deliveries and rows of the audit log (1000000)")
    parser.add_argument("--visits", type=int, default=100, help="visits to each page; a fifth of them where composites answer (100)")
    parser.add_argument("--only", default="", help="pages with this in their names alone")
    parser.add_argument("--engine", default="", help="sqlite,postgresql, which both are measured; with --keep sqlite alone")
    parser.add_argument("--keep", action="store_true", help="keep the figures of SQLite for RESULTS.md")
    parser.add_argument("--work", type=Path, help="folder for the databases, or that of a finished one; SQLite's is used again")
    return parser.parse_args()


def measured(engine: str, folder: Path, url: str, upstream: int, asked: argparse.Namespace) -> ConsoleRun:
    """Visits every page, then opens the streams."""
    cookies = asyncio.run(signed_in(url))
    with opened_database(url) as database:
        pages = [page for page in all_pages(database) if asked.only in page.name]
        rows = {name: int(str(database.one(f"select count(*) from {name}"))) for name in COUNTED}
    found, began = list[PageRun](), os.getloadavg()[0]
    tell(f"{len(pages)} pages of {engine}")
    with server(folder, url, upstream) as one:
        browser = Browser(one.port, cookies.admin)
        browser.get("/console/organisation/settings")
        for number, page in enumerate(pages, 1):
            tell(f"{number} of {len(pages)}: {page.name}")
            found.append(visited(browser, one, upstream, page, asked.visits if page.aim < WAITING_MS else max(2, asked.visits // 5)))
            print(cells_of(found[-1]), flush=True)
        first_visit = browser.whole_visit("/console")
    tell(f"{STREAMS} streams")
    with server(folder, url, upstream) as one:
        streams = stream_memory(one, cookies)
    names = {"sqlite": OURS_SQLITE, "postgresql": OURS_POSTGRES}
    return ConsoleRun(names[engine], rows, found, first_visit, streams, f"{began:.1f} to {os.getloadavg()[0]:.1f}")


COUNTED = ("fleet_line", "storefront_order", "intent", "event_log", "delivery", "audit", "audit_read", "invoice", "payment_record")


class SignedIn(NamedTuple):
    """The cookies of the demo's admin and of others, each of an organisation of their own, and their keys."""

    admin: str
    others: Sequence[str]
    keys: Sequence[str]


async def signed_in(url: str) -> SignedIn:
    """Lets the admin and four others sign in."""
    store, others = open_store(url), PAGE_STREAMS_OF_ALL // PAGE_STREAMS_OF_ONE + 1
    with opened_database(url) as database:
        person, organisation = (
            str(database.one(f"select {name} from membership order by created")) for name in ("person_id", "organisation_id")
        )
    cookies = [await store.write(new_session, person=person, organisation=organisation)]
    keys = list[str]()
    for _ in range(others):
        cookie, key = await store.write(new_admin)
        cookies.append(cookie)
        keys.append(key)
    await store.aclose()
    return SignedIn(cookies[0], cookies[1:], keys)


def new_session(connection: Connection, *, person: str, organisation: str) -> str:
    cookie, now = new_secret_token(IDS), CLOCK.now()
    id, expires_at = IDS.new("bse_"), now + DAY_SECONDS
    insert_browser_session(
        connection, digest=secret_digest(cookie), id=id, person=person, organisation=organisation, now=now, expires_at=expires_at
    )
    return f"{PageCookies(secure=False).session}={cookie}"


def new_admin(connection: Connection) -> tuple[str, str]:
    """Somebody else with an organisation: their cookie, and a key of theirs."""
    person, organisation, now, key = IDS.new("usr_"), IDS.new("org_"), CLOCK.now(), new_api_key(IDS)
    create_person(connection, id=person, now=now)
    create_organisation(connection, id=organisation, name="Other", tier=Tier.ENTERPRISE, now=now)
    add_member(connection, person=person, organisation=organisation, role=Role.ADMIN, now=now)
    id, digest, prefix = IDS.new("key_"), key.digest, key.prefix
    insert_key(connection, id=id, digest=digest, prefix=prefix, organisation=organisation, person=person, name="streams", now=now)
    return new_session(connection, person=person, organisation=organisation), key.secret


class Browser:
    """Somebody who is signed in, with one connection that stays open."""

    def __init__(self, port: int, cookie: str) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"Cookie": cookie, "Accept-Encoding": "gzip", "Accept-Language": "en"}
        self.status, self.body = 0, b""

    def get(self, path: str) -> float:
        """How many milliseconds the answer took."""
        began = time.perf_counter()
        self._http.request("GET", path, headers=self._headers)
        answer = self._http.getresponse()
        self.status, self.body = answer.status, answer.read()
        return (time.perf_counter() - began) * 1000

    def whole_visit(self, path: str) -> list[tuple[str, int]]:
        """What a browser that was never here asks for, and how many compressed bytes come."""
        self.get(path)  # a page holds a form's seal, so it is sent as it is
        found, page = [("page", len(self.body))], self.body.decode()
        for asset in dict.fromkeys(ASSET.findall(page)):
            self.get(asset)
            found.append((asset.rsplit(".", 1)[-1], len(self.body)))
        return found


def visited(browser: Browser, one: Contestant, upstream: int, page: Page, visits: int) -> PageRun:
    """So many visits, after one."""
    state = f"http://127.0.0.1:{upstream}/control/state"
    first, took, cpu, statuses = browser.get(page.path), list[float](), list[float](), set[int]()
    calls = json.loads(ask(state))["calls"]
    for _ in range(visits):
        used = cpu_seconds(one.pid)
        took.append(browser.get(page.path))
        cpu.append((cpu_seconds(one.pid) - used) * 1000)
        statuses.add(browser.status)
    called = (json.loads(ask(state))["calls"] - calls) / visits
    ordered = sorted(took)
    return PageRun(
        page,
        first,
        ordered[visits // 2],
        ordered[min(visits - 1, int(visits * 0.99))],
        sorted(cpu)[visits // 2],
        len(browser.body),
        called,
        sorted(statuses),
    )


def all_pages(database: Database) -> list[Page]:
    """Every page of the menu and those of things, with the filters that are asked most."""
    return [
        Page("frame: a page that is not there", "/console/nothing", FRAME_MS),
        Page("frame: Find, nothing asked", "/console/find", FRAME_MS),
        Page("Today", "/console", TODAY_MS),
        *fleet_pages(database),
        *work_pages(database),
        *shop_pages(database),
        *money_pages(database),
        *event_pages(database),
        *organisation_pages(database),
        *find_pages(database),
        *insight_pages(database),
    ]


def fleet_pages(database: Database) -> list[Page]:
    """Lines: lists of them, one with little and the busiest one."""
    line, busy = (str(database.one(f"select iccid from fleet_line order by subscriber_id {order} limit 1")) for order in ("desc", "asc"))
    of_busy = f"position % {BUSY_SHARE} = 0 and line is not null"
    busiest = str(database.one(f"select line from event_log where {of_busy} order by position limit 1"))
    fleet = {
        "Fleet": {},
        "Fleet, suspended": {"status": "SUSPENDED"},
        "Fleet, with a problem": {"problem": "high_cost"},
        "Fleet, part of a name": {"text": "an"},
        "Fleet, end of a number": {"text": "0286"},
        "Fleet, a tag": {"tag": "travel"},
        "Fleet, last used first": {"sort": "-last_used"},
    }
    return [
        *(Page(name, f"/console/fleet?{urlencode(asked)}") for name, asked in fleet.items()),
        Page("Line", f"/console/lines/{line}"),
        Page("Line with many events", f"/console/lines/{busiest}"),
        *(Page(f"Line, {part} asked", f"/console/lines/{busy}?ask={part}", WAITING_MS, asks_upstream=True) for part in PARTS_OF_A_LINE),
    ]


def of(database: Database, path: str, text: str) -> str:
    """The address of something that is looked up."""
    return f"/console{path}/{database.one(text)}"


def work_pages(database: Database) -> list[Page]:
    """Change sets, approvals, and issuing."""
    copied = "like '%0000000000______' order by id desc"  # the ids of copies end in a number
    return [
        Page("Changes", "/console/changes"),
        Page("Change set", of(database, "/changes", f"select id from change_set where id {copied} limit 1")),
        Page("Change, new", "/console/changes/new?" + urlencode({"pick": str(database.one("select iccid from fleet_line limit 1"))})),
        Page("Approvals", "/console/approvals"),
        Page("Issue", "/console/issue"),
        Page("Issue, one intent", of(database, "/issue/intents", f"select id from intent where id {copied} limit 1")),
        Page("Issue, new", "/console/issue/new"),
        Page("Issue, products", "/console/issue/products"),
        Page("Issue, one product", of(database, "/issue/products", "select id from product limit 1")),
        Page("Issue, stock", "/console/issue/stock"),
        Page("Issue, stock counted now", "/console/issue/stock?count=now", WAITING_MS, asks_upstream=True),
        Page("Issue, ledger", "/console/issue/ledger"),
        Page("Issue, ledger of a state", "/console/issue/ledger?state=issued"),
    ]


def shop_pages(database: Database) -> list[Page]:
    shop, slug = (str(database.one(f"select {name} from storefront limit 1")) for name in ("id", "slug"))
    plan = "select slug from storefront_plan limit 1"
    return [
        Page("Shops", "/console/shops"),
        Page("Shop", f"/console/shops/{shop}"),
        Page("Shop, new plan", f"/console/shops/{shop}/plans", WAITING_MS, asks_upstream=True),
        Page("Shop, one plan", f"/console/shops/{shop}/plans/{database.one(plan)}"),
        Page("Orders", "/console/shops/orders"),
        Page("Orders that need review", "/console/shops/orders?status=needs_review"),
        Page("Orders that are ready", "/console/shops/orders?status=ready"),
        Page("Orders of a buyer", f"/console/shops/orders?{urlencode({'storefront': slug, 'email': 'buyer77@buyers.demo.invalid'})}"),
        Page("Order", of(database, "/shops/orders", "select id from storefront_order where status = 'ready' order by id limit 1")),
    ]


def money_pages(database: Database) -> list[Page]:
    return [
        Page("Money", "/console/money", WAITING_MS, asks_upstream=True),
        Page("Money, conditions", "/console/money/billing-config"),
        Page("Invoices", "/console/money/invoices"),
        Page("Invoice", of(database, "/money/invoices", "select id from invoice where status = 'paid' order by id limit 1")),
        Page("Invoice, new", "/console/money/invoices/new", WAITING_MS, asks_upstream=True),
        Page("Charges", "/console/money/charges"),
        Page("Refunds", "/console/money/refunds"),
        Page("Disputes", "/console/money/disputes"),
        Page("Dispute", of(database, "/money/disputes", "select id from payment_record where kind = 'dispute' order by created limit 1")),
        Page("Payouts", "/console/money/payouts"),
        Page("Payment account", "/console/money/payment-account"),
        Page("Economics", "/console/money/economics", WAITING_MS, asks_upstream=True),
    ]


def event_pages(database: Database) -> list[Page]:
    middle = str(database.one("select id from event_log where position = (select max(position) / 2 from event_log)"))
    types = ("line", "order", "order.paid", "payment.dispute_opened")
    endpoint = "select id from webhook_endpoint order by id limit 1"
    failed = "select event_id from delivery where state = 2 and event_id < 'evt_z' order by event_id desc limit 1"
    return [
        Page("Webhooks", "/console/webhooks"),
        Page("Endpoint", of(database, "/webhooks", endpoint)),
        Page("Deliveries", "/console/webhooks/deliveries"),
        Page("Deliveries that failed", "/console/webhooks/deliveries?state=failed"),
        Page("Deliveries of a type", "/console/webhooks/deliveries?types=order.paid"),
        Page("Deliveries of an event", of(database, "/webhooks/deliveries", failed)),
        Page("Events", "/console/events"),
        *(Page(f"Events, {name}", f"/console/events?types={name}") for name in types),
        Page("Events, half a million back", f"/console/events?after={middle}"),
        Page("Events of a type, half a million back", f"/console/events?types=line&after={middle}"),
    ]


def organisation_pages(database: Database) -> list[Page]:
    key = str(database.one("select id from api_key order by created limit 1"))
    person = str(database.one("select person_id from membership order by created limit 1"))
    filters = {"an operation": {"operation": "create_connectivity_intent"}, "a person": {"person": person}, "a key": {"key": key}}
    filters |= {"an outcome that is rare": {"outcome": "quota_exceeded"}, "looks, too": {"looks": "shown"}}
    return [
        Page("Organisation", "/console/organisation"),
        Page("Key", f"/console/organisation/keys/{key}"),
        Page("Settings", "/console/organisation/settings"),
        Page("Audit log", "/console/organisation/audit"),
        *(Page(f"Audit log, {name}", f"/console/organisation/audit?{urlencode(asked)}") for name, asked in filters.items()),
    ]


def find_pages(database: Database) -> list[Page]:
    line, order, intent = (
        str(database.one(f"select {name} from {of} limit 1 offset (select count(*) / 2 from {of})"))
        for name, of in (("iccid", "fleet_line"), ("id", "storefront_order"), ("id", "intent"))
    )
    texts = {
        "the end of a number": line[-6:],
        "the beginning of a number": line[:12],
        "the middle of a number": line[6:13],
        "a piece of an order's number": order[-9:],
        "a piece of an intent's": intent[-9:],
        "an invoice's number": "BENCH-77",
        "a buyer's address": "buyer77@buyers.demo.invalid",
        "a word of nobody": "zzzzqq",
        "digits of nobody": "9191919191",
    }
    return [Page(f"Find {what}", f"/console/find?{urlencode({'q': text})}", FIND_MS) for what, text in texts.items()]


def insight_pages(database: Database) -> list[Page]:
    last = datetime.fromtimestamp(CLOCK.now(), UTC).date() - timedelta(days=1)
    days = ((last - timedelta(days=27)).isoformat(), last.isoformat())
    return [
        Page("Insight", "/console/insight"),
        Page("Schedules", "/console/insight/schedules"),
        Page("Schedule", of(database, "/insight/schedules", "select id from intelligence_schedule limit 1")),
        *(
            Page(f"Insight, {name}", f"/console/insight/{name}?ask=now{more}", WAITING_MS, asks_upstream=True)
            for name, more in (
                ("high_cost_subscribers", f"&start={days[0]}&end={days[1]}"),
                ("optimize_package", ""),
                ("audit_network_coverage", ""),
                ("fleet_problems", ""),
                ("churn_risk", ""),
                ("detect_usage_anomalies", ""),
                ("detect_country_entry", "&days=7"),
                ("fleet_health", ""),
                ("marketing_intelligence", ""),
            )
        ),
    ]


@contextmanager
def streams_of(port: int, asked: Sequence[tuple[str, Mapping[str, str]]]) -> Generator[list[str]]:
    """The heads of the answers to requests that stay open: of each its path and headers."""
    opened, heads = list[socket.socket](), list[str]()
    try:
        for path, headers in asked:
            one = socket.create_connection(("127.0.0.1", port), timeout=20)
            opened.append(one)
            lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", "Accept: text/event-stream", *(f"{k}: {v}" for k, v in headers.items())]
            one.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
            head = b""
            while b"\r\n\r\n" not in head and (piece := one.recv(4096)):
                head += piece
            heads.append(head.decode("latin-1"))
        yield heads
    finally:
        for one in opened:
            one.close()


def stream_memory(one: Contestant, cookies: SignedIn) -> StreamRun:
    """As many streams of the console as it takes, the rest of the API, and some of the console that are too many."""
    Browser(one.port, cookies.admin).get("/console/events")
    console = [(STREAM_PATH, {"Cookie": cookie}) for cookie in cookies.others[:-1] for _ in range(PAGE_STREAMS_OF_ONE)]
    left = STREAMS - len(console)
    api = [(API_STREAM_PATH, {"Authorization": f"Bearer {cookies.keys[number % len(cookies.keys)]}"}) for number in range(left)]
    too_many = [(STREAM_PATH, {"Cookie": cookies.others[place]}) for place in (0, -1)]
    before = memory_mb(one.pid, "VmRSS:")
    with streams_of(one.port, console + api) as heads:
        time.sleep(16)  # until each has had a heartbeat
        after = memory_mb(one.pid, "VmRSS:")
        opened = sum(" 200 " in head.split("\r\n", 1)[0] for head in heads)
        of_console = sum(" 200 " in head.split("\r\n", 1)[0] for head in heads[: len(console)])
        with streams_of(one.port, too_many) as refused:
            said = [head.split("\r\n", 1)[0] + retry_after(head) for head in refused]
    return StreamRun(opened, of_console, said, before, after)


def retry_after(head: str) -> str:
    found = re.search(r"(?i)\r\nretry-after: (\d+)", head)
    return f", Retry-After {found[1]}" if found else ""


def cells_of(run: PageRun) -> list[str]:
    """A row of the table."""
    asks = run.calls >= 0.5 and not run.page.asks_upstream  # the worker asks sometimes, too
    missed = run.p99 > run.page.aim or asks or not set(run.statuses) < {200, 303, 404}
    return [
        run.page.name,
        f"{run.page.aim:g}",
        f"{run.first:.0f}",
        f"{run.middle:.1f}",
        f"{run.p99:.1f}",
        f"{run.cpu:.1f}",
        f"{run.sent / 1000:.1f}",
        f"{run.calls:.1f}",
        ("missed" if missed else "") + ("" if set(run.statuses) < {200, 303, 404} else f" {run.statuses}"),
    ]


def report(run: ConsoleRun) -> str:
    """The tables of one database."""
    rows = ", ".join(f"{name} {count:,}" for name, count in run.rows.items())
    head = ["Page", "Aim ms", "First ms", "p50 ms", "p99 ms", "CPU ms, p50", "kB", "Upstream calls", ""]
    sent = sum(size for _, size in run.first_visit)
    first = ", ".join(f"{name} {size / 1000:.1f}" for name, size in run.first_visit)
    streams = run.streams
    return "\n".join(
        (
            f"### {run.engine}\n\n{machine()}; load {run.load}. Rows: {rows}.\n",
            table(head, [cells_of(page) for page in run.pages]),
            f"First visit: {len(run.first_visit)} requests (aim {FIRST_VISIT_REQUESTS}), {sent / 1000:.1f} kB compressed "
            f"(aim {FIRST_VISIT_BYTES / 1000:g}): {first}.\n",
            f"Streams of one address: {streams.opened} open, {streams.of_console} of them the console's; memory {streams.before_mb:.0f} MB "
            f"before, {streams.with_mb:.0f} MB with them: {streams.with_mb - streams.before_mb:+.1f} MB (aim {STREAMS_MB:+g}). "
            f"One more of the console: {'; '.join(streams.refused)}.\n",
        )
    )


def keep_sample(run: ConsoleRun, visits: int) -> None:
    """The figures of a run, one page a line."""
    named, streams = [("page", run.first_visit[0][1] / 1000)], run.streams
    named += [(name, size / 1000) for name, size in run.first_visit[1:]]
    facts = {
        "rows": run.rows,
        "load": run.load,
        "first_visit": named,
        "streams": {**streams._asdict(), "refused": "; ".join(streams.refused)},
    }
    day = datetime.fromtimestamp(CLOCK.now(), UTC).date().isoformat()
    circumstances = {"date": day, "rounds": visits, "seconds": 0, "machine": machine(), "revision": revision()}
    keep(NAME, {"run": circumstances, "facts": facts, "rows": [sample_row(page) for page in run.pages]}, SAMPLES)


def sample_row(run: PageRun) -> dict[str, object]:
    times = {"first_ms": run.first, "p50_ms": run.middle, "p99_ms": run.p99, "cpu_ms": run.cpu}
    rounded = {name: round(value, 1) for name, value in times.items()}
    return {"page": run.page.name, "aim": run.page.aim, **rounded, "kb": round(run.sent / 1000, 1), "calls": round(run.calls, 2)}


if __name__ == "__main__":
    main()
