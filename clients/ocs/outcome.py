"""What an answer's status says, and which error the caller of a failed attempt gets.

The words for each status code are ours: the charging system's own text is never read. Customers read them, and know operations: what the
wire calls its methods stands in the log only.
"""

import math
import re
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar, cast

import orjson

from clients.http import NEVER_SENT, FailureKind
from clients.ocs.wire_schema import Json, UnreadableAnswer, wire_integer, wire_object
from clients.outside_system import NotSentReason
from registry.errors import EndOfLife, OcsBadRequest, OcsConflict, OcsError, OcsNotFound, OcsUnavailable, Refusal

TADIG_CODE = re.compile(r"[A-Za-z0-9]{1,12}")
"""A network's code. Anything else in its place would be a text of theirs in an error of ours."""

DETAIL_NAME_LIMIT = 200


def open_answer(body: bytes) -> dict[str, Json]:
    """The decoded answer. Raises UnreadableAnswer where `body` is no JSON object."""
    document: Json = None
    try:
        document = cast("Json", orjson.loads(body))
    except orjson.JSONDecodeError:
        document = None
    return wire_object(document)


def answer_status(document: dict[str, Json]) -> int:
    """The status code of `document`, 0 for success. `msg` (some servers: `message`) is foreign text and is not read."""
    status = document.get("status")
    if not isinstance(status, dict):
        raise UnreadableAnswer("the status is missing")
    return wire_integer(status.get("code"))


def refusal_details(payload: Json) -> dict[str, object] | None:
    """The members `invalidTadigs` and `existingLZ` of `payload`, which refusals of createLocationZone document; None without them."""
    if not isinstance(payload, dict):
        return None
    found: dict[str, object] = {}
    tadigs, zone = payload.get("invalidTadigs"), payload.get("existingLZ")
    if isinstance(tadigs, list):
        found["invalidTadigs"] = [tadig for tadig in tadigs if isinstance(tadig, str) and TADIG_CODE.fullmatch(tadig)]
    if isinstance(zone, dict):
        found["existingLZ"] = {name: value for name in ("Id", "name") if is_plain_detail(value := zone.get(name))}
    return found or None


def is_plain_detail(value: Json) -> bool:
    """Whether `value` can be an id or a name; anything else is left out."""
    if isinstance(value, str):
        return len(value) <= DETAIL_NAME_LIMIT
    return isinstance(value, int) and not isinstance(value, bool)


RefusalCure = Literal["repeat", "input", "state"]
"""What ends a refusal: calling again later, perhaps after the provider has mended something (502); other input (400); another state of
what is named (409)."""


class StatusMeaning(NamedTuple):
    """One status code, in our words."""

    text: str
    cure: RefusalCure = "repeat"


STATUS_MEANINGS: dict[int, StatusMeaning] = {
    1: StatusMeaning("The charging system does not offer what this call needs. Its version may be older; ask the provider for it."),
    2: StatusMeaning(
        "The charging system refused the shape of this call: an id, a value or a format it does not accept. Check the values sent.", "input"
    ),
    3: StatusMeaning(
        "The charging system failed inside while it worked on this call. Try again later; report it to the provider if it stays."
    ),
    4: StatusMeaning("The charging system has an entry with this name or number already. Choose another one.", "state"),
    5: StatusMeaning("The charging system's own data are inconsistent for this call. Report it to the provider."),
    6: StatusMeaning("The charging system does not know what this call named. Read the list again for current ids.", "input"),
    7: StatusMeaning("The charging system's database refused this call. Check names for duplicates, then try again later."),
    8: StatusMeaning("The charging system does not accept the token: it has no API account. Connect the account again with a valid token."),
    9: StatusMeaning(
        "The charging system does not accept calls from this server's IP address. Have the provider add it to its allow list."
    ),
    10: StatusMeaning("The charging system does not accept the reseller. Check the reseller id, or leave it out.", "input"),
    11: StatusMeaning("What this call named is not visible to this token. Read the list again for ids of your own.", "input"),
    12: StatusMeaning("The charging system keeps this resource read-only. Ask the provider to change it.", "state"),
    13: StatusMeaning("The SMS gateway of the charging system failed. Check sender and text, then try again later."),
    14: StatusMeaning(
        "The charging system cannot do this in the present state. Read the resource again: it may be active, dated or blocked already.",
        "state",
    ),
    15: StatusMeaning("The home register (HLR) refused this call. Check the limit, then try again later."),
    16: StatusMeaning("The steering system refused this call. Check that the line has a steering list and was seen in a network."),
    17: StatusMeaning("The line has reached its end of life: it takes no more changes. Only the provider can undo that; use another line."),
    18: StatusMeaning("The charging system reported a timeout of this call."),
    100: StatusMeaning("The charging system's traffic limit is reached; this call was not carried out. Wait, then call again."),
    10001: StatusMeaning(
        "The charging system does not know some of the network codes (TADIG); `details` lists them. Correct them.", "input"
    ),
    10002: StatusMeaning("A zone with the very same networks exists; `details` names it. Use that zone.", "state"),
    10003: StatusMeaning("Some networks are not in the reseller's tariff; `details` lists them. Leave them out.", "input"),
    10004: StatusMeaning(
        "Some networks are not offered by the sponsor, or are too expensive; `details` lists them. Leave them out.", "input"
    ),
}
OTHER_STATUS_TEXT = "The charging system refused this call with code {code}. Ask the provider what it means."
ZONE_METHOD_HINT = (
    " The name of what it asks for is undocumented and therefore a setting (the OCS zone method): ask the provider for the right one."
)
OCS_UNKNOWN_OUTCOME = " It may have been carried out all the same: read the state before you repeat it."
METHOD_MEANINGS: dict[tuple[str, int], StatusMeaning] = {
    ("createLocationZone", 4): StatusMeaning("A location zone with this name exists already. Choose another name.", "state"),
    ("createPrepaidPackageTemplate", 4): StatusMeaning(
        "A package template with this name exists already, perhaps a deleted one. Choose another name.", "state"
    ),
    ("createPrepaidPackageTemplate", 7): StatusMeaning(
        "The charging system's database refused this template. A template with this name may exist already: choose another name, or try "
        "again later."
    ),
    ("modifyPPTCore", 4): StatusMeaning("Another package template has this name, perhaps a deleted one. Choose another name.", "state"),
    ("affectSubscriberRealPhoneNumber", 4): StatusMeaning("Another line has this phone number. Choose a number that is free.", "state"),
    ("modifyAccountBalance", 12): StatusMeaning(
        "The charging system lets nobody change the balance of this account: an account that only takes packages has none.", "state"
    ),
    ("moveSubscriberRangeToAccount", 14): StatusMeaning(
        "The charging system cannot move these lines so; none was moved. The network profile has to belong to the destination's reseller "
        "and to the sponsor of every SIM in the range.",
        "state",
    ),
    ("pushSteeringToSubs", 14): StatusMeaning(
        "The charging system does not know which country the line is in, so there is nothing to steer. Push again after it was seen in a "
        "network.",
        "state",
    ),
    ("sendMtSms", 14): StatusMeaning(
        "The line is not active, so it takes no messages. Activate it with modify_subscriber_status.", "state"
    ),
}
"""Where a code means something of its own for one method of the wire."""


def status_meaning(method: str, code: int) -> StatusMeaning:
    """What the status `code` means as the answer to `method`."""
    return METHOD_MEANINGS.get((method, code)) or STATUS_MEANINGS.get(code) or StatusMeaning(OTHER_STATUS_TEXT.format(code=code))


OcsValueT = TypeVar("OcsValueT")
OCS_UNKNOWN_REQUEST, OCS_UNEXPECTED, OCS_NOT_FOUND, OCS_NOT_VISIBLE = 1, 3, 6, 11
OCS_END_OF_LIFE, OCS_TIMEOUT, OCS_TRAFFIC_LIMIT = 17, 18, 100
RETRY_LATER_SECONDS = 10
"""Seconds after which a read may be repeated when the charging system is in trouble."""

WireVersion = Literal["v1", "v2"]


@dataclass(frozen=True, slots=True)
class OcsCall:
    method: str
    body: bytes
    write: bool
    key: str
    version: WireVersion
    stats: bool


@dataclass(frozen=True, slots=True)
class OcsAnswer(Generic[OcsValueT]):
    """The value of a call that succeeded."""

    value: OcsValueT


@dataclass(frozen=True, slots=True)
class OcsFault:
    """The error of a call that failed. `again`: a read may be sent once more; `pause`: after a wait."""

    error: Refusal
    again: bool = False
    pause: bool = False


def ocs_refused(ocs_call: OcsCall, code: int, payload: Json, *, backoff_seconds: float, zone_method: str) -> OcsFault:
    """The fault of an answer with the status `code`, other than 0: the system has done nothing, code 18 excepted.

    `backoff_seconds`: how long a read waits at the traffic limit. `zone_method`: the name that is set for the undocumented method.
    """
    text = status_meaning(ocs_call.method, code).text
    if code == OCS_TIMEOUT:
        return ocs_overdue(ocs_call)
    if code == OCS_END_OF_LIFE:
        return OcsFault(EndOfLife(text, ocs_code=code))
    if code == OCS_TRAFFIC_LIMIT:
        seconds = max(1, math.ceil(backoff_seconds * 2))
        return OcsFault(OcsError(text, ocs_code=code, retry_after=seconds, before_execution=True), again=True, pause=True)
    if code == OCS_UNKNOWN_REQUEST and ocs_call.method == zone_method:
        text += ZONE_METHOD_HINT
    return OcsFault(ocs_error_class(ocs_call, code)(text, ocs_code=code, details=refusal_details(payload)), again=code == OCS_UNEXPECTED)


def ocs_error_class(ocs_call: OcsCall, code: int) -> type[OcsError]:
    """The class for the status `code`: send something else (400), change something first (409), or call again (502).

    Choice: only a write's refusal is its caller's fault, because the write carries the caller's input. What a read names often comes from
    our own look-ups; an operation whose caller named it says so.
    """
    cure = status_meaning(ocs_call.method, code).cure
    if code in (OCS_NOT_FOUND, OCS_NOT_VISIBLE):
        return OcsUnknownName if ocs_call.write else OcsNotFound
    if not ocs_call.write or cure == "repeat":
        return OcsError
    return OcsBadRequest if cure == "input" else OcsConflict


def ocs_overdue(ocs_call: OcsCall) -> OcsFault:
    """The fault of a call that was sent and got no answer in time, or whose answer says so."""
    text = "The charging system did not answer in time."
    return OcsFault(_ocs_failed(ocs_call, text, ocs_code=OCS_TIMEOUT, code="ocs_timeout"), again=True)


def ocs_never_started(concurrency: int, total_seconds: float) -> OcsFault:
    """The fault of a call that was not sent: all `concurrency` places of its token were taken for `total_seconds`."""
    text = (
        f"{concurrency} calls of this account were under way for {total_seconds:g} s, so this one was not sent. "
        "Call again with fewer calls at once."
    )
    return OcsFault(OcsError(text, code="ocs_timeout", retry_after=1, before_execution=True))


def ocs_unavailable(reason: NotSentReason, retry_after: int) -> OcsUnavailable:
    """The error of a call that is not sent: the system does not answer, or too many requests wait for it."""
    if reason == "crowded":
        text, hint = "Too many calls wait for the charging system, so this one was not sent", "Call again, with fewer calls at once"
    else:
        text, hint = "The charging system does not answer at present, so the call was not sent", "Call again after Retry-After seconds"
    return OcsUnavailable(f"{text}; nothing was done.", hint=hint, retry_after=retry_after)


def ocs_too_late() -> OcsError:
    """The error of a call whose request has no time left for it."""
    text = "The time for this request is over before the charging system could be asked, so the call was not sent. Call again."
    return OcsError(text, code="ocs_timeout", retry_after=1, before_execution=True)


def ocs_not_reached(ocs_call: OcsCall, kind: FailureKind) -> OcsFault:
    """The fault of a call without a complete answer; some kinds of failure happen before a byte is sent."""
    if kind == "timeout":
        return ocs_overdue(ocs_call)
    if kind in NEVER_SENT:
        text = f"The charging system could not be reached ({kind}), so the call was not sent. Check its address; try again later."
        return OcsFault(OcsError(text, before_execution=True), again=True)
    return OcsFault(_ocs_failed(ocs_call, f"The connection to the charging system broke during the call ({kind})."), again=True)


def ocs_wrong_status(ocs_call: OcsCall, status: int) -> OcsFault:
    """The fault of an HTTP status other than 200: refusals by the system itself come with 200."""
    text = f"The charging system answered with HTTP {status} instead of 200. "
    if status >= 500:
        return OcsFault(_ocs_failed(ocs_call, text + "It is in trouble; try again later.", retry_after=RETRY_LATER_SECONDS), again=True)
    refused = status in (401, 403, 404)
    text += "Check its address and the token." if refused else "Report it to the provider if it stays."
    return OcsFault(_ocs_failed(ocs_call, text), again=True)


def ocs_unreadable(ocs_call: OcsCall) -> OcsFault:
    return OcsFault(_ocs_failed(ocs_call, "The charging system's answer could not be read."), again=True)


def _ocs_failed(
    ocs_call: OcsCall, text: str, *, ocs_code: int | None = None, code: str | None = None, retry_after: int | None = None
) -> OcsError:
    """The outcome of a failed write is unknown: its text asks to read the state first, and it names no time to call again."""
    if ocs_call.write:
        return OcsError(text + OCS_UNKNOWN_OUTCOME, ocs_code=ocs_code, code=code, outcome_unknown=True)
    return OcsError(text, ocs_code=ocs_code, code=code, retry_after=retry_after)


class OcsUnknownName(OcsBadRequest, OcsNotFound):
    """A write named something that does not exist, or belongs to another reseller."""
