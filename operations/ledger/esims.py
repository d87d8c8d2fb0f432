"""eSIMs: profiles of test plans (they look real, install nowhere and belong to no network: docs/security.md), what the charging system
said of an eSIM that it drew, and the text and the picture that install one.
"""

from io import BytesIO
from typing import Literal, NamedTuple, NotRequired

import anyio.to_thread
import orjson
from typing_extensions import TypedDict

from clients.ocs.subscribers import Sim
from operations.plans import Plan
from registry.ids import BASE32_ALPHABET, Ids
from storage.events import NewEvent
from storage.intents import IntentResult
from storage.issuance import DrawnSim
from storage.sealing import Keyring, esim_field

TEST_SMDP = "smdp.test.invalid"
TEST_ICCID_ISSUER = "8999"
TEST_ICCID_DIGITS = 14  # with issuer and check digit the 19 digits of ITU-T E.118


class EsimProfile(NamedTuple):
    """One SIM profile. All but the ICCID is a secret."""

    iccid: str
    activation_code: str | None
    smdp_address: str | None
    matching_id: str | None


class Esim(TypedDict):
    """A SIM profile to download. Whoever holds the activation code can install it: treat it as a secret.

    A list without `activation_codes` leaves out what installs it.
    """

    iccid: str
    activation_code: NotRequired[str | None]
    qr_code: NotRequired[str | None]
    smdp_address: str | None
    matching_id: NotRequired[str | None]


def luhn_digit(digits: str) -> str:
    """The check digit behind `digits`, by ISO/IEC 7812-1 annex B."""
    total = 0
    for position, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 if position % 2 == 0 else 1)
        total += doubled - 9 if doubled > 9 else doubled
    return str(-total % 10)


def new_test_esim_profile(ids: Ids) -> EsimProfile:
    """A new profile for a test plan: 14 random digits, and a matching id of 80 random bits."""
    drawn = ids.bytes(17)
    # 56 bits over 10^14: the remainder's bias is below 2^-9 and only moves collisions.
    digits = TEST_ICCID_ISSUER + str(int.from_bytes(drawn[:7]) % 10**TEST_ICCID_DIGITS).zfill(TEST_ICCID_DIGITS)
    number = int.from_bytes(drawn[7:])
    code = "".join(BASE32_ALPHABET[number >> shift & 31] for shift in range(75, -1, -5)).upper()
    matching = f"TEST-{code[:4]}-{code[4:8]}-{code[8:12]}-{code[12:]}"
    return EsimProfile(digits + luhn_digit(digits), f"LPA:1${TEST_SMDP}${matching}", TEST_SMDP, matching)


def seal_esim_profile(profile: EsimProfile, *, keyring: Keyring, organisation: str, intent: str) -> str:
    """The secret part of `profile`, sealed for its `organisation` and bound to its `intent`."""
    secret = orjson.dumps([profile.activation_code, profile.smdp_address, profile.matching_id]).decode()
    return keyring.seal(secret, org_id=organisation, field=esim_field(intent))


def open_esim_profile(iccid: str, sealed: str, *, keyring: Keyring, organisation: str, intent: str) -> EsimProfile:
    """The profile that seal_esim_profile sealed for `intent`; raises what `keyring` raises where it cannot be opened."""
    secret: list[str | None] = orjson.loads(keyring.open(sealed, org_id=organisation, field=esim_field(intent)))
    return EsimProfile(iccid, *secret)


def render_esim_profile(profile: EsimProfile) -> Esim:
    """`profile` as its owner sees it; the QR code shows the activation code itself."""
    return {
        "iccid": profile.iccid,
        "activation_code": profile.activation_code,
        "qr_code": profile.activation_code,
        "smdp_address": profile.smdp_address,
        "matching_id": profile.matching_id,
    }


class DrawnEsim(NamedTuple):
    """All but the ICCID and the numbers is a secret of whoever installs it."""

    iccid: str
    smdp: str | None
    code: str | None
    qr: str | None
    subscriber_id: int | None
    sim_id: int | None
    package_id: int | None
    name: str | None

    @property
    def drawn(self) -> DrawnSim:
        """What the ledger keeps of it."""
        return DrawnSim(self.iccid, self.subscriber_id, self.sim_id, self.package_id)

    @property
    def profile(self) -> EsimProfile:
        """What an intent keeps of it."""
        return EsimProfile(self.iccid, self.qr, self.smdp, self.code)


def lpa_text(smdp: str | None, code: str | None) -> str | None:
    """The text of a QR code (SGP.22 4.1) of a server and an activation `code`; None where one of them is missing."""
    return f"LPA:1${smdp}${code}" if smdp and code else None


def phone_lpa_text(code: str | None, smdp: str | None, matching: str | None) -> str | None:
    """The text that a phone takes: `code`, or where the charging system put something else there, one made of `smdp` and `matching`."""
    return code if code is not None and code.startswith("LPA:") else lpa_text(smdp, matching)


def esim_from_line(iccid: str, sim: Sim, *, subscriber_id: int, package_id: int) -> DrawnEsim:
    """The eSIM as it was read of the line with `iccid` that turned out to be the one that was drawn."""
    smdp, code = sim.get("smdpServer"), sim.get("activationCode")
    return DrawnEsim(
        iccid=iccid,
        smdp=smdp,
        code=code,
        qr=lpa_text(smdp, code),
        subscriber_id=subscriber_id,
        sim_id=sim.get("id"),
        package_id=package_id,
        name=None,
    )


class IssuedTestEsim(NamedTuple):
    """An eSIM in the open, as it is kept, and the event that tells of it."""

    profile: EsimProfile
    kept: IntentResult
    event: NewEvent


def issue_test_esim(plan: Plan, *, intent: str, organisation: str, now: float, ids: Ids, keyring: Keyring) -> IssuedTestEsim:
    """A test eSIM of `plan` for `intent`, with its event; it touches no network and belongs to nobody. `now`: Unix seconds."""
    profile = new_test_esim_profile(ids)
    sealed = seal_esim_profile(profile, keyring=keyring, organisation=organisation, intent=intent)
    kept = IntentResult(plan["id"], orjson.dumps(plan).decode(), 0, profile.iccid, sealed)
    # The event names the SIM, and leaves its activation code to the API.
    data = orjson.dumps({"intent": intent, "iccid": kept.iccid, "plan": kept.plan_id}).decode()
    event = NewEvent(ids.new("evt_"), organisation, intent, "esim.issued", kept.livemode, data, f"issued|{intent}", int(now))
    return IssuedTestEsim(profile, kept, event)


QR_TEXT_LIMIT = 500  # far more than an activation code has (SGP.22 4.1: 255), and far less than a picture can take


def fits_qr_code(text: str) -> bool:
    """Whether `text` is of a length that a phone's camera can read from a screen as a QR code."""
    return 0 < len(text) <= QR_TEXT_LIMIT


async def qr_picture(text: str, format: Literal["svg", "png"]) -> bytes:
    """`text` as a QR code on white, drawn in a thread: one takes as long as ten calls."""
    return await anyio.to_thread.run_sync(draw_qr_picture, text, format)


def draw_qr_picture(text: str, format: Literal["svg", "png"]) -> bytes:
    """With the quiet zone that scanners need (ISO/IEC 18004)."""
    import segno  # only where a code is drawn

    buffer = BytesIO()
    segno.make_qr(text, error="m").save(buffer, kind=format, scale=8, border=4, light="white")
    return buffer.getvalue()
