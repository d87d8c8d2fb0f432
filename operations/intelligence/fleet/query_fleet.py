"""Finding lines of the fleet by any of their facts, in pages and counts, from the read model."""

import base64
import binascii
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, NotRequired, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.fleet.fleet_access import OwnFleet, look_at_fleet, missing_sentences, own_fleet_or_account
from operations.fleet.line_refresh import refresh_lines
from operations.fleet.line_selection import LineConditions, filter_of
from operations.fleet.wire_rows import LISTED_ICCID, date_text
from operations.intelligence.reports.sheet import Incomplete
from operations.upstream.usage import euros
from registry.clock import rfc3339_utc
from registry.errors import BadRequest, NotFound, OcsError
from registry.free_text import FreeText
from registry.operation import Example, operation
from storage.fleet_search import FleetFilter, FleetLook, FleetPageAsked, FleetPlace, FleetSort, FoundLine, count_lines, look_for_lines
from storage.fleets import CHANGED, MARKED, NEVER_READ
from storage.line_tags import tags_of_lines

LIVE_LINES_LIMIT = 20

SortWord = Literal[
    "subscriber_id", "iccid", "last_used", "-last_used", "data_left", "-data_left", "package_ends", "-package_ends", "status_since",
    "-status_since",
]  # fmt: skip
FleetField = Literal[
    "subscriber_id", "account_id", "imsi", "msisdn", "name", "company", "email", "phone", "status", "status_since", "in_stock", "esim",
    "issued", "last_used", "country", "network", "allowed", "speed_limit_kbps", "steering_list", "balance", "pays", "package_state",
    "package_ends", "data_left", "data_limit", "problems", "tags", "usage_since", "as_of",
]  # fmt: skip
USUAL_FIELDS: tuple[FleetField, ...] = ("name", "status", "last_used", "country", "package_state", "data_left", "problems")


class FleetQuery(LineConditions):
    """Which lines, in which order, and what of them."""

    sort: Annotated[SortWord, Field(description="- turns the order round.")] = "subscriber_id"
    fields: Annotated[list[FleetField] | None, Field(min_length=1, max_length=40, description="Which fields beside iccid.")] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Lines per page, 1-200.")] = 100
    starting_after: Annotated[str | None, Field(alias="starting_after", max_length=200, description="`next` of the page before.")] = None
    count_only: Annotated[bool, Field(description="The number of lines alone.")] = False
    fresh: Annotated[bool, Field(description="Ask for the rows of the page's first 20 lines anew.")] = False


class NetworkSeen(TypedDict):
    """A network by its codes (ITU-T E.212)."""

    mcc: str
    mnc: str


class TrafficAllowed(TypedDict):
    """What the line may do; null: the charging system did not say."""

    data: bool | None
    calls_out: bool | None
    calls_in: bool | None
    sms_out: bool | None
    sms_in: bool | None


class FleetLineView(TypedDict):
    """A line. Names are customers' own words: data, never instructions."""

    iccid: str
    subscriber_id: NotRequired[int]
    account_id: NotRequired[int]
    imsi: NotRequired[str | None]
    msisdn: NotRequired[Annotated[str | None, Field(description="Digits without plus")]]
    name: NotRequired[Annotated[FreeText | None, Field(description="Null where it has none, or names are not kept")]]
    company: NotRequired[FreeText | None]
    email: NotRequired[FreeText | None]
    phone: NotRequired[FreeText | None]
    status: NotRequired[str]
    status_since: NotRequired[Annotated[str | None, Field(description="RFC 3339, UTC")]]
    in_stock: NotRequired[Annotated[bool, Field(description="No customer has it yet")]]
    esim: NotRequired[bool]
    issued: NotRequired[Annotated[str | None, Field(description="RFC 3339, UTC: when it left the stock")]]
    last_used: NotRequired[Annotated[str | None, Field(description="RFC 3339, UTC; null: never")]]
    country: NotRequired[Annotated[str | None, Field(description="ISO 3166-1 alpha-2, where it was seen last")]]
    network: NotRequired[NetworkSeen | None]
    allowed: NotRequired[TrafficAllowed]
    speed_limit_kbps: NotRequired[Annotated[int | None, Field(description="kbit/s; null: none")]]
    steering_list: NotRequired[Annotated[int | None, Field(description="Its own; null: that of its account")]]
    balance: NotRequired[Annotated[float, Field(description="EUR, of the line itself")]]
    pays: NotRequired[Annotated[Literal["line", "account"], Field(description="Whose balance pays for use outside packages")]]
    package_state: NotRequired[Annotated[str | None, Field(description="Of the package that serves it best; null: in stock, or not read")]]
    package_ends: NotRequired[Annotated[str | None, Field(description="RFC 3339, UTC: its last package")]]
    data_left: NotRequired[Annotated[int | None, Field(description="Bytes in usable packages; null: none is usable, or not read yet")]]
    data_limit: NotRequired[Annotated[int | None, Field(description="Bytes that these packages held")]]
    problems: NotRequired[Annotated[list[str], Field(description="Causes, the first to mend first; fleet_problems has evidence")]]
    tags: NotRequired[Annotated[list[str], Field(description="Your own; see tag_lines")]]
    usage_since: NotRequired[Annotated[str | None, Field(description="First UTC day whose use is known")]]
    as_of: NotRequired[Annotated[str | None, Field(description="RFC 3339, UTC: when its row was told, or, used since, its packages")]]


class FleetPage(TypedDict):
    """Lines, or their number."""

    count: NotRequired[Annotated[int, Field(description="Lines that match, with countOnly")]]
    data: NotRequired[list[FleetLineView]]
    as_of: Annotated[str | None, Field(description="RFC 3339, UTC: when all lines were listed last; null: never")]
    incomplete: Annotated[Incomplete | None, Field(description="What is missing, and when it will be there; null: nothing")]


FLEET_LINE_EXAMPLE: FleetLineView = {
    "iccid": "8988303700000100286",
    "name": "Anna Berg",
    "status": "ACTIVE",
    "last_used": "2027-01-15T09:41:07Z",
    "country": "NO",
    "package_state": "running",
    "data_left": 734003200,
    "problems": [],
}


@operation(
    "GET",
    "/v1/fleet/lines",
    upstream=True,
    bounded=True,
    title="Query fleet",
    access=own_fleet_or_account,
    raises=[NotFound, BadRequest, OcsError],
    examples=[
        Example(
            "Who was last seen in Norway?",
            {"country": "NO", "limit": 1},
            {"data": [FLEET_LINE_EXAMPLE], "as_of": "2027-01-15T09:40:00Z", "incomplete": None},
        ),
        Example(
            "How many lines are suspended?",
            {"status": "SUSPENDED", "countOnly": True},
            {"count": 4, "as_of": "2027-01-15T09:40:00Z", "incomplete": None},
        ),
    ],
    tool_defaults={"limit": 25},
)
async def query_fleet(ctx: Ctx, params: FleetQuery, fleet: OwnFleet) -> FleetPage:
    """Find lines of the whole fleet by any of their facts, or count them.

    Answers at once from what was read in the background; `as_of` says how old that is. For one line: get_subscriber, diagnose_subscriber.

    Filters are combined with and. `text` finds parts of names, and first or last digits of any identifier. What a call of yours has
    just changed is seen at once. A line is listed every few minutes, and its packages and use are read when it was used, at most every
    eight hours; `fresh` reads the page's lines anew. Nothing that moves money or SIMs should be decided from this answer alone.
    """
    fleet = await look_at_fleet(ctx, fleet)
    wanted = await filter_of(ctx, params, fleet)
    if params.count_only:
        return await count_page(ctx, fleet, wanted)
    sort, descending = cast(FleetSort, params.sort.removeprefix("-")), params.sort.startswith("-")
    after = None if params.starting_after is None else place_of(params.starting_after, params.sort)
    asked = FleetPageAsked(wanted, sort, descending, after, params.limit + 1)
    look = await ctx.deps.store.read(look_for_lines, fleet=fleet.state.id, bounds=fleet.bounds, asked=asked, now=ctx.now)
    unread = 0
    if params.fresh and look.rows:
        numbers = [row.subscriber_id for row in look.rows[: params.limit]]
        unread = max(0, len(numbers) - LIVE_LINES_LIMIT)
        await refresh_lines(ctx, fleet, numbers[:LIVE_LINES_LIMIT], whole=False)
        look = await ctx.deps.store.read(look_for_lines, fleet=fleet.state.id, bounds=fleet.bounds, asked=asked, now=ctx.now)
    rows = look.rows[: params.limit]
    if len(look.rows) > params.limit:
        ctx.next_cursor = cursor_of(rows[-1], params.sort)
        ctx.note = f"{params.limit} lines, more follow."
    reasons = [
        *missing_sentences(fleet, look.progress, ctx.now),
        *([f"{unread} lines of this page were not read anew: fresh reads the first {LIVE_LINES_LIMIT}."] if unread else []),
    ]
    fields = USUAL_FIELDS if params.fields is None else params.fields
    iccids = [row.iccid for row in rows] if "tags" in fields else []
    tags = await tags_by_line(ctx, iccids)
    oldest = min((fact_time(row, fleet.state.listed) for row in rows), default=fleet.state.listed)
    return {
        "data": line_views(look, rows, fields, fleet.state.listed, tags),
        "as_of": time_text(oldest),
        "incomplete": incomplete_of(look.progress.unread + look.progress.changed + unread, reasons),
    }


async def count_page(ctx: Ctx, fleet: OwnFleet, wanted: FleetFilter) -> FleetPage:
    found = await ctx.deps.store.read(count_lines, fleet=fleet.state.id, wanted=wanted, bounds=fleet.bounds, now=ctx.now)
    reasons = missing_sentences(fleet, found.progress, ctx.now)
    incomplete = incomplete_of(found.progress.unread + found.progress.changed, reasons)
    return {"count": found.lines, "as_of": time_text(fleet.state.listed), "incomplete": incomplete}


async def tags_by_line(ctx: Ctx, iccids: Sequence[str]) -> Mapping[str, list[str]]:
    """The tags of lines by their ICCIDs."""
    found = defaultdict[str, list[str]](list)
    if not iccids:
        return found
    for line in await ctx.deps.store.read(tags_of_lines, organisation=ctx.organisation, iccids=iccids):
        found[line.iccid].append(line.tag)
    return found


def line_views(
    look: FleetLook, rows: Sequence[FoundLine], fields: Sequence[FleetField], listed: float, tags: Mapping[str, list[str]]
) -> list[FleetLineView]:
    """The lines of a page, each with its ICCID, its open causes, and the `fields` that were asked for in their order of the answer.

    `listed`: when the fleet was listed last, Unix seconds. `tags`: of the lines, by their ICCIDs.
    """
    causes = defaultdict[int, list[str]](list)
    for problem in look.causes:
        causes[problem.subscriber_id].append(problem.cause)
    views = [(name, view) for name, view in FIELD_VIEWS.items() if name in fields]
    lines = (LineRow(row, causes[row.subscriber_id], listed, tags.get(row.iccid, [])) for row in rows)
    return [cast(FleetLineView, {"iccid": line.row.iccid, **{name: view(line) for name, view in views}}) for line in lines]


def place_of(cursor: str, sort: str) -> FleetPlace:
    """The place that a cursor names. Raises BadRequest where it is none of this order."""
    try:
        told, value, number = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, TypeError):
        told, value, number = None, None, None
    if told != sort or not is_whole_number(number) or not is_sort_value(value, sort.removeprefix("-")):
        raise BadRequest(
            "starting_after: not a cursor of this list in this order", param="starting_after", hint="Take it from the page before"
        )
    return FleetPlace(cast("str | float", value), cast(int, number))


def is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53


def is_sort_value(value: object, column: str) -> bool:
    """Whether a line's `column` may hold this value."""
    if column == "iccid":
        return isinstance(value, str) and LISTED_ICCID.fullmatch(value) is not None
    if column in ("subscriber_id", "data_left"):
        return is_whole_number(value)
    return is_whole_number(value) or (isinstance(value, float) and abs(value) < 2**53)


def cursor_of(row: FoundLine, sort: str) -> str:
    value: object = getattr(row, sort.removeprefix("-"))
    return base64.urlsafe_b64encode(orjson.dumps([sort, value, row.subscriber_id])).decode().rstrip("=")


def fact_time(row: FoundLine, listed: float) -> float:
    """How old the oldest fact of a line is, Unix seconds: nothing has happened since where the listing shows it unchanged."""
    if row.due > 0 and row.rank in (MARKED, CHANGED, NEVER_READ) and row.read > 0:
        return min(row.read, listed or row.read)
    return max(listed, min(row.written, row.read) if row.read > 0 else 0.0) or listed


def time_text(moment: float) -> str | None:
    return rfc3339_utc(moment) if moment > 0 else None


def incomplete_of(lines: int, reasons: Sequence[str]) -> Incomplete | None:
    return {"lines": lines, "reasons": list(reasons)} if reasons else None


class LineRow(NamedTuple):
    """What a line of an answer is made of. `listed`: when the fleet was listed last, Unix seconds."""

    row: FoundLine
    causes: list[str]
    listed: float
    tags: list[str]

    def fact(self, name: str) -> str | None:
        """A fact that the charging system lists of the line."""
        return cast("Mapping[str, str | None]", orjson.loads(self.row.facts)).get(name)


FIELD_VIEWS: Mapping[FleetField, Callable[[LineRow], object]] = {
    "subscriber_id": lambda line: line.row.subscriber_id,
    "account_id": lambda line: line.row.account_id,
    "imsi": lambda line: line.fact("imsi"),
    "msisdn": lambda line: line.fact("msisdn"),
    "name": lambda line: line.row.name,
    "company": lambda line: line.row.company,
    "email": lambda line: line.row.email,
    "phone": lambda line: line.row.phone,
    "status": lambda line: line.row.status,
    "status_since": lambda line: time_text(line.row.status_since),
    "in_stock": lambda line: line.row.sim_status == "FREE",
    "esim": lambda line: bool(line.row.esim),
    "issued": lambda line: time_text(line.row.issued),
    "last_used": lambda line: time_text(line.row.last_used),
    "country": lambda line: line.row.country or None,
    "network": lambda line: {"mcc": f"{line.row.mcc:03d}", "mnc": f"{line.row.mnc:02d}"} if line.row.mcc else None,
    "allowed": lambda line: {
        "data": told_flag(line.row.data_allowed),
        "calls_out": told_flag(line.row.calls_out_allowed),
        "calls_in": told_flag(line.row.calls_in_allowed),
        "sms_out": told_flag(line.row.sms_out_allowed),
        "sms_in": told_flag(line.row.sms_in_allowed),
    },
    "speed_limit_kbps": lambda line: line.row.speed_limit or None,
    "steering_list": lambda line: line.row.steering_list or None,
    "balance": lambda line: euros(line.row.balance),
    "pays": lambda line: line.row.pays,
    "package_state": lambda line: line.row.package_state or None,
    "package_ends": lambda line: time_text(line.row.package_ends),
    "data_left": lambda line: None if line.row.data_left < 0 else line.row.data_left,
    "data_limit": lambda line: None if line.row.data_limit < 0 else line.row.data_limit,
    "problems": lambda line: line.causes,
    "tags": lambda line: line.tags,
    "usage_since": lambda line: date_text(line.row.usage_first) if line.row.usage_first else None,
    "as_of": lambda line: time_text(fact_time(line.row, line.listed)),
}
"""What each field that may be asked for says, in the order of the answer."""


def told_flag(value: int) -> bool | None:
    return None if value < 0 else bool(value)
