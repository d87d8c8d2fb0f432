"""Where a line or a cell is."""

from clients.sandbox.ocs.dice import dice
from clients.sandbox.ocs.entities import Refused, Token
from clients.sandbox.ocs.moments import stamp
from clients.sandbox.ocs.params import Fields, integer, one_of, signed
from clients.sandbox.ocs.places import Country
from clients.sandbox.ocs.resolve import NOT_FOUND, flat_line
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import Members

RADIO_TYPES = ("2G", "3G", "4G", "5G", "NB-IoT", "NBIOT")
SPREAD_DEGREES = 0.4
COARSE_METRES = 15_000


def get_subscriber_location(world: World, caller: Token, params: object) -> object:
    """Where a line was last seen."""
    line = flat_line(world, caller, params)
    seen = line.sighting
    if seen is None:
        raise Refused(NOT_FOUND, "the subscriber was never seen")
    place = position(world, int(seen.mcc), int(seen.mnc), seen.lac, seen.cell_id)
    return {**place, "dateTime": stamp(seen.at)}


def get_subscriber_location_by_cell_id(world: World, _caller: Token, params: object) -> object:
    """Where a cell is; without the cell's id, roughly where its area is."""
    fields = Fields(params)
    fields.need("radioType", one_of(RADIO_TYPES))
    mcc, mnc, lac = fields.need("mcc", integer), fields.need("mnc", integer), fields.need("lac", integer)
    cell_id = fields.maybe("cellId", integer)
    fields.maybe("signalStrength", signed)
    fields.done()
    return position(world, mcc, mnc, lac, cell_id)


def position(world: World, mcc: int, mnc: int, lac: int, cell_id: int | None) -> Members:
    """A place of its own for each cell, near the middle of its country; the same question gets the same answer."""
    country = country_of(world, mcc, mnc)
    area = dice(world.seed, "area", mcc, mnc, lac)
    latitude = country.latitude + area.uniform(-SPREAD_DEGREES, SPREAD_DEGREES)
    longitude = country.longitude + area.uniform(-SPREAD_DEGREES, SPREAD_DEGREES)
    accuracy = COARSE_METRES
    if cell_id is not None:
        cell = dice(world.seed, "cell", mcc, mnc, lac, cell_id)
        latitude, longitude = latitude + cell.uniform(-0.02, 0.02), longitude + cell.uniform(-0.02, 0.02)
        accuracy = cell.choice((150, 300, 500, 900))
    return {"latitude": round(latitude, 6), "longitude": round(longitude, 6), "accuracy": accuracy}


def country_of(world: World, mcc: int, mnc: int) -> Country:
    """The country of a network code."""
    for network in world.networks.values():
        if any(int(code) == mcc and int(part) == mnc for code, part in network.codes):
            return world.countries[network.iso2]
    raise Refused(NOT_FOUND, f"no network {mcc}-{mnc}")
