"""The frame of every answer: a status, and the payload under a key."""

import re
from typing import cast

import orjson

from clients.ocs.failure import Unreadable
from clients.ocs.numbers import integer
from clients.ocs.shape import PLAIN, checked
from clients.ocs.wire.members import Json

TADIG = re.compile(r"[A-Za-z0-9]{1,12}")
"""A network's code. Anything else in its place would be a text of theirs in an error of ours."""
LONGEST_NAME = 200


def opened(body: bytes) -> dict[str, Json]:
    """The decoded answer; Unreadable when it is no JSON object."""
    document: Json = None
    try:
        document = cast("Json", orjson.loads(body))
    except orjson.JSONDecodeError:
        document = None
    return checked(document, PLAIN)


def status_code(document: dict[str, Json]) -> int:
    """The status code, 0 for success. `msg` (some servers: `message`) is free text of theirs and is not read."""
    status = document.get("status")
    if not isinstance(status, dict):
        raise Unreadable("the status is missing")
    return integer(status.get("code"))


def details(payload: Json) -> dict[str, object] | None:
    """The two members that the refusals of createLocationZone document."""
    if not isinstance(payload, dict):
        return None
    found: dict[str, object] = {}
    tadigs, zone = payload.get("invalidTadigs"), payload.get("existingLZ")
    if isinstance(tadigs, list):
        found["invalidTadigs"] = [tadig for tadig in tadigs if isinstance(tadig, str) and TADIG.fullmatch(tadig)]
    if isinstance(zone, dict):
        found["existingLZ"] = {name: value for name in ("Id", "name") if is_plain(value := zone.get(name))}
    return found or None


def is_plain(value: Json) -> bool:
    """What an id or a name can be; anything else in their place is left out."""
    if isinstance(value, str):
        return len(value) <= LONGEST_NAME
    return isinstance(value, int) and not isinstance(value, bool)
