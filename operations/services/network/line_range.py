"""The lines in a range of ICCIDs or IMSIs, whoever they belong to: read from the network so that each can be checked."""

from typing import Literal, NamedTuple

from clients.ocs.failure import OcsNotFound
from clients.ocs.wire.subscriber import Subscriber, SubscriberList
from operations.services.network.reached import Upstream
from registry.errors import BadRequest

RangeType = Literal["IMSI", "ICCID"]
SHORTEST = {"IMSI": 10, "ICCID": 13}
# Choice: so many lines move at once, and so many calls find them; larger fleets are moved in several ranges.
MOST_LINES = 1000
CALLS = 50


class LineRange(NamedTuple):
    """From first to last, both included, of the same length."""

    kind: RangeType
    first: str
    last: str

    @property
    def common(self) -> str:
        """What all numbers of the range begin with."""
        same = next((place for place, (a, b) in enumerate(zip(self.first, self.last, strict=True)) if a != b), len(self.first))
        return self.first[:same]

    def touches(self, prefix: str) -> bool:
        """Whether numbers that begin so may lie in the range."""
        return self.first[: len(prefix)] <= prefix <= self.last[: len(prefix)]

    def holds(self, number: str) -> bool:
        """Whether a number lies in it. Choice: one that is longer counts by its beginning, since some networks compare text."""
        return self.first <= number and number[: len(self.last)] <= self.last

    def member(self, row: Subscriber) -> bool:
        """Whether the line has, or had, a number in the range: former ones count too, since nobody documents that they do not."""
        histories = row.get("imsiList", [])
        numbers = [past.get("imsi", "") if self.kind == "IMSI" else past.get("iccid", "") for past in histories]
        return any(self.holds(number) for number in numbers if number)


async def members(upstream: Upstream, range_: LineRange) -> list[Subscriber]:
    """Every line in the range, of whatever account; a range that cannot be read whole is refused."""
    waiting, found = [range_.common], dict[int, Subscriber]()
    asked = 0
    while waiting:
        if asked == CALLS:
            raise too_large()
        asked += 1
        prefix = waiting.pop()
        answer = await begins(upstream, range_.kind, prefix)
        if answer.get("hasMore"):
            if len(prefix) == len(range_.first):
                raise too_large()
            waiting += [longer for longer in (f"{prefix}{digit}" for digit in range(10)) if range_.touches(longer)]
            continue
        found |= {row.get("subscriberId", 0): row for row in answer.get("subscriberList", []) if range_.member(row)}
        if len(found) > MOST_LINES:
            raise too_large()
    return list(found.values())


async def begins(upstream: Upstream, kind: RangeType, prefix: str) -> SubscriberList:
    """The lines whose number begins so."""
    try:
        return await upstream.ocs.subscriber.list_subscriber(prefix, by="imsiPrefix" if kind == "IMSI" else "iccidPrefix")
    except OcsNotFound:
        return {}


def too_large() -> BadRequest:
    """The range cannot be checked, so it is not moved."""
    return BadRequest(
        f"rangeEnd: the range holds more than {MOST_LINES} lines, or more than can be checked",
        param="rangeEnd",
        hint="Move the lines in several smaller ranges",
    )
