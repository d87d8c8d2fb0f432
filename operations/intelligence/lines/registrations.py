"""What the signalling of a line says: registrations that networks took or refused, and data sessions that were refused."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from clients.ocs.wire.statistics import NetworkEvents
from operations.intelligence.coverage.map import Code, code_of
from operations.intelligence.upstream_text import plain
from operations.services.network.event_sums import moment

REGISTERING = frozenset({"ULR", "AIR", "UL", "SAI", "UGL", "GPRSUL"})
"""Update-Location and Authentication-Information of Diameter (3GPP TS 29.272), and the same and their kin of MAP (TS 29.002)."""
DIAMETER = re.compile(r"[1-9][0-9]{3}", re.ASCII)
REFUSED_WORDS = re.compile(r"reject|refus|not.?allowed|not.?supported|unknown|barred|denied|error|fail|restrict|forbid", re.IGNORECASE)
"""Choice: how MAP results are written is published nowhere; what holds none of these words counts as taken."""
UNKNOWN = "N/A"


class Attempt(NamedTuple):
    """A registration or a session. `result` is as the network wrote it."""

    at: float
    refused: bool
    result: str
    code: Code | None


class Signalling(NamedTuple):
    """Of some days, oldest first."""

    registrations: list[Attempt]
    sessions: list[Attempt]

    @property
    def last_registration(self) -> Attempt | None:
        """The newest."""
        return self.registrations[-1] if self.registrations else None

    @property
    def last_refused_session(self) -> Attempt | None:
        """The newest session, when it was refused."""
        return self.sessions[-1] if self.sessions and self.sessions[-1].refused else None


def signalling_of(events: NetworkEvents) -> Signalling:
    """The attempts in an answer."""
    found = [attempt(event, "result") for event in events.get("mapAnswer", {}).get("events", []) if registers(event, "shortCode")]
    found += [attempt(event, "code") for event in events.get("s6aAnswer", {}).get("events", []) if registers(event, "cmdNameShort")]
    sessions = [attempt(event, "responseCode") for event in events.get("gyAnswer", {}).get("events", [])]
    return Signalling(sorted(found, key=lambda one: one.at), sorted(sessions, key=lambda one: one.at))


def registers(event: Mapping[str, object], member: str) -> bool:
    """Whether it is a registration; an event that does not say what it is counts as one."""
    name = event.get(member)
    return not isinstance(name, str) or name in ("", UNKNOWN) or name.upper().split("-")[0] in REGISTERING


def attempt(event: Mapping[str, object], member: str) -> Attempt:
    """What came of it."""
    result = plain(str(event.get(member, "")), 40)
    return Attempt(moment(event), refuses(result), result, event_code(event))


def refuses(result: str) -> bool:
    """Diameter answers 2xxx to what it grants (RFC 6733 section 7.1), and 3xxx to 5xxx to what it does not."""
    return result[0] in "345" if DIAMETER.fullmatch(result) else bool(REFUSED_WORDS.search(result))


def event_code(event: Mapping[str, object]) -> Code | None:
    """The network, where the event names its code: MAP does, Diameter only in its realm."""
    code = code_of(event.get("mcc"), event.get("mnc"))
    if code is not None:
        return code
    found = re.search(r"mnc([0-9]{2,3})\.mcc([0-9]{3})\.", str(event.get("orig_realm", "")), re.ASCII)
    return None if found is None else code_of(found.group(2), found.group(1))
