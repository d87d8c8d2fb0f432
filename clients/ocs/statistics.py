"""Usage and network events of a line."""

from datetime import date
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.link import OcsCalls, WireParams, flat_subscriber, nested_subscriber
from clients.ocs.packages import Period
from clients.ocs.wire_schema import AnswerShape, Utc, WireId, keeps_unknown, parse_record
from registry.free_text import FreeText


@keeps_unknown
class SubscriberPeriod(TypedDict, total=False):
    """First and last usage of a line; no period when it was never used."""

    subscriberId: WireId
    period: Period | None


@keeps_unknown
class OperatorQuantity(TypedDict, total=False):
    """Usage on one network."""

    mnc: int
    name: FreeText
    qty: Annotated[int, Field(description="Bytes, seconds and messages added up")]


@keeps_unknown
class CountryQuantity(TypedDict, total=False):
    """Usage in one country."""

    mcc: int
    name: str
    alpha2: Annotated[str, Field(description="Lower case")]
    qty: Annotated[int, Field(description="Bytes, seconds and messages added up")]
    quantityPerOperator: list[OperatorQuantity]


@keeps_unknown
class UsageTotal(TypedDict, total=False):
    """Costs and quantities of a stretch of time."""

    cost: float
    parentResellerCost: float
    resellerCost: float
    subscriberCost: float
    quantityPerType: Annotated[
        dict[str, int], Field(description='By usage type: "33" bytes; "1", "15", "40", "41" seconds; "21", "22" SMS')
    ]
    quantityPerCountry: list[CountryQuantity]


@keeps_unknown
class CallRecord(TypedDict, total=False):
    """One charged use. The same session occurs in several records."""

    subscriberId: int
    sessionId: str
    usageDateUtc: Utc
    usageType: Annotated[int, Field(description="1 call made, 15 call received, 21 SMS sent, 22 SMS received, 33 data, 40 and 41 over IP")]
    accountId: int
    accountName: FreeText
    resellerId: int
    resellerName: FreeText
    mcc: int
    mnc: int
    country: str
    countryAlpha2: str
    operator: FreeText
    quantity: Annotated[int, Field(description="Bytes, seconds or messages, by usageType")]
    resellerCost: float
    resellerPlanId: int
    resellerPlanRuleId: int
    resellerCurrencyId: int
    resellerConvertRate: float
    resellerPrepaidPackageQty: Annotated[int, Field(description="What of `quantity` a package paid, in its unit")]
    subscriberCost: float
    subscriberPlanId: int
    subscriberPlanRuleId: int
    subscriberCurrencyId: int
    subscriberConvertRate: float
    subscriberPrepaidPackageId: int
    subscriberPrepaidPackageQty: Annotated[int, Field(description="What of `quantity` a package paid, in its unit")]
    lac: int
    cellId: int
    rat: str
    imei: str
    upBitrate: int
    downBitrate: int
    qci: int
    apn: FreeText
    otherPartyNumber: str
    imsi: Annotated[int, Field(description="Sponsor prefix")]
    sponsorImsi: int
    accountChargeEntity: bool


@keeps_unknown
class DayUsage(TypedDict, total=False):
    """The usage of one day."""

    day: Annotated[str, Field(description="YYYY-MM-DD, UTC")]
    total: UsageTotal
    subsDailyUsages: list[CallRecord]


@keeps_unknown
class SubscriberUsage(TypedDict, total=False):
    """The usage of one line, by day."""

    subscriberId: int
    total: UsageTotal
    subsPeriodUsages: list[DayUsage]


@keeps_unknown
class PeriodUsage(TypedDict, total=False):
    """The usage of a period."""

    total: UsageTotal
    usages: list[SubscriberUsage]


@keeps_unknown
class EventSection(TypedDict, total=False):
    """The events of one signalling protocol; their members differ by protocol."""

    events: list[dict[str, object]]


@keeps_unknown
class NetworkEvents(TypedDict, total=False):
    """Signalling of a line by protocol."""

    mapAnswer: EventSection
    s6aAnswer: EventSection
    gyAnswer: EventSection


COUNTRY_SHAPE = AnswerShape(CountryQuantity, filled=("quantityPerOperator",))
USAGE_TOTAL_SHAPE = AnswerShape(UsageTotal, filled=("quantityPerCountry",), inside={"quantityPerCountry": COUNTRY_SHAPE})
DAY_USAGE_SHAPE = AnswerShape(DayUsage, filled=("subsDailyUsages",), inside={"total": USAGE_TOTAL_SHAPE})
LINE_USAGE_SHAPE = AnswerShape(
    SubscriberUsage, filled=("subsPeriodUsages",), inside={"total": USAGE_TOTAL_SHAPE, "subsPeriodUsages": DAY_USAGE_SHAPE}
)
USAGE_SHAPE = AnswerShape(PeriodUsage, made=("total",), filled=("usages",), inside={"total": USAGE_TOTAL_SHAPE, "usages": LINE_USAGE_SHAPE})
EVENTS_SHAPE = AnswerShape(EventSection, filled=("events",))
EVENT_SECTIONS = ("mapAnswer", "s6aAnswer", "gyAnswer")
NETWORK_EVENTS_SHAPE = AnswerShape(NetworkEvents, made=EVENT_SECTIONS, inside=dict.fromkeys(EVENT_SECTIONS, EVENTS_SHAPE))
ACTIVE_PERIOD_SHAPE = AnswerShape(SubscriberPeriod)


class StatisticsCalls(OcsCalls):
    """What a line did."""

    async def active_period(self, subscriber_id: int) -> SubscriberPeriod:
        """First and last usage of a line; `period` is absent when it was never used."""
        return await self._link.read(
            "getSubscriberActivePeriod", flat_subscriber(subscriber_id), parse_record(ACTIVE_PERIOD_SHAPE, absent=True)
        )

    async def usage_over_period(self, subscriber_id: int, first: date, last: date) -> PeriodUsage:
        """Usage and costs by day: a week at most, both days included."""
        params = _period_params(subscriber_id, first, last)
        return await self._link.read("subscriberUsageOverPeriod", params, parse_record(USAGE_SHAPE, absent=True), stats=True)

    async def network_events_over_period(self, subscriber_id: int, first: date, last: date) -> NetworkEvents:
        """Signalling by protocol: a week at most, both days included."""
        params = _period_params(subscriber_id, first, last)
        return await self._link.read(
            "subscriberNetworkEventsOverPeriod", params, parse_record(NETWORK_EVENTS_SHAPE, absent=True), stats=True
        )


def _period_params(subscriber_id: int, first: date, last: date) -> WireParams:
    return nested_subscriber(subscriber_id, period={"start": first.isoformat()[:10], "end": last.isoformat()[:10]})
