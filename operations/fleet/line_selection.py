"""Which lines of the fleet an operation is about: facts that they have, a list of ICCIDs, or a tag."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple, Protocol, Self

import anyio
from pydantic import AfterValidator, FailFast, Field, model_validator

from operations.caches.account_parts import iccid_in_use
from operations.deps import Ctx
from operations.fleet.fleet_access import OwnFleet, look_at_fleet, require_account_in_fleet
from operations.fleet.sync import keeps_names
from operations.fleet.wire_rows import fold_text
from operations.times import StartTime
from operations.upstream.account_lines import read_account_lines, subscriber_number
from operations.upstream.lines import find_line, line_status_word
from operations.vocabulary import Iccid, LineTag, ProblemCause, UpstreamId, assigned_country
from registry.errors import BadRequest, NotFound, Refusal
from registry.operation import CamelInput
from storage.fleet_search import FleetBounds, FleetFilter, LineNumber, find_line_numbers, find_named_lines
from storage.line_tags import iccids_with_tag, tags_of_lines

MOST_LINES_GIVEN = 1000
UNLISTED_LINES_READ = 20
"""Lines that no listing has shown yet and that are asked for one by one; others have to wait for the next listing."""
PARALLEL_LINE_READS = 4
IDENTIFIER_TERM = re.compile(r"\+?[0-9][0-9 ./-]*", re.ASCII)
NETWORK_PATTERN = r"^([1-9][0-9]{2}|0[1-9][0-9]|00[1-9])-?[0-9]{2,3}$"
"""No country has the MCC 000 (ITU-T E.212)."""
LONGEST_NUMBER_IN_NAME = 4
"""Digits that may be part of a name, such as Truck 123; longer ones are looked for in identifiers alone."""

LineStatusWord = Literal["ACTIVE", "INACTIVE", "SUSPENDED", "PENDING", "DISCONNECTED", "END_OF_LIFE", "UNKNOWN"]
SupplyWord = Literal["none", "upcoming", "assigned", "scheduled", "running", "exhausted", "blocked", "expired"]


class LineConditions(CamelInput):
    """Facts of lines: every filter that is given must hold."""

    text: Annotated[
        str | None,
        Field(
            min_length=2,
            max_length=80,
            description="Part of a name, company or e-mail; or first or last digits of an ICCID, IMSI or number, with spaces or +.",
        ),
    ] = None
    account_id: Annotated[UpstreamId | None, Field(description="Only of this account.")] = None
    status: Annotated[LineStatusWord | None, Field(description="Status of the line.")] = None
    country: Annotated[
        str | None, Field(pattern=r"^[A-Za-z]{2}$", description="Last seen there, ISO 3166-1 alpha-2."), AfterValidator(assigned_country)
    ] = None
    network: Annotated[str | None, Field(pattern=NETWORK_PATTERN, description="Last seen there, MCC-MNC, such as 242-01.")] = None
    steering_list: Annotated[int | None, Field(ge=0, le=9007199254740991, description="Its own steering list; 0: none.")] = None
    package_state: Annotated[SupplyWord | None, Field(description="Of the package that serves it best.")] = None
    package_ends_before: Annotated[StartTime | None, Field(description="Its last package ends from now until then.")] = None
    left_below: Annotated[int | None, Field(ge=0, le=10**15, description="Fewer bytes left; 0 where all is used up.")] = None
    used_after: Annotated[StartTime | None, Field(description="Last used then or later.")] = None
    used_before: Annotated[StartTime | None, Field(description="Last used before; never used ones do not count.")] = None
    barred: Annotated[Literal["data", "calls_out", "calls_in", "sms_out", "sms_in"] | None, Field(description="This is barred.")] = None
    speed_limited: Annotated[bool | None, Field(description="Whether a speed limit applies.")] = None
    problem: Annotated[ProblemCause | None, Field(description="Has this problem; see fleet_problems.")] = None
    tag: Annotated[LineTag | None, Field(description="Has this tag; see list_tags.")] = None


class LineSelectionInput(CamelInput):
    """Which lines: exactly one of `iccids`, `query` and `tagged`."""

    iccids: Annotated[
        list[Iccid] | None, FailFast(), Field(min_length=1, max_length=MOST_LINES_GIVEN, description="These lines, 1-1000.")
    ] = None
    query: Annotated[LineConditions | None, Field(description="Lines with these facts, at least one; as in query_fleet.")] = None
    tagged: Annotated[LineTag | None, Field(description="Lines that have this tag.")] = None

    @model_validator(mode="after")
    def _one_selection(self) -> Self:
        given = [name for name in ("iccids", "query", "tagged") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"got {' and '.join(given) or 'none of them'}; say which lines by exactly one of iccids, query and tagged")
        if self.query is not None and self.query == LineConditions():
            raise ValueError("query: got no filter, which would mean every line; give at least one, such as accountId")
        return self


class LineSelection(Protocol):
    """What says which lines: one of the three is given."""

    @property
    def iccids(self) -> Sequence[str] | None: ...
    @property
    def query(self) -> LineConditions | None: ...
    @property
    def tagged(self) -> str | None: ...


class SelectedLines(NamedTuple):
    """The lines that were found.

    `foreign`: ICCIDs that are no lines of the caller's, or none that the credential may see. `unlisted`: ICCIDs of which nobody knows that
    yet: no listing has shown them, and they were too many to be asked for one by one.
    """

    lines: list[LineNumber]
    foreign: list[str]
    unlisted: list[str]


async def select_lines(ctx: Ctx, fleet: OwnFleet, selection: LineSelection, most: int) -> SelectedLines:
    """The caller's lines that `selection` says, within what the credential may see. Raises BadRequest where they are more than `most`.

    Lines that are given by their ICCIDs, or have a tag, and that no listing has shown yet, are asked for at the charging system, at most
    20. Waits for the network; at a first look at a fleet for 20 seconds at most. Called by access.
    """
    if selection.iccids is not None:
        return await find_own_lines(ctx, fleet, list(dict.fromkeys(selection.iccids)))
    if selection.query is None:
        tag = selection.tagged or ""
        iccids = await ctx.deps.store.read(iccids_with_tag, organisation=ctx.organisation, tag=tag, most=most + 1)
        require_at_most(len(iccids), most, "tagged")
        return (await find_own_lines(ctx, fleet, iccids))._replace(foreign=[])
    await require_account_in_fleet(fleet, selection.query.account_id)
    fleet = await look_at_fleet(ctx, fleet)
    wanted = await filter_of(ctx, selection.query, fleet)
    lines = await ctx.deps.store.read(
        find_line_numbers, fleet=fleet.state.id, bounds=fleet.bounds, wanted=wanted, most=most + 1, now=ctx.now
    )
    require_at_most(len(lines), most, "query")
    return SelectedLines(lines, [], [])


def require_at_most(lines: int, most: int, param: str) -> None:
    if lines > most:
        hint = "Give more filters" if param == "query" else "Give a query with this tag and further filters"
        raise BadRequest(f"{param}: more than {most} lines match, and at most {most} are taken at once", param=param, hint=hint)


async def find_own_lines(ctx: Ctx, fleet: OwnFleet, iccids: Sequence[str]) -> SelectedLines:
    """Those of `iccids`, each given once, that are lines within the bounds. Waits for the network where some are not listed yet."""
    store, bounds = ctx.deps.store, fleet.bounds
    if not fleet.state.listed:
        fleet = await look_at_fleet(ctx, fleet)
    lines = await store.read(find_named_lines, fleet=fleet.state.id, bounds=bounds, iccids=iccids)
    found = {line.iccid for line in lines}
    others = [iccid for iccid in iccids if iccid not in found]
    if not others:
        return SelectedLines(lines, [], [])
    hidden = {line.iccid for line in await store.read(find_named_lines, fleet=fleet.state.id, bounds=FleetBounds(), iccids=others)}
    hidden |= set() if bounds.iccids is None else set(others).difference(bounds.iccids)
    if bounds.tags is not None:
        tags = await store.read(tags_of_lines, organisation=ctx.organisation, iccids=others)
        hidden |= set(others).difference(line.iccid for line in tags if line.tag in bounds.tags)
    unlisted = [iccid for iccid in others if iccid not in hidden]
    reading = UnlistedLines(fleet)
    await reading.run(unlisted[:UNLISTED_LINES_READ])
    foreign = [iccid for iccid in others if iccid in hidden or iccid in reading.foreign]
    every = {line.iccid: line for line in [*lines, *reading.lines]}  # a former ICCID names a line that its present one names, too
    return SelectedLines(list(every.values()), foreign, unlisted[UNLISTED_LINES_READ:])


class UnlistedLines:
    """Lines that no listing has shown yet, asked for one by one. `foreign`: ICCIDs that are not lines within the bounds."""

    def __init__(self, fleet: OwnFleet) -> None:
        self._fleet = fleet
        self.lines: list[LineNumber] = []
        self.foreign: set[str] = set()
        self._refusal: Refusal | None = None

    async def run(self, iccids: Sequence[str]) -> None:
        """Raises OcsError where the charging system does not answer. Waits for the network."""
        waiting = iter(iccids)
        async with anyio.create_task_group() as group:
            for _ in range(min(PARALLEL_LINE_READS, len(iccids))):
                group.start_soon(self._read, waiting)
        if self._refusal is not None:
            raise self._refusal

    async def _read(self, waiting: Iterator[str]) -> None:
        for iccid in waiting:
            try:
                line = await find_line(self._fleet.upstream, iccid)
            except NotFound:
                self.foreign.add(iccid)
                continue
            except Refusal as refusal:
                self._refusal = refusal
                return
            accounts = self._fleet.bounds.accounts
            if accounts is None or line.row.get("accountId") in accounts:
                found = LineNumber(line.subscriber_id, iccid_in_use(line.row) or iccid, line_status_word(line.row))
                self.lines.append(found)
            else:
                self.foreign.add(iccid)


async def filter_of(ctx: Ctx, params: LineConditions, fleet: OwnFleet) -> FleetFilter:
    """The filters of the store. A name is looked for live where names are not kept."""
    mcc, mnc = (None, None) if params.network is None else (int(params.network[:3]), int(params.network[3:].removeprefix("-")))
    found = FleetFilter(
        account=params.account_id,
        status=params.status,
        country=params.country,
        mcc=mcc,
        mnc=mnc,
        steering_list=params.steering_list,
        package_state=params.package_state,
        package_ends_before=None if params.package_ends_before is None else params.package_ends_before.timestamp(),
        left_below=params.left_below,
        used_after=None if params.used_after is None else params.used_after.timestamp(),
        used_before=None if params.used_before is None else params.used_before.timestamp(),
        barred=params.barred,
        speed_limited=params.speed_limited,
        problem=params.problem,
        tag=params.tag,
    )
    if params.text is None:
        return found
    text = params.text.strip()
    if not text:
        raise BadRequest("text: got only blanks; it must hold what to look for", param="text", hint="Leave text out to see all lines")
    if IDENTIFIER_TERM.fullmatch(text):
        digits = "".join(letter for letter in text if letter.isdigit())
        return found._replace(begins=digits, ends=digits, part=fold_text(text) if len(digits) <= LONGEST_NUMBER_IN_NAME else None)
    if await keeps_names(ctx.deps, ctx.organisation):
        return found._replace(part=fold_text(text))
    return found._replace(numbers=await lines_named(fleet, text))


async def lines_named(fleet: OwnFleet, text: str) -> list[int]:
    """The subscriber ids of lines whose name or address has `text` in it, read live. Waits for the network."""
    accounts = [account.get("id", 0) for account in await fleet.upstream.accounts()]
    listed = await read_account_lines(fleet.upstream, accounts)
    part = fold_text(text)
    named = (row for row in listed.rows if part in fold_text(f"{row.get('subscriberName') or ''}\n{row.get('email') or ''}"))
    return [subscriber_number(row) for row in named]
