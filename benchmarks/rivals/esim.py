"""Test eSIMs and time-ordered ids, drawn as the service draws them."""

import secrets
import time
from typing import NamedTuple

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
PAIRS = [a + b for a in ALPHABET for b in ALPHABET]
SMDP = "smdp.test.invalid"


class Esim(NamedTuple):
    """One profile. The QR code shows the activation code itself."""

    iccid: str
    activation_code: str
    matching_id: str


def new_id(prefix: str) -> str:
    """48 bits of milliseconds and 80 random bits: rows of one moment land on one page of the index."""
    number = int(time.time() * 1000) << 80 | int.from_bytes(secrets.token_bytes(10))
    return prefix + "".join([PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


def new_esim() -> Esim:
    """Issuer 8999, 14 random digits, a check digit, and a matching id of 80 random bits."""
    drawn = secrets.token_bytes(17)
    digits = "8999" + str(int.from_bytes(drawn[:7]) % 10**14).zfill(14)
    number = int.from_bytes(drawn[7:])
    code = "".join([ALPHABET[number >> shift & 31] for shift in range(75, -1, -5)]).upper()
    matching = f"TEST-{code[:4]}-{code[4:8]}-{code[8:12]}-{code[12:]}"
    return Esim(digits + luhn(digits), f"LPA:1${SMDP}${matching}", matching)


def luhn(digits: str) -> str:
    """ISO/IEC 7812-1 annex B."""
    total = 0
    for position, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 if position % 2 == 0 else 1)
        total += doubled - 9 if doubled > 9 else doubled
    return str(-total % 10)
