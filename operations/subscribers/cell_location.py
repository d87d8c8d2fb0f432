"""The radio cell a line was in, and where that stands."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.failure import OcsNotFound
from clients.ocs.moment import read_time
from clients.ocs.wire.statistics import CallRecord
from clients.ocs.wire.subscriber import Location
from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from operations.services.network.utc_moment import shown
from operations.services.network.windows import WEEK, today
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

DATA_TYPE = 33
Radio = Literal["2G", "3G", "4G", "5G", "NB-IoT"]
RADIOS: Mapping[str, Radio] = {"2G": "2G", "3G": "3G", "4G": "4G", "5G": "5G", "NB": "NB-IoT"}


class Cell(TypedDict):
    """A radio cell."""

    radioType: Radio
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


class Seen(NamedTuple):
    """A cell and the time the line was in it."""

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
    seen = registered(line) or await used(ctx, line)
    if seen is None:
        raise NotFound("No radio cell of this line is known: it was not seen in a network", param="iccid", hint=EVENTS_HINT)
    cell = seen.cell
    place = await place_of(line, cell)
    latitude, longitude = place.get("latitude"), place.get("longitude")
    if latitude is None or longitude is None:
        raise unknown_place()
    return {
        "data": {
            "latitude": latitude,
            "longitude": longitude,
            "accuracy": place.get("accuracy"),
            "cell": cell,
            "observedAt": seen.at,
        }
    }


EVENTS_HINT = "subscriber_network_events shows whether it tried to register"


async def place_of(line: Line, cell: Cell) -> Location:
    """Where the cell stands, for all the network knows."""
    try:
        found = await line.upstream.ocs.subscriber.get_location_by_cell_id(
            radio=cell["radioType"], mcc=cell["mcc"], mnc=cell["mnc"], lac=cell["lac"], cell_id=cell["cellId"]
        )
    except OcsNotFound:
        raise unknown_place() from None
    return {} if found is None else found


def unknown_place() -> NotFound:
    """The cell is known, its place is not."""
    return NotFound(
        "Nobody knows where the last radio cell of this line stands", param="iccid", hint="get_subscriber_location may know more"
    )


def registered(line: Line) -> Seen | None:
    """The cell of the last registration."""
    info = line.row.get("networkInfo", {})
    cell = cell_of(info.get("lastRat"), info.get("lastMcc"), info.get("lastMnc"), info.get("lastLac"), info.get("lastCellId"))
    return None if cell is None else Seen(cell, utc(info.get("time")))


async def used(ctx: Ctx, line: Line) -> Seen | None:
    """The cell of the newest data session of the last seven days."""
    last = today(ctx.now)
    usage = await line.upstream.ocs.statistics.usage_over_period(line.subscriber_id, last - timedelta(days=WEEK - 1), last)
    days = [day for row in usage.get("usages", []) for day in row.get("subsPeriodUsages", [])]
    records = [record for day in days for record in day.get("subsDailyUsages", []) if record.get("usageType") == DATA_TYPE]
    newest = sorted(records, key=used_at, reverse=True)
    return next((seen for seen in map(seen_in, newest) if seen is not None), None)


def used_at(record: CallRecord) -> str:
    """When it was used; the wire's times sort as they are written."""
    return record.get("usageDateUtc", "")


def seen_in(record: CallRecord) -> Seen | None:
    """The cell that a record names."""
    cell = cell_of(record.get("rat"), record.get("mcc"), record.get("mnc"), record.get("lac"), record.get("cellId"))
    return None if cell is None else Seen(cell, utc(record.get("usageDateUtc")))


def cell_of(rat: object, mcc: object, mnc: object, lac: object, cell: object) -> Cell | None:
    """The tuple, unless a part that it cannot be without is missing."""
    country, network, area = whole(mcc), whole(mnc), whole(lac)
    if not country or network is None or area is None:
        return None
    return {"radioType": radio_of(rat), "mcc": country, "mnc": network, "lac": area, "cellId": whole(cell)}


def whole(value: object) -> int | None:
    """A number, also where a server writes it as a string."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:18])
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def radio_of(rat: object) -> Radio:
    """From words such as "4G - LTE". Choice: what names no generation counts as 4G, which most networks are."""
    return RADIOS.get(rat.strip()[:2].upper(), "4G") if isinstance(rat, str) else "4G"


def utc(time: str | None) -> str | None:
    """The wire's time as answers write it."""
    try:
        return None if time is None else shown(read_time(time))
    except ValueError:
        return None
