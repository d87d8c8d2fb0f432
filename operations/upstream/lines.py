"""Lines: an ICCID is resolved to the caller's own line by one read-only call, and a foreign line is not found.

A line's row is shown with what holds now of its histories, and without PIN and PUK. Where a package of a line stands, the charging system
says only by dates, counters and a flag.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple, Protocol, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.packages import Package, RecurringSeries
from clients.ocs.subscribers import Subscriber, SubscriberFields
from clients.ocs.times import parse_wire_time
from clients.ocs.wire_schema import Utc, keeps_unknown
from operations.caches.account_parts import HistoryEntry, entry_in_use, entry_start, open_entries
from operations.deps import Ctx
from operations.event_types.line import line_events
from operations.upstream.connection import Upstream, connect_upstream
from operations.vocabulary import Iccid
from registry.errors import NotFound, OcsConflict, OcsError, OcsNotFound
from registry.ids import Ids
from registry.operation import CamelInput
from storage.country_entries import CountryEntry, country_history
from storage.engine.drivers import Value
from storage.engine.sql import Connection
from storage.event_log import log_events
from storage.fleet_line_changes import note_line_change
from storage.line_tags import tags_of_lines


def current_entry(rows: Sequence[HistoryEntry]) -> HistoryEntry | None:
    """The newest row without an end; where none is without, the newest of all."""
    if len(rows) == 1:
        return rows[0]
    return max(open_entries(rows) or rows, key=entry_start, default=None)


def line_status_word(row: Subscriber) -> str:
    """The status as ACTIVE, INACTIVE, SUSPENDED, PENDING, DISCONNECTED or END_OF_LIFE; UNKNOWN where the row has none."""
    history = current_entry(row.get("status", ()))
    word = (history.get("status") or "") if history is not None else ""
    said = word.upper().replace(" ", "_")
    return said if said in LINE_STATUS_WORDS else "UNKNOWN"


LINE_STATUS_WORDS = frozenset({"ACTIVE", "INACTIVE", "SUSPENDED", "PENDING", "DISCONNECTED", "END_OF_LIFE"})


SIM_SECRETS = frozenset({"pin1", "puk1", "pin2", "puk2"})


@keeps_unknown
class PublicSim(TypedDict, total=False):
    """The SIM of a line. The activation code is a secret of whoever installs the profile."""

    id: int
    subscriberId: int
    esim: bool
    status: Annotated[str, Field(description="FREE or AFFECTED")]
    affectationDateUtc: Utc
    smdpServer: str
    activationCode: str
    confirmationCode: str


@keeps_unknown
class SubscriberRow(SubscriberFields, total=False):
    """A line as the network knows it."""

    iccid: Annotated[str | None, Field(description="The one in use")]
    imsi: Annotated[str | None, Field(description="The one in use")]
    msisdn: Annotated[str | None, Field(description="The phone number in use, digits without plus")]
    currentStatus: Annotated[str | None, Field(description="The last row of `status`: Active, Inactive, Suspended, ...")]
    sim: PublicSim


def current_line_status(row: Subscriber) -> object:
    """The status that holds now, before the row is made public; a network that names it itself is believed."""
    named: Mapping[str, object] = row
    status = current_entry(row.get("status", ()))
    return named.get("currentStatus", status.get("status") if status else None)


def public_line_row(row: Subscriber) -> SubscriberRow:
    """The line with `currentStatus`, its identifiers in use, and without what unlocks the card."""
    imsi, number = current_entry(row.get("imsiList", ())), current_entry(row.get("phoneNumberList", ()))
    shown: dict[str, object] = {
        "iccid": imsi.get("iccid") if imsi else None,
        "imsi": imsi.get("imsi") if imsi else None,
        "msisdn": number.get("phoneNumber") if number else None,
        "currentStatus": current_line_status(row),
        **row,
    }
    sim = row.get("sim")
    if sim is not None:
        shown["sim"] = {name: value for name, value in sim.items() if name not in SIM_SECRETS}
    return cast(SubscriberRow, shown)


class LineRef(CamelInput):
    """Which line."""

    iccid: Iccid


class HasIccid(Protocol):
    @property
    def iccid(self) -> str: ...


class Line(NamedTuple):
    """A line of the caller's, and the way to it."""

    upstream: Upstream
    iccid: str
    subscriber_id: int
    row: Subscriber

    @property
    def imsi(self) -> str:
        """The IMSI in use. Raises OcsConflict where there is none."""
        history = entry_in_use(self.row.get("imsiList", ()))
        found = None if history is None else history.get("imsi")
        if found is None:
            raise OcsConflict("The charging system knows no active IMSI of this line, and this operation needs one", before_execution=True)
        return found

    @property
    def sim_id(self) -> int:
        """The id of the SIM or profile. Raises OcsConflict where there is none."""
        found = self.row.get("sim", {}).get("id")
        if found is None:
            raise OcsConflict("The charging system knows no SIM of this line, and this operation needs one", before_execution=True)
        return found


async def own_line(ctx: Ctx, params: HasIccid) -> Line:
    """The access rule of operations on one line; raises NotFound for a line that is not the caller's. Waits for the network."""
    return await find_own_line(ctx, await connect_upstream(ctx), params.iccid)


async def find_own_line(ctx: Ctx, upstream: Upstream, iccid: str, *, green_zone: bool = False) -> Line:
    """The caller's line. Raises NotFound, or the refusal of a credential for other accounts or tags. Waits for the network.

    An operation that writes marks the line, in the commit that ends the call, or later where that fails: the read model reads it again.
    """
    await require_tags(ctx, iccid)
    line = await find_line(upstream, iccid, green_zone=green_zone)
    ctx.of_account(line.row.get("accountId"))
    ctx.see_state(f"line {line.subscriber_id} {line.row.get('accountId')} {line_status_word(line.row)}")
    if not ctx.call.operation.read_only:
        note_line(ctx, line)
        ctx.if_lost(note_line_change, organisation=ctx.organisation, subscriber_id=line.subscriber_id, values={}, now=ctx.now)
    return line


async def require_tags(ctx: Ctx, iccid: str) -> None:
    """Raises the refusal of a credential that is restricted to tags, of which the line has none. Waits for the database."""
    if ctx.caller.restrictions.tags is not None:
        found = await ctx.deps.store.read(tags_of_lines, organisation=ctx.organisation, iccids=[iccid])
        ctx.of_tags(line.tag for line in found)


def note_line(ctx: Ctx, line: Line, **values: str | int | float) -> None:
    """Puts what the call has changed into the read model, in the commit that ends the call. `values`: columns of the line's row."""
    number, ids = line.subscriber_id, ctx.deps.ids
    ctx.at_close(settle_line_change, organisation=ctx.organisation, subscriber_id=number, values=values, now=ctx.now, ids=ids)


def settle_line_change(
    connection: Connection, *, organisation: str, subscriber_id: int, values: Mapping[str, Value], now: float, ids: Ids
) -> None:
    """Puts what a call of ours has changed into the line's row, and tells what is new by that. `now`: Unix seconds."""
    news = note_line_change(connection, organisation=organisation, subscriber_id=subscriber_id, values=values, now=now)
    log_events(connection, events=line_events(news, ids=ids, now=now))


async def find_line(upstream: Upstream, iccid: str, *, green_zone: bool = False) -> Line:
    """The line with this ICCID; raises NotFound, which is the same for unknown and foreign ones. Waits for the network."""
    try:
        row = await upstream.ocs.subscriber.get_single_subscriber(iccid, by="iccid", with_gz_counter=green_zone or None)
    except OcsNotFound:
        raise line_not_found() from None
    subscriber_id = row.get("subscriberId")
    if upstream.managed and row.get("accountId") != upstream.account_id:
        raise line_not_found()
    if subscriber_id is None:
        raise OcsError("The charging system answered without the line's number", before_execution=True)
    return Line(upstream, iccid, subscriber_id, row)


def line_not_found() -> NotFound:
    """The refusal that unknown and foreign lines share."""
    return NotFound(
        "Your account has no line with this ICCID",
        param="iccid",
        hint="list_subscribers finds lines by the beginning or the last digits of an ICCID, or by name",
    )


async def read_country_history(ctx: Ctx, line: Line, limit: int) -> list[CountryEntry]:
    """The newest countries that `line` came into while it was in accounts of the caller's, newest first.

    Choice: a caller with its own token also sees entries without an account, since the service's token may not see its lines.
    """
    upstream, accounts = line.upstream, {line.upstream.account_id}
    if not upstream.managed:
        accounts = {None, *(account.get("id") for account in await upstream.accounts())}
    return await ctx.deps.store.read(country_history, iccid=line.iccid, limit=limit, accounts=accounts)


PackageState = Literal["upcoming", "assigned", "scheduled", "running", "exhausted", "expired", "blocked"]
"""`upcoming`: a series that has made no package yet. `assigned`: waits for its first use."""

PACKAGE_COUNTERS = (
    ("pckdatabyte", ("useddatabyte",)),
    ("pckmocsecond", ("usedmocsecond", "usedmocvoipsecond")),
    ("pckmtcsecond", ("usedmtcsecond",)),
    ("pckmosmsnumber", ("usedmosmsnumber",)),
    ("pckmtsmsnumber", ("usedmtsmsnumber",)),
)


def package_state(package: Package, now: float, *, single_counter: bool = False) -> PackageState:
    """The state at `now`, Unix seconds. With a single counter received calls count as calls made. Raises OcsError.

    Choice: blocked hides every other state, and expired hides exhausted.
    """
    if package.get("active") is False:
        return "blocked"
    moment = datetime.fromtimestamp(now, UTC)
    start, end = package_start(package), package_end(package)
    if end is not None and end <= moment:
        return "expired"
    if start is None and end is None:
        return "assigned"
    if start is not None and start > moment:
        return "scheduled"
    return "exhausted" if is_package_exhausted(package, single_counter=single_counter) else "running"


def package_start(package: Package) -> datetime | None:
    """When the package was activated, or will be; None while it waits for its first use. Raises OcsError."""
    return _package_time(package.get("tsactivationutc"))


def package_end(package: Package) -> datetime | None:
    """When the package expires; None while it waits for its first use. Raises OcsError."""
    return _package_time(package.get("tsexpirationutc"))


def is_package_exhausted(package: Package, *, single_counter: bool) -> bool:
    """Choice: nothing is left of any kind of use the package holds; a limit of 0 or none holds nothing."""
    members: dict[str, object] = {**package}
    left: list[int] = []
    for limit, used in PACKAGE_COUNTERS:
        held = _counter_value(members.get(limit))
        if held > 0 and not (single_counter and limit == "pckmtcsecond"):
            left.append(held - sum(_counter_value(members.get(name)) for name in used))
    return bool(left) and max(left) <= 0


def series_continues(series: RecurringSeries) -> bool:
    """Whether the series will make another package."""
    most = series.get("nbOccurrence")
    return series.get("active", True) and (most is None or series.get("nbCreated", 0) < most)


def package_days(package: Package) -> int | None:
    """How many days the package runs from its activation; None where that is not told, or is more than a century."""
    days = _counter_value(package.get("perioddays"))
    return days if 0 < days <= 36_525 else None


def _counter_value(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else 0


def _package_time(value: object) -> datetime | None:
    if value is None:
        return None
    try:
        return parse_wire_time(str(value))
    except ValueError:
        raise OcsError("The charging system gave a package a date that cannot be read", before_execution=True) from None
