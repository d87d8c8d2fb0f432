"""Types and rules of input that several operations share: lists, identifiers, names, countries, e-mail addresses, web addresses."""

import re
from typing import Annotated, Generic, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue
from typing_extensions import TypedDict

from registry.characters import MISLEADING_CHARACTERS
from registry.model import Input

ListItem = TypeVar("ListItem")

PageLimit = Annotated[int, Field(ge=1, le=100, description="Page size.")]
StartingAfter = Annotated[str | None, Field(max_length=64, description="Last id of the page before.")]
# ITU-T E.118; 18 to 20 digits occur in practice, the check digit is sometimes dropped.
Iccid = Annotated[str, Field(pattern=r"^89[0-9]{16,20}$", description="SIM number, 18-22 digits.")]
Mcc = Annotated[str, Field(pattern=r"^[0-9]{3}$", description="Mobile country code (ITU-T E.212), 3 digits.")]
Mnc = Annotated[str, Field(pattern=r"^[0-9]{2,3}$", description="Mobile network code (ITU-T E.212), 2 or 3 digits.")]


class ListPage(Input):
    """Which part of the list."""

    limit: PageLimit = 20
    starting_after: StartingAfter = None


class ListOf(TypedDict, Generic[ListItem]):
    """A page of a list; `has_more` says that `starting_after` the last id gives more."""

    object: Literal["list"]
    data: list[ListItem]
    has_more: bool


def list_page(rows: list[ListItem], limit: int) -> ListOf[ListItem]:
    """A page of rows that were read with one more than the limit."""
    return {"object": "list", "data": rows[:limit], "has_more": len(rows) > limit}


def without_default(schema: dict[str, JsonValue]) -> None:
    """For `json_schema_extra`: no caller is to send the default; a field that is left out is left alone, and null is none."""
    del schema["default"]


LARGEST_ID = 9_007_199_254_740_991


UpstreamId = Annotated[int, Field(ge=1, le=9007199254740991)]


def zero_padded(digits: int) -> BeforeValidator:
    """Codes that arrive as numbers get their leading zeros back."""
    return BeforeValidator(lambda value: str(value).zfill(digits) if isinstance(value, int) and not isinstance(value, bool) else value)


Currency = Literal["USD", "EUR", "GBP", "CHF"]
FULL_BPS = 10_000
"""Basis points in a whole."""


def divide_half_up(number: int, by: int) -> int:
    """`number` divided by `by`, both in whole units, rounded half-up."""
    return (2 * number + by) // (2 * by)


def share_of(amount: int, bps: int) -> int:
    """`bps` basis points of `amount` minor units, rounded half-up."""
    return divide_half_up(amount * bps, FULL_BPS)


def plain_line(text: str) -> str:
    """A name that other people are shown: `text` without the space around it; ValueError with the rule where it is empty or misleading."""
    if MISLEADING_CHARACTERS.search(text):
        raise ValueError("must be one line without control characters and without marks that change the direction of text or are not seen")
    if not any(c.isprintable() and not c.isspace() for c in text):
        raise ValueError("must hold more than space")
    return text.strip()


# ISO 3166-1 alpha-2, and XK for Kosovo, which ISO leaves to its users.
_ASSIGNED_COUNTRIES = """
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH
    CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN
    GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI
    LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM
    PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD
    TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW
"""
COUNTRY_CODES = frozenset(_ASSIGNED_COUNTRIES.split())


def check_country_code(code: str) -> str:
    """`code`, where it is one of COUNTRY_CODES; ValueError otherwise."""
    if code not in COUNTRY_CODES:
        raise ValueError("no country has this code" + ("; the United Kingdom is GB" if code == "UK" else ""))
    return code


CountryOfRegistration = Annotated[
    str,
    Field(pattern=r"^[A-Z]{2}$", description='Country you are registered in, ISO 3166-1 alpha-2: "NO".'),
    AfterValidator(check_country_code),
]


LONGEST_EMAIL = 254  # RFC 5321 section 4.5.3.1.3: a path has 256 characters, two of them the angle brackets
# "Valid e-mail address" of the WHATWG: https://html.spec.whatwg.org/multipage/input.html#valid-e-mail-address, so that what a browser's
# form lets through is not refused here. It is a wilful violation of RFC 5322: no quoted local parts, no comments, no literal addresses.
_VALID_EMAIL = re.compile(
    r"[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+"
    r"@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*"
)
EMAIL_RULE = "must be one e-mail address such as ada@example.com, without a name and of at most 254 characters"


def is_email(text: str) -> bool:
    """Whether `text` is spelled like an e-mail address that mail can be sent to."""
    return len(text) <= LONGEST_EMAIL and _VALID_EMAIL.fullmatch(text) is not None


def check_email(text: str) -> str:
    """`text`, where it is an e-mail address; ValueError with the rule otherwise."""
    if not is_email(text):
        raise ValueError(EMAIL_RULE)
    return text


def normal_email(address: str) -> str:
    """The spelling under which an e-mail address is known, and to which its mail is sent.

    Choice: lower case in whole. Servers that tell `Ada@` from `ada@` are none known; if mail went to the spelling that was typed, there
    somebody with the one could become the person with the other.
    """
    return address.lower()


def mailbox_of(address: str) -> str:
    """The mailbox that mail to `address` arrives in: without what stands behind a plus sign, which the same person reads."""
    name, _, domain = normal_email(address).partition("@")
    return f"{name.partition('+')[0]}@{domain}"


Email = Annotated[
    str, Field(min_length=3, max_length=LONGEST_EMAIL, description="E-mail address, at most 254 characters."), AfterValidator(check_email)
]


# Letters of any script; no ASCII sign but . - and _, for one program ends a name at it and another does not.
_WEB_HOST = re.compile(r"[0-9a-f.]*:[0-9a-f:.]+|[^\W_][^\x00-,/:-@\[-^`{-\x7f]*")


def check_web_address(address: str, *, what: str, such_as: str, strict: bool) -> str:
    """`address`, where it names a host, and no user name or password; ValueError otherwise, which repeats nothing of it.

    `strict`: people are sent there, so every program must read the same host. `what` and `such_as` name it in the message.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    else:
        if parts.username is not None or parts.password is not None:
            raise ValueError(f"{what} holds no user name and no password")
    if not host or port == 0 or not address.isprintable() or (strict and _WEB_HOST.fullmatch(host) is None):
        raise ValueError(f"must be an {such_as}")
    return address
