"""The measured requests: batches of 1,000 records that nobody has sent before, of SIMs drawn from as many as the month has."""

import itertools
import json
import os
import random
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from benchmarks.cdr_fill import BEGINS, FIRST_ID, FIRST_SIM, IDS, MONTH, NETWORKS, SECONDS, SIMS, YEAR
from benchmarks.load import Make
from benchmarks.requests import head

BATCH = 1000
IN_ORDER, SCATTERED = "in order", "scattered"
PLACE = "@" * 16
TEMPLATES = 100
AGGREGATE = f"/v1/cdr/aggregate?year={YEAR}&month={MONTH}"


class Batches:
    """Bodies without their ids, made once; a request is one of them with new ids put in."""

    def __init__(self, size: int = BATCH, templates: int = TEMPLATES) -> None:
        dice = random.Random(7)
        bodies = [json.dumps({"events": [record(dice) for _ in range(size)]}).encode() for _ in range(templates)]
        self._parts = [body.split(PLACE.encode()) for body in bodies]
        self._size = size
        self._number = itertools.count()
        self._ids: dict[str, Callable[[int], Sequence[bytes]]] = {IN_ORDER: self.in_order, SCATTERED: self.scattered}

    def requests(self, key: str, ids: str) -> Make:
        """POST ingest, with ids that come after all there are, or fall anywhere between them."""
        draw = self._ids[ids]

        def make() -> bytes:
            number = next(self._number)
            return posted(key, woven(self._parts[number % len(self._parts)], draw(number)))

        return make

    def in_order(self, number: int) -> list[bytes]:
        """As a sender counts its records."""
        return [b"s%012d%03d" % (number, place) for place in range(self._size)]

    def scattered(self, number: int) -> list[bytes]:
        """As drawn ids are; two of them are never the same in one measurement, as good as."""
        drawn = struct.unpack(f"{self._size}Q", os.urandom(8 * self._size))
        return [b"r%015d" % (FIRST_ID + value % IDS) for value in drawn]


def record(dice: random.Random) -> dict[str, Any]:
    """A record without its id."""
    sim = dice.randrange(SIMS)
    moment = datetime.fromtimestamp(BEGINS + dice.randrange(SECONDS), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    made: dict[str, Any] = {
        "id": PLACE,
        "iccid": str(FIRST_SIM + sim),
        "occurred_at": moment,
        "bytes_up": dice.randrange(1_000_000),
        "bytes_down": dice.randrange(50_000_000),
    }
    place = sim % (len(NETWORKS) + 1)
    if place < len(NETWORKS):
        made["network"], made["country"] = NETWORKS[place]
    return made


def woven(parts: Sequence[bytes], ids: Sequence[bytes]) -> bytes:
    """The ids between the parts."""
    whole = [b""] * (2 * len(ids) + 1)
    whole[::2], whole[1::2] = parts, ids
    return b"".join(whole)


def posted(key: str, body: bytes) -> bytes:
    """POST ingest."""
    return head("POST", "/v1/cdr/ingest", Authorization=f"Bearer {key}", Content_Type="application/json", Content_Length=str(len(body))) + (
        b"\r\n" + body
    )


def asked(key: str) -> bytes:
    """GET the sums of the month."""
    return head("GET", AGGREGATE, Authorization=f"Bearer {key}") + b"\r\n"
