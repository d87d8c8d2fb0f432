"""Whether a line is in the country it is expected in; and which lines of the fleet entered a country that is unusual for them."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.fleet.fleet_access import look_at_fleet, look_at_weeks, missing_knowledge, missing_lines, own_fleet
from operations.fleet.line_refresh import OwnFleet
from operations.fleet.wire_rows import ordinal
from operations.intelligence.lines.fleet_lines import PageCursor, RankingLimit
from operations.intelligence.reports.sheet import Finding, Incomplete, example_finding, make_finding
from operations.intelligence.verdicts.country_stays import SightingSource, UnusualEntry, entries_of_text
from operations.intelligence.verdicts.rules import DAYS_BEFORE_LEAVING
from operations.upstream.connection import connect_upstream
from operations.upstream.lines import Line, find_own_line, read_country_history
from operations.upstream.whereabouts import LineWhereabouts, line_whereabouts
from operations.vocabulary import Iccid, assigned_country
from registry.clock import DAY_SECONDS, rfc3339_utc
from registry.errors import BadRequest, NotFound, OcsError
from registry.operation import CamelInput, Example, FieldRule, Scope, operation
from storage.country_entries import CountryEntry
from storage.fleet_entries import EnteredLine, EntryPlace, FleetEntries, entered_lines

PRESENCE_METHOD = (
    "The country of the mobile country code (ITU-T E.212) of the network that the line registered on last, with the network code where "
    "one code spans countries; when it came in is what the network's bridge pushed."
)
ENTRIES_METHOD = (
    "Lines first seen in these days in a country where they were on 5 % or less of their days of the 56 before, by registrations, pushed "
    "locations and use by day; without ten such days nobody can say what is usual."
)
ENTRY_CURSOR = re.compile(r"[0-9]{1,12}_[0-9]{1,18}", re.ASCII)
PresenceState = Literal["as_expected", "elsewhere", "seen", "unknown_country", "never_seen"]


class CountryQuery(CamelInput):
    """Which line, and where it should be; without one, how many days of the fleet."""

    iccid: Annotated[Iccid | None, Field(description="One line, live; without it the fleet's entries into unusual countries.")] = None
    expected_country: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z]{2}$", description="ISO 3166-1 alpha-2, such as NO; of one line."),
        AfterValidator(assigned_country),
    ] = None
    days: Annotated[int, Field(ge=1, le=90, description="Of the fleet: entries of the last days, 1-90.")] = 7
    limit: RankingLimit = 100
    starting_after: PageCursor = None

    @model_validator(mode="after")
    def check(self) -> Self:
        """Raises ValueError for an expectation of no line."""
        if self.iccid is None and self.expected_country is not None:
            rule = "expectedCountry: it is of one line, and no iccid is given"
            raise FieldRule(rule, param="expectedCountry", hint="Name the line, or leave expectedCountry out to see the fleet's entries")
        return self


class CountryPresence(TypedDict):
    """Where a line is."""

    iccid: str
    presence: Annotated[
        PresenceState,
        Field(description="seen: its country is known and none was expected; unknown_country: its code is of no single country"),
    ]
    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2; null: never seen, or `mcc` and `mnc` do not tell")]
    mcc: str | None
    mnc: Annotated[str | None, Field(description="With two digits at least, since the network leaves zeros out")]
    seen: Annotated[str | None, Field(description="RFC 3339, UTC: when it registered there last; null: not told")]
    expected: str | None
    matches: Annotated[bool | None, Field(description="Null: nothing was expected, or the country is not known")]
    entered: Annotated[str | None, Field(description="When it came into the country; null: the bridge has told of no such entry")]
    came_from: Annotated[str | None, Field(description="The country before that, where it is known")]
    source: Annotated[
        Literal["registration", "push"] | None, Field(description="What tells the country: a registration is believed before a push")
    ]
    contradicted_by: Annotated[
        str | None, Field(description="The country of the newest pushed location, where that is another one; null: nothing says otherwise")
    ]


class EntryEvidence(TypedDict):
    """The first sighting of a source."""

    source: Annotated[SightingSource, Field(description="registration: told by the charging system; push: told to us; use: by day")]
    at: Annotated[str, Field(description="RFC 3339, UTC; of use the beginning of its day")]


class UnusualStay(TypedDict):
    """An entry into a country."""

    country: Annotated[str, Field(description="ISO 3166-1 alpha-2")]
    first_seen: Annotated[str, Field(description="RFC 3339, UTC; the beginning of the day where only its use by day is known")]
    usual_countries: Annotated[list[str], Field(description="Where it was in the 56 days before, most days first")]
    evidence: Annotated[list[EntryEvidence], Field(description="The most trusted first")]


class EnteredCountry(UnusualStay):
    """A line that entered a country that is unusual for it."""

    iccid: str
    account_id: int
    there_now: Annotated[bool, Field(description="By what is trusted most of where it is")]
    earlier: Annotated[list[UnusualStay], Field(description="Other such entries in these days, newest first")]


class CountryEntries(TypedDict):
    """The lines of the fleet that entered an unusual country."""

    days: int
    lines: Annotated[int, Field(description="That did so, on all pages")]
    entries: Annotated[list[EnteredCountry], Field(description="The newest entry first; a page of them")]


PRESENCE_EXAMPLE: CountryPresence = {
    "iccid": "8988303700000100286",
    "presence": "as_expected",
    "country": "FR",
    "mcc": "208",
    "mnc": "01",
    "seen": "2027-01-15T11:00:00Z",
    "expected": "FR",
    "matches": True,
    "entered": "2027-01-15T10:01:00Z",
    "came_from": "NO",
    "source": "registration",
    "contradicted_by": None,
}
SEEN_EXAMPLE: CountryPresence = {**PRESENCE_EXAMPLE, "presence": "seen", "expected": None, "matches": None}


ENTRIES_EXAMPLE: CountryEntries = {
    "days": 7,
    "lines": 1,
    "entries": [
        {
            "iccid": PRESENCE_EXAMPLE["iccid"],
            "account_id": 8101,
            "country": "TR",
            "first_seen": "2027-01-13T18:20:00Z",
            "usual_countries": ["NO"],
            "there_now": True,
            "evidence": [{"source": "push", "at": "2027-01-13T18:20:00Z"}, {"source": "use", "at": "2027-01-14T00:00:00Z"}],
            "earlier": [],
        }
    ],
}


async def own_line_or_own_fleet(ctx: Ctx, params: CountryQuery) -> Line | OwnFleet:
    """The access rule: a line that is named must be the caller's; of the fleet a credential sees what it is restricted to."""
    if params.iccid is not None:
        return await find_own_line(ctx, await connect_upstream(ctx), params.iccid)
    return await own_fleet(ctx, params)


@operation(
    "POST",
    "/v1/intelligence/detect-country-entry",
    scope=Scope.READ,
    upstream=True,
    bounded=True,
    title="Detect country entry",
    access=own_line_or_own_fleet,
    raises=[NotFound, BadRequest, OcsError],
    examples=[
        Example(
            "Has this traveller arrived in France?",
            {"iccid": PRESENCE_EXAMPLE["iccid"], "expectedCountry": "FR"},
            example_finding(PRESENCE_EXAMPLE, PRESENCE_METHOD),
        ),
        Example("Which country is this line in?", {"iccid": PRESENCE_EXAMPLE["iccid"]}, example_finding(SEEN_EXAMPLE, PRESENCE_METHOD)),
        Example(
            "Which lines are where they never were?",
            {"days": 7, "limit": 10},
            example_finding(ENTRIES_EXAMPLE, ENTRIES_METHOD, sampled=140, of=140),
        ),
    ],
    tool_defaults={"limit": 10},
)
async def detect_country_entry(ctx: Ctx, params: CountryQuery, target: Line | OwnFleet) -> Finding[CountryPresence | CountryEntries]:
    """Tell which country a line is in, or which lines entered unusual countries.

    With `iccid`: where it is now, and whether that is expected. Without it: the fleet's entries of the last `days`, newest first.

    `seen` says how old that is: a device that is switched off stays where it was. subscriber_country_history has the countries before.
    `entered` comes from the locations that the network's bridge pushes, which not every network does. Where its newest entry is of another
    country than the registration, there is none, and `contradicted_by` names that country: a registration that the charging system tells
    is believed first, then a pushed location, then use by day. One line is read live. The fleet comes from the read model: a line is told
    of that is first seen in a country where it was on 5 % or less of its days of the 56 before, at least ten of them; whoever comes back
    within two weeks goes on with the same visit. fleet_problems tells of fewer, as `abroad`: of lines that hardly ever leave their country.
    """
    if isinstance(target, Line):
        data = line_presence(target, await read_country_history(ctx, target, 2), params.expected_country)
        found: Finding[CountryPresence | CountryEntries] = make_finding(data, now=ctx.now, sampled=1, of=1, method=PRESENCE_METHOD)
        return found
    return await entries_of_fleet(ctx, params, target)


def line_presence(line: Line, entries: list[CountryEntry], expected: str | None) -> CountryPresence:
    """Where a line is. `entries`: the newest countries that it came into by pushed locations, newest first."""
    pushed = entries[0] if entries else None
    found = line_whereabouts(line, pushed)
    country = None if found is None else found.country
    entry = pushed if pushed is not None and pushed.country == country else None
    return {
        "iccid": line.iccid,
        "presence": presence_state(found, expected),
        "country": country,
        "mcc": None if found is None else f"{found.code[0]:03d}",
        "mnc": None if found is None else f"{found.code[1]:02d}",
        "seen": None if found is None or found.seen is None else rfc3339_utc(found.seen),
        "expected": expected,
        "matches": None if expected is None or country is None else country == expected,
        "entered": None if entry is None else rfc3339_utc(entry.occurred_at),
        "came_from": entries[1].country if entry is not None and len(entries) > 1 else None,
        "source": None if found is None else found.source,
        "contradicted_by": pushed.country if pushed is not None and country is not None and pushed.country != country else None,
    }


async def entries_of_fleet(ctx: Ctx, params: CountryQuery, fleet: OwnFleet) -> Finding[CountryPresence | CountryEntries]:
    """A page of the entries of the fleet. Waits for the network at a first look; raises BadRequest for what is no cursor."""
    after = None if params.starting_after is None else entry_place(params.starting_after)
    first = ordinal(ctx.now) - DAYS_BEFORE_LEAVING
    fleet = await look_at_weeks(ctx, await look_at_fleet(ctx, fleet), first)
    since = ctx.now - params.days * DAY_SECONDS
    found = await ctx.deps.store.read(
        entered_lines,
        fleet=fleet.state.id,
        bounds=fleet.bounds,
        since=since,
        first=first,
        after=after,
        most=params.limit + 1,
        now=ctx.now,
    )
    page = found.page[: params.limit]
    if len(found.page) > params.limit:
        ctx.next_cursor = f"{int(page[-1].entry_at)}_{page[-1].subscriber_id}"
        ctx.note = f"{len(page)} of {found.lines} lines."
    now = ctx.deps.clock.now()  # the first look may have taken a while
    data: CountryEntries = {"days": params.days, "lines": found.lines, "entries": [entered_country(line, since) for line in page]}
    made: Finding[CountryPresence | CountryEntries] = make_finding(
        data,
        now=now,
        sampled=found.known.lines - found.known.progress.unread,
        of=found.known.lines,
        method=ENTRIES_METHOD,
        incomplete=missing_of_entries(fleet, found, now),
        as_of=fleet.state.listed or None,
    )
    return made


def entry_place(cursor: str) -> EntryPlace:
    """The place that a cursor names. Raises BadRequest where it is none."""
    if not ENTRY_CURSOR.fullmatch(cursor):
        raise BadRequest("starting_after: not a cursor of this list", param="starting_after", hint="Take it from the page before")
    at, number = cursor.split("_")
    return EntryPlace(float(at), int(number))


def missing_of_entries(fleet: OwnFleet, found: FleetEntries, now: float) -> Incomplete | None:
    known = found.known
    reasons = missing_knowledge(fleet, known, now)
    return {"lines": missing_lines(known), "reasons": reasons} if reasons else None


def entered_country(line: EnteredLine, since: float) -> EnteredCountry:
    """The newest entry of a line, and others that it made at `since` (Unix seconds) or later."""
    entries = [entry for entry in entries_of_text(line.entry_facts) if entry.at >= since]
    newest = entries[0]
    return {
        **unusual_stay(newest),
        "iccid": line.iccid,
        "account_id": line.account_id,
        "there_now": newest.there,
        "earlier": [unusual_stay(entry) for entry in entries[1:]],
    }


def unusual_stay(entry: UnusualEntry) -> UnusualStay:
    return {
        "country": entry.country,
        "first_seen": rfc3339_utc(entry.at),
        "usual_countries": entry.usual,
        "evidence": [{"source": source, "at": rfc3339_utc(at)} for source, at in entry.evidence],
    }


def presence_state(found: LineWhereabouts | None, expected: str | None) -> PresenceState:
    if found is None:
        return "never_seen"
    if found.country is None:
        return "unknown_country"
    if expected is None:
        return "seen"
    return "as_expected" if found.country == expected else "elsewhere"
