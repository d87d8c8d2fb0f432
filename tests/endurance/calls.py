"""The calls of the crowd: what is asked, how often, and what is learnt from the answer."""

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from zlib import crc32

import orjson

from benchmarks.load import Answer
from benchmarks.requests import MODERN, message
from registry.errors import Refusal
from tests.endurance.people import Member
from tests.endurance.tally import Status, Tally
from tests.endurance.wires import Wires, wire_request
from tests.mcp.refusals import refusal_text

REMEMBERED = 500
BATCH, OVERLAP, SIMS, MONTHS, MONTH_SIZE = 30, 10, 150, 24, 900
NOT_CHARGED = {400, 401, 405, 429, 503}
NOT_CARRIED_OUT = {"idempotency_in_progress", "idempotency_key_reused"}
PLAN = "test_eu_1gb"


def refusals(kind: type[Refusal] = Refusal) -> Iterator[type[Refusal]]:
    for each in kind.__subclasses__():
        yield each
        yield from refusals(each)


STATUSES = {kind.code: kind.status for kind in refusals()} | {"ocs_timeout": 502}
"""A tool that fails tells its code alone."""


class Asked(NamedTuple):
    kind: str
    operation: str
    member: Member
    sent: bytes
    key: str | None = None
    records: range = range(0)


def get(kind: str, operation: str, path: str, member: Member) -> Asked:
    return Asked(kind, operation, member, wire_request("GET", path, member.secret))


def read_intent(member: Member, dice: random.Random) -> Asked:
    if not member.intents:
        return create_intent(member, dice)
    path = f"/v1/connectivity/intents/{dice.choice(member.intents)}"
    return get("GET intent", "get_connectivity_intent", path, member)


def list_intents(member: Member, dice: random.Random) -> Asked:
    return get("GET intents", "list_connectivity_intents", f"/v1/connectivity/intents?limit={dice.choice((5, 20))}", member)


def list_events(member: Member, dice: random.Random) -> Asked:
    return get("GET events", "list_connectivity_events", "/v1/connectivity/events?limit=10", member)


def list_plans(member: Member, dice: random.Random) -> Asked:
    return get("GET plans", "list_connectivity_plans", "/v1/connectivity/plans", member)


def read_line(member: Member, dice: random.Random) -> Asked:
    if not member.lines:
        return list_lines(member, dice)
    return get("GET line", "get_subscriber", f"/v1/subscribers/{dice.choice(member.lines)}", member)


def list_lines(member: Member, dice: random.Random) -> Asked:
    """The account's, from the charging system."""
    return get("GET lines", "list_subscribers", "/v1/subscribers", member)


def create_intent(member: Member, dice: random.Random) -> Asked:
    """A test eSIM; now and then with a key that was used before, or is in use at this moment."""
    again = member.keys > 0 and dice.random() < 0.1
    if not again:
        member.keys += 1
    key = f"k{member.keys - (dice.randrange(min(member.keys, 50)) if again else 0)}"
    body = b'{"plan":"%s","metadata":{"order":"%s"}}' % (PLAN.encode(), key.encode())
    sent = wire_request("POST", "/v1/connectivity/intents", member.secret, body, {"Idempotency-Key": key})
    return Asked("POST intent", "create_connectivity_intent", member, sent, key=key)


def ingest(member: Member, dice: random.Random) -> Asked:
    """Call records, some of which the batch before had."""
    first = member.batches * (BATCH - OVERLAP)
    member.batches += 1
    numbers = range(first, first + BATCH)
    sent = wire_request("POST", "/v1/cdr/ingest", member.secret, orjson.dumps({"events": [record(number) for number in numbers]}))
    return Asked("POST records", "ingest_cdr_events", member, sent, records=numbers)


def record(number: int) -> dict[str, Any]:
    month = number // MONTH_SIZE % MONTHS
    chance = crc32(b"%d" % number)
    return {
        "id": f"cdr-{number}",
        "iccid": f"89883030000{chance % SIMS:08}",
        "occurred_at": f"{2024 + month // 12}-{month % 12 + 1:02}-{chance % 28 + 1:02}T{chance % 24:02}:00:00Z",
        "bytes_up": chance % 1_000_003,
        "bytes_down": chance % 50_000_017,
        "network": "Fjordnett",
        "country": "NO",
    }


def sum_month(member: Member, dice: random.Random) -> Asked:
    path = f"/v1/cdr/aggregate?year={dice.choice((2024, 2025))}&month={dice.randrange(1, 13)}"
    return get("GET sums", "aggregate_cdr", path, member)


def invoice(member: Member, dice: random.Random) -> Asked:
    if not member.periods or dice.random() < 0.2:
        return get("GET periods", "list_invoice_periods", "/v1/invoices/periods", member)
    body = b'{"period_id":"%s","price_per_gb_cents":%d}' % (dice.choice(member.periods).encode(), dice.randrange(1, 900))
    member.keys += 1
    headers = {"Idempotency-Key": f"i{member.keys}"}
    return Asked("POST invoice", "create_invoice", member, wire_request("POST", "/v1/invoices", member.secret, body, headers))


def call_tool(member: Member, dice: random.Random) -> Asked:
    choice = dice.random()
    if choice < 0.25:
        member.keys += 1
        key = f"m{member.keys}"
        return tool("create_connectivity_intent", {"plan": PLAN, "idempotency_key": key}, member, key=key)
    if choice < 0.6 or not member.intents:
        return tool("list_connectivity_plans", {}, member)
    return tool("get_connectivity_intent", {"id": dice.choice(member.intents)}, member)


def tool(name: str, arguments: dict[str, Any], member: Member, key: str | None = None) -> Asked:
    sent = message(member.secret, MODERN, "tools/call", {"name": name, "arguments": arguments})
    return Asked("MCP tools/call", name, member, sent, key=key)


Make = Callable[[Member, random.Random], Asked]
MIX: tuple[tuple[Make, int], ...] = (
    (read_intent, 28),
    (list_intents, 6),
    (list_events, 4),
    (list_plans, 4),
    (read_line, 8),
    (list_lines, 1),
    (create_intent, 22),
    (ingest, 6),
    (sum_month, 3),
    (invoice, 2),
    (call_tool, 16),
)
MAKERS, WEIGHTS = zip(*MIX, strict=True)
SELDOM = 0.02
"""The share of calls of the member whose receivers are slow."""


class Crowd:
    """Draws calls and learns from answers."""

    def __init__(self, members: list[Member], doors: list[Wires], tally: Tally, dice: random.Random) -> None:
        self._often = [member for member in members if not member.seldom]
        self._seldom = [member for member in members if member.seldom]
        self._doors, self._tally, self._dice = doors, tally, dice

    def draw(self) -> Asked:
        dice = self._dice
        member = dice.choice(self._seldom if dice.random() < SELDOM else self._often)
        make: Make = dice.choices(MAKERS, WEIGHTS)[0]
        return make(member, dice)

    async def send(self, asked: Asked) -> Answer:
        answer = await self._doors[self._dice.randrange(len(self._doors))].ask(asked.sent)
        self._note(asked, answer)
        return answer

    def _note(self, asked: Asked, answer: Answer) -> None:
        tally, member = self._tally, asked.member
        status, body, replayed = read(asked, answer)
        code = str(body.get("code", "")) if status >= 400 and isinstance(body, dict) else ""
        tally.statuses[Status(asked.kind, status, code)] += 1
        if status in (0, 500):
            tally.break_(f"{asked.kind}: {status} {answer.body[:200]!r}")
        if not replayed and status not in NOT_CHARGED and code not in NOT_CARRIED_OUT:
            tally.charged[member.id] += 1
        if not 200 <= status < 300:
            return
        if not replayed:
            tally.done[member.id, asked.operation] += 1
        self._learn(asked, answer, body)

    def _learn(self, asked: Asked, answer: Answer, body: Any) -> None:
        """What later calls need, and what the ledgers are held against."""
        member = asked.member
        if asked.operation == "create_connectivity_intent" and asked.key is not None:
            member.made.add(asked.key)
            member.intents.append(body["id"])
            del member.intents[:-REMEMBERED]
            if asked.kind == "POST intent" and member.answers.setdefault(asked.key, answer.body) != answer.body:
                self._tally.break_(f"{asked.key} of {member.id}: two different answers")
            if len(member.answers) > 2 * REMEMBERED:
                for key in list(member.answers)[:REMEMBERED]:
                    del member.answers[key]
        elif asked.operation == "ingest_cdr_events":
            fresh = set(asked.records) - member.records
            member.records |= fresh
        elif asked.operation == "list_invoice_periods":
            member.periods = [row["id"] for row in body["data"]]
        elif asked.operation == "list_subscribers":
            member.lines = [row["iccid"] for row in body["data"][:100]]


def read(asked: Asked, answer: Answer) -> tuple[int, Any, bool]:
    """Status, body, and whether it is a replay. What a tool answered stands inside."""
    if answer.status == 0:
        return 0, None, False
    text = answer.body
    if b"text/event-stream" in answer.headers:  # of a tool that took its time
        text = text.rpartition(b"\ndata: ")[2].partition(b"\n")[0]
    body = orjson.loads(text) if text[:1] in (b"{", b"[") else None
    if asked.kind != "MCP tools/call" or answer.status != 200:
        return answer.status, body, b"idempotent-replayed" in answer.headers
    result = (body or {}).get("result", {})
    inside = result.get("structuredContent") or {}
    if result.get("isError"):
        inside = orjson.loads(refusal_text([block["text"] for block in result["content"]]))
        return STATUSES.get(inside["code"], 599), inside, False
    return 200, inside, False


async def hurry(crowd: Crowd, connections: int, seconds: float) -> float:
    """So many callers who never rest: calls answered per second."""
    loop = asyncio.get_running_loop()
    ends, answered = loop.time() + seconds, 0

    async def caller() -> None:
        nonlocal answered
        while loop.time() < ends:
            await crowd.send(crowd.draw())
            answered += 1

    began = loop.time()
    await asyncio.gather(*(caller() for _ in range(connections)))
    return answered / (loop.time() - began)


async def stroll(crowd: Crowd, tally: Tally, dice: random.Random, rate: float, stop: asyncio.Event, most: int = 400) -> float:
    """Calls that come when they come, so many per second, whether or not the ones before were answered; seconds until it was stopped.

    Where `most` are under way the next ones wait, which their times show: then the machine does not carry the load.
    """
    loop = asyncio.get_running_loop()
    began = due = loop.time()
    under_way: set[asyncio.Task[None]] = set()

    async def call(since: float) -> None:
        asked = crowd.draw()
        await crowd.send(asked)
        tally.time(asked.kind, loop.time() - since, int((since - began) // 60))

    while not stop.is_set():
        due += dice.expovariate(rate)
        if (wait := due - loop.time()) > 0:
            await asyncio.sleep(wait)
        while len(under_way) >= most and not stop.is_set():
            await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
        tally.latest = max(tally.latest, loop.time() - due)
        task = asyncio.ensure_future(call(due))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    taken = loop.time() - began
    await asyncio.gather(*under_way)
    return taken
