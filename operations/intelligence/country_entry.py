"""Whether a line is in the country it is expected in."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from clients.ocs.times import wire_seconds
from operations.deps import Ctx
from operations.intelligence.reports.sheet import Finding, example_finding, make_finding
from operations.upstream.lines import Line, LineRef, own_line, read_country_history
from operations.upstream.signalling import NetworkCode, network_code
from operations.vocabulary import assigned_country, network_country
from registry.clock import rfc3339_utc
from registry.errors import NotFound, OcsError
from registry.operation import Example, Scope, operation

PRESENCE_METHOD = (
    "The country of the mobile country code (ITU-T E.212) of the network that the line registered on last, with the network code where "
    "one code spans countries; when it came in is what the network's bridge pushed."
)
PresenceState = Literal["as_expected", "elsewhere", "seen", "unknown_country", "never_seen"]


class CountryQuery(LineRef):
    """Which line, and where it should be."""

    expected_country: Annotated[
        str | None, Field(pattern=r"^[A-Za-z]{2}$", description="ISO 3166-1 alpha-2, such as NO."), AfterValidator(assigned_country)
    ] = None


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
}
SEEN_EXAMPLE: CountryPresence = {**PRESENCE_EXAMPLE, "presence": "seen", "expected": None, "matches": None}


@operation(
    "POST",
    "/v1/intelligence/detect-country-entry",
    scope=Scope.READ,
    upstream=True,
    title="Detect country entry",
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Has this traveller arrived in France?",
            {"iccid": PRESENCE_EXAMPLE["iccid"], "expectedCountry": "FR"},
            example_finding(PRESENCE_EXAMPLE, PRESENCE_METHOD),
        ),
        Example("Which country is this line in?", {"iccid": PRESENCE_EXAMPLE["iccid"]}, example_finding(SEEN_EXAMPLE, PRESENCE_METHOD)),
    ],
)
async def detect_country_entry(ctx: Ctx, params: CountryQuery, line: Line) -> Finding[CountryPresence]:
    """Tell which country a line is in, and whether it is the expected one.

    `seen` says how old that is: a device that is switched off stays where it was. subscriber_country_history has the countries before.

    `entered` comes from the locations that the network's bridge pushes, which not every network does. Where its newest entry is of another
    country than the registration, there is none.
    """
    code, seen = last_seen_network(line)
    country = None if code is None else network_country(f"{code[0]:03d}", str(code[1]))
    entries = await read_country_history(ctx, line, 2)
    entry = entries[0] if entries and entries[0].country == country else None
    expected = params.expected_country
    data: CountryPresence = {
        "iccid": line.iccid,
        "presence": presence_state(code, country, expected),
        "country": country,
        "mcc": None if code is None else f"{code[0]:03d}",
        "mnc": None if code is None else f"{code[1]:02d}",
        "seen": None if seen is None else rfc3339_utc(seen),
        "expected": expected,
        "matches": None if expected is None or country is None else country == expected,
        "entered": None if entry is None else rfc3339_utc(entry.occurred_at),
        "came_from": entries[1].country if entry is not None and len(entries) > 1 else None,
    }
    return make_finding(data, now=ctx.now, sampled=1, of=1, method=PRESENCE_METHOD)


def last_seen_network(line: Line) -> tuple[NetworkCode | None, float | None]:
    """Network and time of the last registration; without a registration, the network that `line` names."""
    info = line.row.get("networkInfo", {})
    code = network_code(info.get("lastMcc"), info.get("lastMnc"))
    if code is not None:
        return code, wire_seconds(info.get("time"))
    return network_code(line.row.get("lastMcc"), line.row.get("lastMnc")), None


def presence_state(code: NetworkCode | None, country: str | None, expected: str | None) -> PresenceState:
    if code is None:
        return "never_seen"
    if country is None:
        return "unknown_country"
    if expected is None:
        return "seen"
    return "as_expected" if country == expected else "elsewhere"
