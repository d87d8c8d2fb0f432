"""What a line does on the air: its speed, steering, green zone and place, and messages to it."""

import re
from string import ascii_letters
from string import digits as decimal_digits

from simulators.network.entities import NOT_FOUND, NOT_POSSIBLE, UNLIMITED_BITRATE, NetworkRefusal, NetworkToken
from simulators.network.named_records import find_flat_line, find_line, require_living_line
from simulators.network.wire import (
    RequestFields,
    WireMembers,
    invalid_request,
    network_method,
    read_digits,
    read_digits_or_number,
    read_integer,
    read_one_of,
    read_signed,
    read_text,
    require_exactly_one,
    wire_moment,
)
from simulators.network.world import Country, World
from simulators.seeded_random import seeded_random

BITRATE_SPEEDS = (32, 64, 128, 256, 384, 512, 1024, 2048, 3072, 5120, 7680, 10240, 20480, 51200, 102400)
BITRATE_LIMITS = (*(f"KB_{speed}" for speed in BITRATE_SPEEDS), UNLIMITED_BITRATE)
STEERING_ERROR = 16
UNICODE_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")
GSM_LETTERS = frozenset(ascii_letters + decimal_digits + "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./:;<=>?¡ÄÖÑÜ§¿äöñüà")
GSM_DOUBLE_LETTERS = frozenset("^{}\\[~]|€")
GSM_MESSAGE_LIMIT = 160
UNICODE_MESSAGE_LIMIT = 70
SENDER_WORD_LIMIT = 11
SENDER_NUMBER_LIMIT = 15
RADIO_TYPES = ("2G", "3G", "4G", "5G", "NB-IoT", "NBIOT")
SPREAD_DEGREES = 0.4
COARSE_METRES = 15_000


@network_method("hlrSetBitrate")
def hlr_set_bitrate(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    limit, imsi = fields.need("limit", read_one_of(BITRATE_LIMITS)), fields.need("imsi", read_digits)
    fields.done()
    line = require_living_line(find_line(world, caller, "imsi", imsi))
    line.bitrate, line.throttled = limit, False


@network_method("hlrGetBitrate")
def hlr_get_bitrate(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """A line's speed, as a bare string."""
    imsi = fields.need("imsi", read_digits)
    fields.done()
    return find_line(world, caller, "imsi", imsi).bitrate


@network_method("pushSteeringToSubs")
def push_steering_to_subs(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """Refuses a line whose country is unknown (14) or that has no steering list (16). Sends nothing."""
    line = require_living_line(find_flat_line(world, caller, fields))
    if line.sighting is None:
        raise NetworkRefusal(NOT_POSSIBLE, "the current country of the subscriber is not known")
    if line.steering_list_id is None and world.accounts[line.account_id].steering_list_id is None:
        raise NetworkRefusal(STEERING_ERROR, "neither the subscriber nor its account has a steering list")


@network_method("resetSubsGzCounter")
def reset_subs_gz_counter(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    line = find_flat_line(world, caller, fields)
    line.green_bytes, line.green_reset = 0, world.now


@network_method("sendMtSms")
def send_mt_sms(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """Checks a message to a line; nothing is sent. Choice: only an active line can take one."""
    name = require_exactly_one(fields, ("imsi", "msisdn"))
    value, message = fields.need(name, read_digits_or_number), fields.need("text", read_text)
    fields.need("senderId", read_sender)
    fields.done()
    require_one_message(message)
    line = require_living_line(find_line(world, caller, name, value))
    if line.status != "ACTIVE":
        raise NetworkRefusal(NOT_POSSIBLE, "the subscriber is not active")


def read_sender(value: object, path: str) -> str:
    """A number, or a word of at most eleven characters."""
    found = str(read_integer(value, path)) if type(value) is int else read_text(value, path)
    if len(found) > (SENDER_NUMBER_LIMIT if found.removeprefix("+").isdigit() else SENDER_WORD_LIMIT):
        raise invalid_request(f"{path} is too long: at most {SENDER_WORD_LIMIT} characters, or {SENDER_NUMBER_LIMIT} digits")
    return found


def require_one_message(message: str) -> None:
    """Refuse a text that does not fit one message. A literal backslash-u-XXXX is one character and makes all of it Unicode."""
    plain, escapes = UNICODE_ESCAPE.subn("", message)
    if escapes or not set(plain) <= GSM_LETTERS | GSM_DOUBLE_LETTERS:
        units, limit = len(plain.encode("utf-16-le")) // 2 + escapes, UNICODE_MESSAGE_LIMIT
    else:
        units, limit = len(plain) + sum(letter in GSM_DOUBLE_LETTERS for letter in plain), GSM_MESSAGE_LIMIT
    if units > limit:
        raise invalid_request(f"params.text has {units} characters of {limit}")


@network_method("getSubscriberLocation", key="subscriberLocation")
def get_subscriber_location(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    line = find_flat_line(world, caller, fields)
    seen = line.sighting
    if seen is None:
        raise NetworkRefusal(NOT_FOUND, "the subscriber was never seen")
    place = cell_position(world, int(seen.mcc), int(seen.mnc), seen.lac, seen.cell_id)
    return {**place, "dateTime": wire_moment(seen.at)}


@network_method("getSubscriberLocationByCellId", key="subscriberLocation")
def get_subscriber_location_by_cell_id(world: World, _caller: NetworkToken, fields: RequestFields) -> object:
    """Where a cell is; without the cell's id, roughly where its area is."""
    fields.need("radioType", read_one_of(RADIO_TYPES))
    mcc, mnc, lac = fields.need("mcc", read_integer), fields.need("mnc", read_integer), fields.need("lac", read_integer)
    cell_id = fields.maybe("cellId", read_integer)
    fields.maybe("signalStrength", read_signed)
    fields.done()
    return cell_position(world, mcc, mnc, lac, cell_id)


def cell_position(world: World, mcc: int, mnc: int, lac: int, cell_id: int | None) -> WireMembers:
    """A place of its own for each cell, near the middle of its country; the same question gets the same answer."""
    country = _country_of_code(world, mcc, mnc)
    area = seeded_random(world.seed, "area", mcc, mnc, lac)
    latitude = country.latitude + area.uniform(-SPREAD_DEGREES, SPREAD_DEGREES)
    longitude = country.longitude + area.uniform(-SPREAD_DEGREES, SPREAD_DEGREES)
    accuracy = COARSE_METRES
    if cell_id is not None:
        cell = seeded_random(world.seed, "cell", mcc, mnc, lac, cell_id)
        latitude, longitude = latitude + cell.uniform(-0.02, 0.02), longitude + cell.uniform(-0.02, 0.02)
        accuracy = cell.choice((150, 300, 500, 900))
    return {"latitude": round(latitude, 6), "longitude": round(longitude, 6), "accuracy": accuracy}


def _country_of_code(world: World, mcc: int, mnc: int) -> Country:
    for network in world.networks.values():
        if any(int(code) == mcc and int(part) == mnc for code, part in network.codes):
            return world.countries[network.iso2]
    raise NetworkRefusal(NOT_FOUND, f"no network {mcc}-{mnc}")
