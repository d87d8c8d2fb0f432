"""Signalling of a line: where it registered, which data sessions it had, and which of both were refused; and the codes of networks."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from clients.ocs.statistics import NetworkEvents
from clients.ocs.times import event_seconds
from operations.vocabulary import upstream_text

NetworkCode = tuple[int, int]
"""MCC and MNC as numbers: the wire writes the latter with two digits, with three, or without its zeros."""


def network_code(mcc: object, mnc: object) -> NetworkCode | None:
    """The code of two members of the wire; None where one of them is no number, or the country is 0."""
    numbers = [_code_number(part) for part in (mcc, mnc)]
    return None if numbers[0] is None or numbers[1] is None or numbers[0] == 0 else (numbers[0], numbers[1])


def _code_number(part: object) -> int | None:
    if isinstance(part, str):
        return int(part) if part.isascii() and part.isdigit() and len(part) <= 3 else None
    return part if isinstance(part, int) and not isinstance(part, bool) and 0 <= part <= 999 else None


REGISTRATION_COMMANDS = frozenset({"ULR", "AIR", "UL", "SAI", "UGL", "GPRSUL"})
"""Update-Location and Authentication-Information of Diameter (3GPP TS 29.272), and the same and their kin of MAP (TS 29.002)."""

DIAMETER_RESULT = re.compile(r"[1-9][0-9]{3}", re.ASCII)

REFUSAL_WORDS = re.compile(r"reject|refus|not.?allowed|not.?supported|unknown|barred|denied|error|fail|restrict|forbid", re.IGNORECASE)
"""Choice: how MAP results are written is published nowhere; what holds none of these words counts as taken."""

UNKNOWN_COMMAND = "N/A"


class NetworkAttempt(NamedTuple):
    """A registration or a session. `at`: Unix seconds; `result` is as the network wrote it."""

    at: float
    refused: bool
    result: str
    code: NetworkCode | None


class LineSignalling(NamedTuple):
    """The registrations and data sessions of some days, oldest first."""

    registrations: list[NetworkAttempt]
    sessions: list[NetworkAttempt]

    @property
    def last_registration(self) -> NetworkAttempt | None:
        return self.registrations[-1] if self.registrations else None

    @property
    def last_refused_session(self) -> NetworkAttempt | None:
        """The newest data session, if it was refused."""
        return self.sessions[-1] if self.sessions and self.sessions[-1].refused else None


def line_signalling(events: NetworkEvents) -> LineSignalling:
    found = [
        network_attempt(event, "result") for event in events.get("mapAnswer", {}).get("events", []) if is_registration(event, "shortCode")
    ]
    found += [
        network_attempt(event, "code") for event in events.get("s6aAnswer", {}).get("events", []) if is_registration(event, "cmdNameShort")
    ]
    sessions = [network_attempt(event, "responseCode") for event in events.get("gyAnswer", {}).get("events", [])]
    return LineSignalling(sorted(found, key=lambda one: one.at), sorted(sessions, key=lambda one: one.at))


def is_registration(event: Mapping[str, object], member: str) -> bool:
    """Whether `event` is a registration. An event without a command name counts as one."""
    name = event.get(member)
    return not isinstance(name, str) or name in ("", UNKNOWN_COMMAND) or name.upper().split("-")[0] in REGISTRATION_COMMANDS


def network_attempt(event: Mapping[str, object], member: str) -> NetworkAttempt:
    result = upstream_text(str(event.get(member, "")), 40)
    return NetworkAttempt(event_seconds(event), is_refusal(result), result, event_network_code(event))


def is_refusal(result: str) -> bool:
    """Whether `result` is a refusal. Diameter answers 2xxx for success (RFC 6733 section 7.1), and 3xxx to 5xxx otherwise."""
    return result[0] in "345" if DIAMETER_RESULT.fullmatch(result) else bool(REFUSAL_WORDS.search(result))


def event_network_code(event: Mapping[str, object]) -> NetworkCode | None:
    """The network code, if the event names it: MAP events do, Diameter events only in their realm."""
    code = network_code(event.get("mcc"), event.get("mnc"))
    if code is not None:
        return code
    found = re.search(r"mnc([0-9]{2,3})\.mcc([0-9]{3})\.", str(event.get("orig_realm", "")), re.ASCII)
    return None if found is None else network_code(found.group(2), found.group(1))
