"""Reading something of every line of a fleet: several lines at once, as many as fit into the time; what was left out is said.

Also what the list says of a line, in stock or issued, used lately, ended or silent; and the query that such composites share: one line, or
the pages of a ranking of the caller's fleet.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated, Generic, Literal, NamedTuple, TypeVar, cast

import anyio
import anyio.lowlevel
from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.subscribers import Subscriber
from clients.ocs.times import parse_wire_time
from operations.caches.account_parts import SIM_FREE
from operations.deps import Ctx
from operations.fleet.wire_rows import LISTED_ICCID
from operations.intelligence.reports.sheet import Finding, FindingData, Incomplete, make_finding, missing_parts
from operations.upstream.account_lines import LineList, read_account_lines
from operations.upstream.connection import Upstream, connect_upstream
from operations.upstream.lines import current_entry, find_own_line, line_status_word
from operations.upstream.paging import cursor_index
from operations.vocabulary import Iccid
from registry.clock import limit_reading_time, request_is_over, seconds_left
from registry.errors import NotFound, OcsError, Refusal
from registry.operation import CamelInput
from storage.fleet_scores import LinesInState

LineReading = TypeVar("LineReading")
Figures = TypeVar("Figures")
DrawnLine = TypeVar("DrawnLine")
PARALLEL_LINES = 8
"""How many calls the charging system takes at once from a token by default; further ones wait in the link."""
READING_SECONDS = 100.0
"""How long the lines of one answer may be read where no request waits for it, as for a schedule."""
READING_SPARE_SECONDS = 5.0
"""Before the time for reading is over no further line is begun: one that has begun may take as long."""
READING_FAILURE_LIMIT = 24
PROGRESS_EVERY_LINES = 50
LINES_PER_TURN, ROWS_PER_TURN = 8, 250
"""Of each reader, and of a list: then others have their turn, since what is known already needs no call that would wait."""
DROPPED_LINE_FIELDS = frozenset(
    {"account", "reseller", "resellerId", "batchId", "email", "phoneNumberList", "multiImsi", "greenZoneCounter"}
)
CACHED_SIM_FIELDS = frozenset({"id", "esim", "status", "affectationDateUtc"})
FLEET_CALL_LIMIT = 4_000
"""listSubscriber calls for one fleet: a list holds some hundred lines, and 10,000 lines take about a thousand."""


class FleetLine(NamedTuple):
    """A line of the fleet, as the list shows it."""

    subscriber_id: int
    iccid: str
    account_id: int
    status: str
    row: Subscriber
    """As the list shows it, without DROPPED_LINE_FIELDS, and of the SIM with CACHED_SIM_FIELDS only."""


class FleetLines(NamedTuple):
    """The caller's lines, by subscriber id, and whether there may be more that no list shows."""

    lines: list[FleetLine]
    incomplete: bool


class FleetReading(NamedTuple, Generic[LineReading]):
    """What was read of which line (by subscriber id), how many could not be read, and how many were left for want of time."""

    found: dict[int, LineReading]
    failed: int
    left: int

    @property
    def missing(self) -> int:
        """How many lines the answer says nothing about."""
        return self.failed + self.left

    def result(self, ctx: Ctx, figures: Figures, fleet: FleetLines, others: Sequence[str] = ()) -> "FleetResult[Figures]":
        """`figures`, which were made of what was read of `fleet`. `others`: sentences about what else is missing."""
        incomplete = missing_parts(failed=self.failed, left=self.left, unlisted=fleet.incomplete, others=others)
        return FleetResult(ctx.now, figures, len(self.found), len(fleet.lines), incomplete)


class FleetResult(NamedTuple, Generic[Figures]):
    """What was made at `at`, Unix seconds, of `sampled` of the `of` lines of a fleet; cached while it is paged through."""

    at: float
    figures: Figures
    sampled: int
    of: int
    incomplete: Incomplete | None
    as_of: float | None = None
    """When the lines were listed, Unix seconds; None: they were read live."""

    def finding(self, data: FindingData, method: str) -> Finding[FindingData]:
        """The answer with `data` of these figures."""
        about = {"sampled": self.sampled, "of": self.of}
        return make_finding(data, now=self.at, **about, method=method, incomplete=self.incomplete, as_of=self.as_of)


async def cached_result(
    ctx: Ctx, upstream: Upstream, load: Callable[[], Awaitable[FleetResult[Figures]]], *asked: object, further: bool
) -> FleetResult[Figures]:
    """The result of this operation for what was `asked`, a minute old at most, or what `load` makes.

    Where something is missing in it, the first page loads it anew, and `further` pages go on with what there is.
    """
    # An organisation may be connected to another account.
    key, fresh = (upstream.identity, upstream.account_id, ctx.operation_id, ctx.organisation, *asked), False

    async def made() -> FleetResult[Figures]:
        nonlocal fresh
        fresh = True
        return await load()

    found = await upstream.reads.get(key, made)
    if found.incomplete is not None and not fresh and not further:
        upstream.reads.forget(*key)
        return await upstream.reads.get(key, made)
    return found


async def read_fleet(upstream: Upstream, account_id: int | None = None) -> FleetLines:
    """Every line of the caller's accounts, or of `account_id`; the list is at most a minute old. Waits for the network."""
    limit_reading_time()
    accounts = [account.get("id", 0) for account in await upstream.accounts()]
    if account_id is not None:
        if account_id not in accounts:
            raise NotFound("You have no account with this id", param="accountId", hint="list_accounts shows yours")
        accounts = [account_id]

    async def load() -> FleetLines:
        return await fleet_lines(await read_account_lines(upstream, accounts, calls=FLEET_CALL_LIMIT, partial=True))

    key = (upstream.identity, "fleet", *accounts)
    found = await upstream.reads.get(key, load)
    if found.incomplete and request_is_over():  # the next call has more time
        upstream.reads.forget(*key)
    return found._replace(lines=list(found.lines))


async def fleet_lines(fleet: LineList) -> FleetLines:
    """The rows as lines, a part at a time: there may be tens of thousands, and others wait for the loop.

    A line that was moved while the lists were read stands in two of them, and is the newer one's.
    """
    found: dict[int, FleetLine] = {}
    incomplete = fleet.incomplete
    for start in range(0, len(fleet.rows), ROWS_PER_TURN):
        part = [fleet_line(row) for row in fleet.rows[start : start + ROWS_PER_TURN]]
        found |= {line.subscriber_id: line for line in part if line is not None}
        incomplete = incomplete or None in part
        await anyio.lowlevel.checkpoint()
    return FleetLines([found[number] for number in sorted(found)], incomplete)


def fleet_line(row: Subscriber) -> FleetLine | None:
    """The line of `row`; None where its number or its ICCID is missing or malformed."""
    number, history = row.get("subscriberId"), current_entry(row.get("imsiList", ()))
    iccid = None if history is None else history.get("iccid")
    if number is None or iccid is None or not LISTED_ICCID.fullmatch(iccid):
        return None
    return FleetLine(number, iccid, row.get("accountId", 0), line_status_word(row), slim_line_row(row))


def slim_line_row(row: Subscriber) -> Subscriber:
    """`row` without what no report needs: it is cached for a minute, and the codes that install an eSIM are secrets."""
    kept = {name: value for name, value in row.items() if name not in DROPPED_LINE_FIELDS}
    sim = row.get("sim")
    if sim is not None:
        kept["sim"] = {name: value for name, value in sim.items() if name in CACHED_SIM_FIELDS}
    return cast(Subscriber, kept)


async def read_each_line(
    ctx: Ctx, lines: Sequence[FleetLine], read: Callable[[FleetLine], Awaitable[LineReading]], *, seconds: float = READING_SECONDS
) -> FleetReading[LineReading]:
    """Calls `read` for all lines, a few at a time. Failures are counted; the rest is left when only failures come, or after `seconds`."""
    return await FleetReader(ctx, lines, read, seconds).run()


class FleetReader(Generic[LineReading]):
    """One reading under way."""

    def __init__(self, ctx: Ctx, lines: Sequence[FleetLine], read: Callable[[FleetLine], Awaitable[LineReading]], seconds: float) -> None:
        self._lines, self._read, self._clock, self._tell = lines, read, ctx.deps.clock, ctx.progress
        self._ends = self._clock.monotonic() + max(0.0, min(seconds, seconds_left(seconds + READING_SPARE_SECONDS) - READING_SPARE_SECONDS))
        self._found: dict[int, LineReading] = {}
        self._failed = self._in_a_row = 0
        self._last: Refusal | None = None

    async def run(self) -> FleetReading[LineReading]:
        """Reads until all lines are read, or nothing but failures comes, or the time is over. Raises the last failure if none was read.

        When the time of the request is over, all that is missing is left out, and the answer says so.
        """
        waiting = iter(self._lines)
        async with anyio.create_task_group() as group:
            for _ in range(min(PARALLEL_LINES, len(self._lines))):
                group.start_soon(self._work, waiting)
        if self._last is not None and not self._found and not request_is_over():
            raise self._last
        left = len(self._lines) - len(self._found) - self._failed
        return FleetReading(self._found, self._failed, left)

    async def _work(self, waiting: Iterator[FleetLine]) -> None:
        for line in waiting:
            await self._one(line)
            done = len(self._found) + self._failed
            if done % PROGRESS_EVERY_LINES == 0 or done == len(self._lines):
                await self._tell(done, len(self._lines), f"Read {done} of {len(self._lines)} lines")
            if done % LINES_PER_TURN == 0:
                await anyio.lowlevel.checkpoint()
            if self._clock.monotonic() >= self._ends or self._in_a_row >= READING_FAILURE_LIMIT:
                return

    async def _one(self, line: FleetLine) -> None:
        try:
            self._found[line.subscriber_id] = await self._read(line)
            self._in_a_row = 0
        except OcsError as failure:
            self._failed += 1
            self._in_a_row += 1
            self._last = failure
        except NotFound:  # it was moved or removed while the others were read
            self._failed += 1


def sample_evenly(lines: Sequence[DrawnLine], most: int) -> list[DrawnLine]:
    """`most` of `lines`, evenly spread over the list; the same ones in every call."""
    count = len(lines)
    return list(lines) if count <= most else [lines[place * count // most] for place in range(most)]


RankedRow = TypeVar("RankedRow")
RankingLimit = Annotated[int, Field(ge=1, le=500, description="Lines per page, 1-500.")]
PageCursor = Annotated[str | None, Field(alias="starting_after", max_length=64, description="`next` of the page before.")]


def ranking_page(ctx: Ctx, rows: Sequence[RankedRow], limit: int, cursor: str | None) -> list[RankedRow]:
    """The page of `rows` behind `cursor`; sets the context's cursor and note where more rows follow."""
    start = cursor_index(range(1, len(rows) + 1), cursor)
    if start + limit < len(rows):
        ctx.next_cursor = str(start + limit)
        ctx.note = f"{limit} of {len(rows)}."
    return list(rows[start : start + limit])


class LinesAsked(CamelInput):
    """Which lines."""

    iccid: Annotated[Iccid | None, Field(description="One line; without it the fleet.")] = None
    limit: RankingLimit = 100
    starting_after: PageCursor = None


class LineTarget(NamedTuple):
    """The way to the lines; the one that was named, or nothing for the fleet."""

    upstream: Upstream
    line: FleetLine | None

    async def read_lines(self) -> FleetLines:
        """The line that was named, or those of the fleet. Waits for the network."""
        return await read_fleet(self.upstream) if self.line is None else FleetLines([self.line], False)


async def own_line_or_fleet(ctx: Ctx, params: LinesAsked) -> LineTarget:
    """The access rule: a line that is named must be the caller's. Raises NotFound."""
    upstream = await connect_upstream(ctx)
    if params.iccid is None:
        return LineTarget(upstream, None)
    line = fleet_line((await find_own_line(ctx, upstream, params.iccid)).row)
    if line is None:
        raise OcsError("The charging system answered without the line's ICCID", before_execution=True)
    return LineTarget(upstream, line)


def parse_day(text: str | None) -> date | None:
    """The UTC day of a wire time; None where it is absent or cannot be read."""
    if text is None:
        return None
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def is_in_stock(line: FleetLine) -> bool:
    """Whether the SIM of `line` is in stock, so that no customer has it."""
    return line.row.get("sim", {}).get("status") == SIM_FREE


def issue_day(line: FleetLine) -> date | None:
    """The UTC day on which its SIM left the stock; where that is unknown, the day of its activation; else None."""
    return parse_day(line.row.get("sim", {}).get("affectationDateUtc")) or parse_day(line.row.get("activationDate"))


def last_use_day(line: FleetLine) -> date | None:
    """The UTC day of the last use by the list; None where the line was never used or the list does not say."""
    return day_of_time(line.row.get("lastUsageDate"))


def day_of_time(told: str | None) -> date | None:
    """The UTC day of a time of the wire, which may name another zone; None where it is absent or cannot be read."""
    try:
        return None if told is None else parse_wire_time(told).date()
    except ValueError:
        return None


LineState = Literal["in_use", "stock", "never_used", "ended", "lapsed"]
ENDED_STATUSES = ("DISCONNECTED", "END_OF_LIFE")


class LinesNotInUse(TypedDict):
    """Lines that cannot be judged by what they used."""

    stock: Annotated[int, Field(description="Free SIMs")]
    never_used: int
    ended: Annotated[int, Field(description="Disconnected or at the end of life")]


class LinesByState(NamedTuple):
    """The lines to look into, and how many of each other kind there are."""

    in_use: list[FleetLine]
    others: dict[LineState, int]


def lines_by_state(lines: Iterable[FleetLine], first: date) -> LinesByState:
    in_use: list[FleetLine] = []
    others: Counter[LineState] = Counter({"stock": 0, "never_used": 0, "ended": 0, "lapsed": 0})
    for line in lines:
        state = line_state(line, first)
        if state == "in_use":
            in_use.append(line)
        else:
            others[state] += 1
    return LinesByState(in_use, dict(others))


def line_state(line: FleetLine, first: date) -> LineState:
    """The state of `line`. Choice: ended lines are not reported, and one without use since before `first` is lost, not at risk."""
    if line.status in ENDED_STATUSES:
        return "ended"
    used = last_use_day(line)
    if used is None:
        return "stock" if is_in_stock(line) else "never_used"
    return "in_use" if used >= first else "lapsed"


def counted_states(states: Iterable[LinesInState]) -> dict[LineState, int]:
    """How many lines are in each state but in use."""
    found = {cast(LineState, each.state): each.lines for each in states}
    return {state: found.get(state, 0) for state in ("stock", "never_used", "ended", "lapsed")}


def lines_in_use(states: Iterable[LinesInState]) -> int:
    return sum(each.lines for each in states if each.state == "in_use")


def count_not_in_use(others: Mapping[LineState, int]) -> LinesNotInUse:
    """The lines in stock, never used and ended, as answers count them; each composite has its own word for silent lines."""
    return {"stock": others["stock"], "never_used": others["never_used"], "ended": others["ended"]}
