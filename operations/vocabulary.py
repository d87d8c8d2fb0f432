"""What several operations share: lists, identifiers, names, countries and mobile networks, currencies, e-mail and web addresses."""

import re
from collections.abc import Mapping
from typing import Annotated, Generic, Literal, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue
from typing_extensions import TypedDict

from registry.characters import MISLEADING_CHARACTERS
from registry.errors import BadRequest
from registry.operation import Input

ListItem = TypeVar("ListItem")
Shown = TypeVar("Shown", bound=Mapping[str, object])

PageLimit = Annotated[int, Field(ge=1, le=100, description="Page size.")]
StartingAfter = Annotated[str | None, Field(max_length=64, description="Last id of the page before.")]
# ITU-T E.118; 18 to 20 digits occur in practice, the check digit is sometimes dropped.
Iccid = Annotated[str, Field(pattern=r"^89[0-9]{16,20}$", description="SIM number, 18-22 digits.")]
LineTag = Annotated[str, Field(pattern=r"^[a-z0-9._-]{1,40}$", description="1-40 of a-z, 0-9, dot, underscore and hyphen.")]
Mcc = Annotated[str, Field(pattern=r"^[0-9]{3}$", description="Mobile country code (ITU-T E.212), 3 digits.")]
Mnc = Annotated[str, Field(pattern=r"^[0-9]{2,3}$", description="Mobile network code (ITU-T E.212), 2 or 3 digits.")]


class ListPage(Input):
    """Which part of the list."""

    limit: PageLimit = 20
    starting_after: StartingAfter = None


def render_fields(row: object, shown: type[Shown], **own: object) -> Shown:
    """`row` with the members of `shown`, in their order: those of `own`, else its fields with the same names."""
    return cast(Shown, {name: own[name] if name in own else getattr(row, name) for name in shown.__annotations__})


class LongListPage(ListPage):
    """Which part of a list of which most callers want all."""

    limit: PageLimit = 100


class ListOf(TypedDict, Generic[ListItem]):
    """A page of a list; `has_more` says that `starting_after` the last id gives more."""

    object: Literal["list"]
    data: list[ListItem]
    has_more: bool


def list_page(rows: list[ListItem], limit: int) -> ListOf[ListItem]:
    """The page of `limit` rows; `rows` were read with one more, which says whether there are others."""
    return {"object": "list", "data": rows[:limit], "has_more": len(rows) > limit}


def unknown_last_id(thing: str) -> BadRequest:
    """The refusal of a `starting_after` that names no `thing` (a singular noun) of the caller's."""
    hint = f"Give the `id` of the last {thing} of the page before, or leave it out for the newest"
    return BadRequest(f"starting_after: you have no {thing} with this id", param="starting_after", hint=hint)


def without_default(schema: dict[str, JsonValue]) -> None:
    """For `json_schema_extra`: no caller is to send the default; a field that is left out is left alone, and null is none."""
    del schema["default"]


LARGEST_ID = 9_007_199_254_740_991
UpstreamId = Annotated[int, Field(ge=1, le=9007199254740991)]


def zero_padded(digits: int) -> BeforeValidator:
    """Gives codes of so many `digits` that arrive as numbers their leading zeros back."""
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
    return check_legible(text).strip()


UPSTREAM_TEXT_LENGTH = 80
"""Choice: a report names networks and statuses, and none of these has a longer name."""


def upstream_text(text: object, longest: int = UPSTREAM_TEXT_LENGTH) -> str:
    """One line of `text` without invisible characters, at most `longest`; empty where it is no text."""
    shown = MISLEADING_CHARACTERS.sub("", text).strip() if isinstance(text, str) else ""
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def check_legible(text: str) -> str:
    """`text`, where a reader sees something of it; ValueError otherwise."""
    if not any(c.isprintable() and not c.isspace() for c in text):
        raise ValueError("must hold more than space")
    return text


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


# Which country a mobile network stands in: mobile country codes (ITU-T E.212) to ISO 3166-1 alpha-2. Left out, so that they answer None:
# codes of no country (001, 901, 902, 991, 999), and codes that span several where the network is not known either. 289 is in use but was
# never assigned.
MCC_TABLE = """
    202 GR  204 NL  206 BE  208 FR  212 MC  213 AD  214 ES  216 HU  218 BA  219 HR  220 RS  221 XK  222 IT  225 VA  226 RO  228 CH
    230 CZ  231 SK  232 AT  234 GB  235 GB  238 DK  240 SE  242 NO  244 FI  246 LT  247 LV  248 EE  250 RU  255 UA  257 BY  259 MD
    260 PL  262 DE  266 GI  268 PT  270 LU  272 IE  274 IS  276 AL  278 MT  280 CY  282 GE  283 AM  284 BG  286 TR  288 FO  290 GL
    292 SM  293 SI  294 MK  295 LI  297 ME
    302 CA  308 PM  310 US  311 US  312 US  313 US  314 US  315 US  316 US  330 PR  332 VI  334 MX  338 JM  342 BB  344 AG  346 KY
    348 VG  350 BM  352 GD  354 MS  356 KN  358 LC  360 VC  363 AW  364 BS  365 AI  366 DM  368 CU  370 DO  372 HT  374 TT  376 TC
    400 AZ  401 KZ  402 BT  404 IN  405 IN  406 IN  410 PK  412 AF  413 LK  414 MM  415 LB  416 JO  417 SY  418 IQ  419 KW  420 SA
    421 YE  422 OM  424 AE  425 IL  426 BH  427 QA  428 MN  429 NP  430 AE  431 AE  432 IR  434 UZ  436 TJ  437 KG  438 TM  440 JP
    441 JP  450 KR  452 VN  454 HK  455 MO  456 KH  457 LA  460 CN  461 CN  466 TW  467 KP  470 BD  472 MV
    502 MY  505 AU  510 ID  514 TL  515 PH  520 TH  525 SG  528 BN  530 NZ  534 MP  535 GU  536 NR  537 PG  539 TO  540 SB  541 VU
    542 FJ  543 WF  544 AS  545 KI  546 NC  547 PF  548 CK  549 WS  550 FM  551 MH  552 PW  553 TV  554 TK  555 NU
    602 EG  603 DZ  604 MA  605 TN  606 LY  607 GM  608 SN  609 MR  610 ML  611 GN  612 CI  613 BF  614 NE  615 TG  616 BJ  617 MU
    618 LR  619 SL  620 GH  621 NG  622 TD  623 CF  624 CM  625 CV  626 ST  627 GQ  628 GA  629 CG  630 CD  631 AO  632 GW  633 SC
    634 SD  635 RW  636 ET  637 SO  638 DJ  639 KE  640 TZ  641 UG  642 BI  643 MZ  645 ZM  646 MG  648 ZW  649 NA  650 MW  651 LS
    652 BW  653 SZ  654 KM  655 ZA  657 ER  658 SH  659 SS
    702 BZ  704 GT  706 SV  708 HN  710 NI  712 CR  714 PA  716 PE  722 AR  724 BR  730 CL  732 CO  734 VE  736 BO  738 GY  740 EC
    742 GF  744 PY  746 SR  748 UY  750 FK  995 IO
"""
# Networks outside the country their code belongs to, and the known ones of codes that span several (340, 362, 647).
NETWORK_TABLE = """
    234-03 JE  234-18 IM  234-36 IM  234-50 JE  234-55 GG  234-58 IM  255-00 MD  310-032 GU  310-059 BM  310-110 MP  310-140 GU
    310-370 GU  311-780 AS  338-05 LC  338-050 TC  340-10 GP  340-11 GF  340-12 MQ  362-51 SX  362-69 CW  362-91 CW  425-05 PS
    425-06 PS  505-10 NF  647-01 YT
"""


def code_pairs(text: str) -> list[tuple[str, str]]:
    words = text.split()
    return list(zip(words[::2], words[1::2], strict=True))


COUNTRY_BY_MCC: Mapping[str, str] = dict(code_pairs(MCC_TABLE))
# By number: bridges write the network code with two digits, with three, or without its zeros.
COUNTRY_BY_NETWORK: Mapping[tuple[str, int], str] = {(code[:3], int(code[4:])): country for code, country in code_pairs(NETWORK_TABLE)}

RESERVED_COUNTRY_CODES = {"UK": "GB", "EL": "GR"}
MOBILE_COUNTRY_CODES = frozenset((*COUNTRY_BY_MCC.values(), *COUNTRY_BY_NETWORK.values()))
"""Where a line can be seen: countries with a mobile country code, or with a network under another's."""


def assigned_country(code: str | None) -> str | None:
    """`code` in upper case. Choice: a code that ISO 3166-1 reserves for the European Union counts as the country that it stands for."""
    meant = None if code is None else RESERVED_COUNTRY_CODES.get(code.upper(), code.upper())
    if meant is not None and meant not in MOBILE_COUNTRY_CODES:
        raise ValueError("no country has this code")
    return meant


def network_country(mcc: str, mnc: str | None) -> str | None:
    """The country of the network with the codes `mcc` and `mnc`; None where they do not tell."""
    if mnc is not None and (mcc, int(mnc)) in COUNTRY_BY_NETWORK:
        return COUNTRY_BY_NETWORK[mcc, int(mnc)]
    return COUNTRY_BY_MCC.get(mcc)


ProblemCause = Literal[
    "exhausted",
    "expired",
    "blocked",
    "suspended",
    "forbidden",
    "no_coverage",
    "throttled",
    "mis_steered",
    "wrong_package",
    "high_cost",
    "abroad",
    "spike",
    "silence",
    "churn",
    "series_running_on_suspended",
    "never_attached",
]
"""What can be wrong with a line, the first to mend first."""
