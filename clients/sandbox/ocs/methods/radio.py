"""What a line does on the air: its speed, its steering, its green zone, messages to it."""

import re
from string import ascii_letters
from string import digits as decimal_digits

from clients.sandbox.ocs.entities import UNLIMITED, Refused, Token
from clients.sandbox.ocs.params import Fields, digits, digits_or_number, exactly_one, integer, one_of, refuse, text
from clients.sandbox.ocs.resolve import alive, find_line, flat_line
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import NOTHING

SPEEDS = (32, 64, 128, 256, 384, 512, 1024, 2048, 3072, 5120, 7680, 10240, 20480, 51200, 102400)
LIMITS = (*(f"KB_{speed}" for speed in SPEEDS), UNLIMITED)
IMPOSSIBLE, STEERING_ERROR = 14, 16
ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")
GSM = frozenset(ascii_letters + decimal_digits + "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./:;<=>?¡ÄÖÑÜ§¿äöñüà")
GSM_TWICE = frozenset("^{}\\[~]|€")
LONGEST_GSM, LONGEST_UNICODE = 160, 70
LONGEST_WORD, LONGEST_NUMBER = 11, 15


def hlr_set_bitrate(world: World, caller: Token, params: object) -> object:
    """Cap a line's speed."""
    fields = Fields(params)
    limit, imsi = fields.need("limit", one_of(LIMITS)), fields.need("imsi", digits)
    fields.done()
    line = alive(find_line(world, caller, "imsi", imsi))
    line.bitrate, line.throttled = limit, False
    return NOTHING


def hlr_get_bitrate(world: World, caller: Token, params: object) -> object:
    """A line's speed, as a bare string."""
    fields = Fields(params)
    imsi = fields.need("imsi", digits)
    fields.done()
    return find_line(world, caller, "imsi", imsi).bitrate


def push_steering_to_subs(world: World, caller: Token, params: object) -> object:
    """Send the preferred networks of the current country to the card."""
    line = alive(flat_line(world, caller, params))
    if line.sighting is None:
        raise Refused(IMPOSSIBLE, "the current country of the subscriber is not known")
    if line.steering_list_id is None and world.accounts[line.account_id].steering_list_id is None:
        raise Refused(STEERING_ERROR, "neither the subscriber nor its account has a steering list")
    return NOTHING


def reset_subs_gz_counter(world: World, caller: Token, params: object) -> object:
    """Begin the green zone's volume anew."""
    line = flat_line(world, caller, params)
    line.green_bytes, line.green_reset = 0, world.now
    return NOTHING


def send_mt_sms(world: World, caller: Token, params: object) -> object:
    """Send a message to a line. Choice: only an active line can take one."""
    fields = Fields(params)
    name = exactly_one(fields, ("imsi", "msisdn"))
    value, message = fields.need(name, digits_or_number), fields.need("text", text)
    fields.need("senderId", sender)
    fields.done()
    measure(message)
    line = alive(find_line(world, caller, name, value))
    if line.status != "ACTIVE":
        raise Refused(IMPOSSIBLE, "the subscriber is not active")
    return NOTHING


def sender(value: object, path: str) -> str:
    """A number, or a word of at most eleven characters."""
    found = str(integer(value, path)) if type(value) is int else text(value, path)
    if len(found) > (LONGEST_NUMBER if found.removeprefix("+").isdigit() else LONGEST_WORD):
        raise refuse(f"{path} is too long: at most {LONGEST_WORD} characters, or {LONGEST_NUMBER} digits")
    return found


def measure(message: str) -> None:
    """Refuse a text that does not fit one message. A literal backslash-u-XXXX is one character and makes all of it Unicode."""
    plain, escapes = ESCAPE.subn("", message)
    if escapes or not set(plain) <= GSM | GSM_TWICE:
        units, limit = len(plain.encode("utf-16-le")) // 2 + escapes, LONGEST_UNICODE
    else:
        units, limit = len(plain) + sum(letter in GSM_TWICE for letter in plain), LONGEST_GSM
    if units > limit:
        raise refuse(f"params.text has {units} characters of {limit}")
