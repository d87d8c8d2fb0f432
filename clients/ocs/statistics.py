"""Usage and network events of a line; the two that take a period have an address of their own."""

from datetime import date

from clients.ocs.link import OcsLink
from clients.ocs.params import Params, flat, nested
from clients.ocs.shape import Shape, record
from clients.ocs.wire.statistics import NetworkEvents, PeriodUsage, SubscriberPeriod

TOTAL = Shape(objects={"quantityPerType": Shape()}, lists={"quantityPerCountry": Shape(lists={"quantityPerOperator": Shape()})})
DAY = Shape(objects={"total": TOTAL}, lists={"subsDailyUsages": Shape()})
USAGE = Shape(made=("total",), objects={"total": TOTAL}, lists={"usages": Shape(objects={"total": TOTAL}, lists={"subsPeriodUsages": DAY})})
SECTIONS = ("mapAnswer", "s6aAnswer", "gyAnswer")
EVENTS = Shape(made=SECTIONS, objects={name: Shape(lists={"events": Shape()}) for name in SECTIONS})
ACTIVE = Shape(ids=("subscriberId",), objects={"period": Shape()})


class StatisticsCalls:
    """What a line did."""

    def __init__(self, link: OcsLink) -> None:
        self._link = link

    async def active_period(self, subscriber_id: int) -> SubscriberPeriod:
        """First and last usage of a line; `period` is absent when it was never used."""
        return await self._link.read("getSubscriberActivePeriod", flat(subscriber_id), record(SubscriberPeriod, ACTIVE, absent=True))

    async def usage_over_period(self, subscriber_id: int, first: date, last: date) -> PeriodUsage:
        """Usage and costs by day: a week at most, both days included."""
        params = _over(subscriber_id, first, last)
        return await self._link.read("subscriberUsageOverPeriod", params, record(PeriodUsage, USAGE, absent=True), stats=True)

    async def network_events_over_period(self, subscriber_id: int, first: date, last: date) -> NetworkEvents:
        """Signalling by protocol: a week at most, both days included."""
        params = _over(subscriber_id, first, last)
        return await self._link.read("subscriberNetworkEventsOverPeriod", params, record(NetworkEvents, EVENTS, absent=True), stats=True)


def _over(subscriber_id: int, first: date, last: date) -> Params:
    return nested(subscriber_id, period={"start": first.isoformat()[:10], "end": last.isoformat()[:10]})
