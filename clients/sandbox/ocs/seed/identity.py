"""The numbers of a SIM: ICCID, IMSI, EID, phone number and what unlocks it. All invented, all deterministic."""

from clients.sandbox.ocs.dice import Random

CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
ISSUER = "8988303"  # spec examples use this range
SERIALS = 900_000
"""Line ids begin above it: the serial number of a SIM is the rest."""


def luhn(body: str) -> str:
    """The check digit of a body (ITU-T E.118)."""
    doubled = (int(digit) * (2 - place % 2) for place, digit in enumerate(reversed(body)))
    return str(-sum(value // 10 + value % 10 for value in doubled) % 10)


def iccid(sponsor_prefix: int, serial: int) -> str:
    """19 digits: issuer, two digits of the sponsor, serial number, check digit."""
    body = f"{ISSUER}{sponsor_prefix % 100:02d}{serial:09d}"
    return body + luhn(body)


def imsi(sponsor_prefix: int, serial: int) -> str:
    """15 digits: the sponsor's prefix and a serial number."""
    return f"{sponsor_prefix}{serial:010d}"


def eid(chance: Random, serial: int) -> str:
    """32 digits whose remainder by 97 is 1 (SGP.29)."""
    body = f"89049032{chance.randrange(10**10):010d}{serial:012d}"
    return f"{body}{98 - int(body) * 100 % 97:02d}"


def own_number(line_id: int) -> str:
    """The internal number of a line, in a range of no country."""
    return f"88239{line_id:08d}"


def real_number(chance: Random, line_id: int) -> str:
    """A number that was assigned; the line's id in it keeps it unique."""
    return f"47590{chance.randrange(10)}{line_id:06d}"


def digits(chance: Random, length: int) -> str:
    """A PIN or PUK."""
    return f"{chance.randrange(10**length):0{length}d}"


def activation_code(chance: Random, serial: int) -> str:
    """What the provider's server knows the profile by; the serial number keeps it unique."""
    letters = "".join(chance.choices(CODE_LETTERS, k=14))
    return f"K2-{letters[:7]}-{letters[7:]}{serial:X}"
