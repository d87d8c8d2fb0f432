"""Test eSIM profiles: they look real, install nowhere, and belong to no network (security.md 3.20)."""

from typing import NamedTuple

import orjson

from operations.connectivity.shapes import Esim
from registry.ids import ALPHABET, Ids
from storage.secrets.sealed_fields import esim_field
from storage.secrets.sealing import Keyring

SMDP = "smdp.test.invalid"
TEST_ISSUER = "8999"
RANDOM_DIGITS = 14  # with issuer and check digit the 19 digits of ITU-T E.118


class Profile(NamedTuple):
    """One SIM profile. All but the ICCID is a secret."""

    iccid: str
    activation_code: str | None
    smdp_address: str | None
    matching_id: str | None


def luhn_digit(digits: str) -> str:
    """The check digit that makes the digits pass ISO/IEC 7812-1 annex B."""
    total = 0
    for position, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 if position % 2 == 0 else 1)
        total += doubled - 9 if doubled > 9 else doubled
    return str(-total % 10)


def new_test_profile(ids: Ids) -> Profile:
    """A new profile for a test plan: 14 random digits, and a matching id of 80 random bits."""
    drawn = ids.bytes(17)
    # 56 bits over 10^14: the remainder's bias is below 2^-9 and only moves collisions.
    digits = TEST_ISSUER + str(int.from_bytes(drawn[:7]) % 10**RANDOM_DIGITS).zfill(RANDOM_DIGITS)
    number = int.from_bytes(drawn[7:])
    code = "".join(ALPHABET[number >> shift & 31] for shift in range(75, -1, -5)).upper()
    matching = f"TEST-{code[:4]}-{code[4:8]}-{code[8:12]}-{code[12:]}"
    return Profile(digits + luhn_digit(digits), f"LPA:1${SMDP}${matching}", SMDP, matching)


def seal_profile(profile: Profile, *, keyring: Keyring, organisation: str, intent: str) -> str:
    """The profile's secret part, bound to its intent."""
    secret = orjson.dumps([profile.activation_code, profile.smdp_address, profile.matching_id]).decode()
    return keyring.seal(secret, org_id=organisation, field=esim_field(intent))


def open_profile(iccid: str, sealed: str, *, keyring: Keyring, organisation: str, intent: str) -> Profile:
    """The profile that was sealed for this intent."""
    secret: list[str | None] = orjson.loads(keyring.open(sealed, org_id=organisation, field=esim_field(intent)))
    return Profile(iccid, *secret)


def esim_of(profile: Profile) -> Esim:
    """The profile as its owner sees it; the QR code shows the activation code itself."""
    return {
        "iccid": profile.iccid,
        "activation_code": profile.activation_code,
        "qr_code": profile.activation_code,
        "smdp_address": profile.smdp_address,
        "matching_id": profile.matching_id,
    }
