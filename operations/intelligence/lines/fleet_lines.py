"""What composites share: a line as a list shows it, in stock or issued, used lately, ended or silent; the query that asks for one line or
the fleet; and rankings, which are kept for a minute and shown in pages."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Annotated, Generic, Literal, NamedTuple, TypeVar, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.subscribers import Subscriber
from clients.ocs.times import parse_wire_time
from operations.caches.account_parts import SIM_FREE
from operations.deps import Ctx
from operations.fleet.wire_rows import LISTED_ICCID
from operations.intelligence.reports.sheet import Finding, FindingData, Incomplete, make_finding
from operations.upstream.connection import Upstream, connect_upstream
from operations.upstream.lines import current_entry, find_own_line, line_status_word
from operations.upstream.paging import cursor_index
from operations.vocabulary import Iccid
from registry.errors import OcsError
from registry.operation import CamelInput
from storage.fleet_scores import LinesInState

Figures = TypeVar("Figures")
DrawnLine = TypeVar("DrawnLine")
PARALLEL_LINES = 8
"""How many calls the charging system takes at once from a token by default; further ones wait in the link."""
DROPPED_LINE_FIELDS = frozenset(
    {"account", "reseller", "resellerId", "batchId", "email", "phoneNumberList", "multiImsi", "greenZoneCounter"}
)
CACHED_SIM_FIELDS = frozenset({"id", "esim", "status", "affectationDateUtc"})


class FleetLine(NamedTuple):
    """A line of the fleet, as the list shows it."""

    subscriber_id: int
    iccid: str
    account_id: int
    status: str
    row: Subscriber
    """As the list shows it, without DROPPED_LINE_FIELDS, and of the SIM with CACHED_SIM_FIELDS only."""


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
