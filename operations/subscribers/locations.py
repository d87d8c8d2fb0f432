"""Where a line was seen: its position, the radio cell it was in last, and the countries it came into."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.subscribers import Location
from operations.deps import Ctx
from operations.times import WEEK_DAYS, utc_time_text, utc_today
from operations.upstream.lines import Line, LineRef, own_line, read_country_history
from operations.upstream.paging import Data
from operations.upstream.whereabouts import LineWhereabouts, line_whereabouts
from registry.clock import rfc3339_utc
from registry.errors import NotFound, OcsError, OcsNotFound
from registry.operation import Example, operation

LOCATION_UNKNOWN_CODE = 14


@operation(
    "GET",
    "/v1/subscribers/{iccid}/location",
    upstream=True,
    operator=True,
    title="Get location",
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Where is this tracker?",
            {"iccid": "8988303700000100286"},
            {"data": {"latitude": 59.91, "longitude": 10.75, "accuracy": 300, "dateTime": "2027-01-15T09:41:07"}},
        )
    ],
)
async def get_subscriber_location(ctx: Ctx, params: LineRef, line: Line) -> Data[Location | None]:
    """Get where a line was seen last, by its radio cell; accuracy in metres.

    Null when it was never used or its cell is not known. `dateTime` is UTC.
    """
    try:
        return {"data": await line.upstream.ocs.subscriber.get_location(line.subscriber_id)}
    except OcsError as refusal:
        # Choice: the wire names no code for a line that was never seen; both that it may be say so.
        if isinstance(refusal, OcsNotFound) or refusal.ocs_code == LOCATION_UNKNOWN_CODE:
            return {"data": None}
        raise


DATA_USAGE_TYPE = 33
RadioType = Literal["2G", "3G", "4G", "5G", "NB-IoT"]
RADIO_TYPES: Mapping[str, RadioType] = {"2G": "2G", "3G": "3G", "4G": "4G", "5G": "5G", "NB": "NB-IoT"}


class Cell(TypedDict):
    """A radio cell."""

    radioType: RadioType
    mcc: int
    mnc: int
    lac: int
    cellId: Annotated[int | None, Field(description="Without it the position is coarse")]


class CellLocation(TypedDict):
    """Where a cell stands, and when the line was seen in it."""

    latitude: Annotated[float, Field(description="Degrees")]
    longitude: Annotated[float, Field(description="Degrees")]
    accuracy: Annotated[int | None, Field(description="Metres; half of the positions lie within")]
    cell: Cell
    observedAt: Annotated[str | None, Field(description="RFC 3339, UTC")]


class CellSighting(NamedTuple):
    """A cell, and when the line was in it: RFC 3339, or None."""

    cell: Cell
    at: str | None


@operation(
    "GET",
    "/v1/subscribers/{iccid}/cell-location",
    upstream=True,
    title="Get location of last cell",
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Which cell was this line in last, and where is that?",
            {"iccid": "8988303700000100286"},
            {
                "data": {
                    "latitude": 59.9,
                    "longitude": 10.7,
                    "accuracy": 500,
                    "cell": {"radioType": "4G", "mcc": 242, "mnc": 1, "lac": 3001, "cellId": 70012},
                    "observedAt": "2027-01-15T09:41:07Z",
                }
            },
        )
    ],
)
async def get_subscriber_location_by_cell_id(ctx: Ctx, params: LineRef, line: Line) -> Data[CellLocation]:
    """Get the last radio cell of a line and where it stands.

    404 when no cell is known. get_subscriber_location is the shorter way.

    The cell comes from the line's last registration, else from its newest data session of the last seven days.
    """
    info = line.row.get("networkInfo", {})
    registered = read_cell(info.get("lastRat"), info.get("lastMcc"), info.get("lastMnc"), info.get("lastLac"), info.get("lastCellId"))
    seen = await used_cell(ctx, line) if registered is None else CellSighting(registered, utc_time_text(info.get("time")))
    if seen is None:
        raise NotFound("No radio cell of this line is known: it was not seen in a network", param="iccid", hint=NO_CELL_HINT)
    cell, place = seen.cell, None
    with suppress(OcsNotFound):
        place = await line.upstream.ocs.subscriber.get_location_by_cell_id(
            radio=cell["radioType"], mcc=cell["mcc"], mnc=cell["mnc"], lac=cell["lac"], cell_id=cell["cellId"]
        )
    if place is None or (latitude := place.get("latitude")) is None or (longitude := place.get("longitude")) is None:
        raise NotFound("Nobody knows where the last radio cell of this line stands", param="iccid", hint=NO_CELL_PLACE_HINT)
    return {
        "data": {
            "latitude": latitude,
            "longitude": longitude,
            "accuracy": place.get("accuracy"),
            "cell": cell,
            "observedAt": seen.at,
        }
    }


NO_CELL_HINT = "subscriber_network_events shows whether it tried to register"
NO_CELL_PLACE_HINT = "get_subscriber_location may know more"


async def used_cell(ctx: Ctx, line: Line) -> CellSighting | None:
    """The cell of the newest data session of the last seven days. Waits for the network."""
    last = utc_today(ctx.now)
    usage = await line.upstream.ocs.statistics.usage_over_period(line.subscriber_id, last - timedelta(days=WEEK_DAYS - 1), last)
    days = [day for row in usage.get("usages", []) for day in row.get("subsPeriodUsages", [])]
    records = [record for day in days for record in day.get("subsDailyUsages", []) if record.get("usageType") == DATA_USAGE_TYPE]
    for record in sorted(records, key=lambda record: record.get("usageDateUtc", ""), reverse=True):  # such texts sort by time
        cell = read_cell(record.get("rat"), record.get("mcc"), record.get("mnc"), record.get("lac"), record.get("cellId"))
        if cell is not None:
            return CellSighting(cell, utc_time_text(record.get("usageDateUtc")))
    return None


def read_cell(rat: object, mcc: object, mnc: object, lac: object, cell: object) -> Cell | None:
    """The cell, or None where a part that it needs is missing."""
    country, network, area = read_whole_number(mcc), read_whole_number(mnc), read_whole_number(lac)
    if not country or network is None or area is None:
        return None
    # Choice: a text that names no generation counts as 4G, as most networks are.
    radio = RADIO_TYPES.get(rat.strip()[:2].upper(), "4G") if isinstance(rat, str) else "4G"
    return {"radioType": radio, "mcc": country, "mnc": network, "lac": area, "cellId": read_whole_number(cell)}


def read_whole_number(value: object) -> int | None:
    """A number, also where a server writes it as text; None otherwise."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:18])
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


class CountryHistoryQuery(LineRef):
    """Which line, and how far back."""

    limit: Annotated[int, Field(ge=1, le=50, description="Number of entries.")] = 20


class CountryEntered(TypedDict):
    """The line came into a country."""

    type: Literal["country.entered"]
    iccid: str
    country: str
    mcc: str
    mnc: str | None
    occurred_at: str


class CountryNow(TypedDict):
    """Where the line is."""

    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2; null: the network's code is of no single country")]
    source: Annotated[Literal["registration", "push"], Field(description="A registration is believed before a pushed location")]
    seen: Annotated[str | None, Field(description="RFC 3339, UTC; null: not told")]


class CountryHistory(TypedDict):
    """Newest first."""

    data: list[CountryEntered]
    now: Annotated[CountryNow | None, Field(description="Where it is, live; null: it was never seen")]


COUNTRY_ENTRY_EXAMPLE: CountryEntered = {
    "type": "country.entered",
    "iccid": "8988303700000100286",
    "country": "FR",
    "mcc": "208",
    "mnc": "01",
    "occurred_at": "2026-11-20T09:00:00Z",
}
COUNTRY_HISTORY_EXAMPLE: CountryHistory = {
    "data": [COUNTRY_ENTRY_EXAMPLE],
    "now": {"country": "FR", "source": "registration", "seen": "2026-11-21T18:30:00Z"},
}


@operation(
    "GET",
    "/v1/subscribers/{iccid}/country-history",
    title="List countries of a line",
    upstream=True,
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[Example("Where has this line been?", {"iccid": COUNTRY_ENTRY_EXAMPLE["iccid"], "limit": 5}, COUNTRY_HISTORY_EXAMPLE)],
)
async def subscriber_country_history(ctx: Ctx, params: CountryHistoryQuery, line: Line) -> CountryHistory:
    """List the countries a line came into, newest first.

    At most the last 50 entries are kept. Empty when no location was pushed yet.

    They come from the locations that the network's bridge pushes; `country` is the ISO 3166-1 alpha-2 code of the network's country.
    A location that arrives late is put where it belongs in time. A line that was moved to your account shows the countries it
    came into since then, none of its time with the former account. Entries older than 400 days are forgotten. Where the newest entry and
    `now` are of different countries, believe `now`: a registration that the charging system tells comes before a pushed location.
    """
    entries = await read_country_history(ctx, line, params.limit)
    return {
        "data": [
            {
                "type": "country.entered",
                "iccid": line.iccid,
                "country": entry.country,
                "mcc": entry.mcc,
                "mnc": entry.mnc,
                "occurred_at": rfc3339_utc(entry.occurred_at),
            }
            for entry in entries
        ],
        "now": country_now(line_whereabouts(line, entries[0] if entries else None)),
    }


def country_now(found: LineWhereabouts | None) -> CountryNow | None:
    if found is None:
        return None
    return {"country": found.country, "source": found.source, "seen": None if found.seen is None else rfc3339_utc(found.seen)}
