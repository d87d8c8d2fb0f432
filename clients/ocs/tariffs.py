"""Price lists for roaming and for calls over IP."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.json_array import JsonArrayStream
from clients.ocs.link import OcsCalls, given_members
from clients.ocs.wire_schema import AnswerShape, ResellerName, WireId, keeps_unknown, parse_member_rows, parse_rows
from clients.ocs.zones import Operator
from registry.free_text import FreeText


@keeps_unknown
class Tariff(TypedDict, total=False):
    """The head of a price list with its default prices."""

    resellers: ResellerName
    roamingplanid: WireId
    roamingplanname: str
    defaultoutgoingvoice: float
    defaultterminatedvoice: float
    defaulttext: float
    defaultdata: float
    defaultmtsms: float
    resellerid: int
    currencyid: int
    isusedefaultprices: bool
    tariffType: Annotated[str, Field(description="RESELLER (what it pays) or SUBSCRIBER (what it charges)")]


@keeps_unknown
class TariffCurrency(TypedDict, total=False):
    """The currency of a price."""

    currencyid: int
    currencycode: str
    currencyname: str


@keeps_unknown
class TariffSponsor(TypedDict, total=False):
    """The sponsor a price is bound to."""

    sponsorid: int
    imsiprefix: int
    pricingplanid: int
    sponsorname: FreeText
    deleted: bool
    displayname: FreeText


@keeps_unknown
class TariffRule(TypedDict, total=False):
    """What one network costs, for one sponsor or for any."""

    operator: Operator
    currency: TariffCurrency
    sponsor: TariffSponsor
    roamingplanruleid: WireId
    roamingplanid: int
    networkid: WireId
    sponsorid: int
    sponsoridx: Annotated[WireId, Field(description="-1 for any sponsor")]
    active: bool
    mocallrate: Annotated[float, Field(description="Per minute of a call made")]
    mtcallrate: Annotated[float, Field(description="Per minute of a call received")]
    mosmsrate: Annotated[float, Field(description="Per SMS sent")]
    mtsmsrate: Annotated[float, Field(description="Per SMS received")]
    datarate: Annotated[float, Field(description="Per MiB")]
    currencyid: int
    startdate: str
    isDiscounted: bool
    hidden: bool
    dailyCap: float


@keeps_unknown
class VoipReseller(TypedDict, total=False):
    """The reseller of a plan."""

    resellerId: int
    resellerName: FreeText


@keeps_unknown
class VoipProvider(TypedDict, total=False):
    """Who carries the calls of a plan."""

    providerId: int
    providerName: FreeText


@keeps_unknown
class VoipTariff(TypedDict, total=False):
    """A plan for calls over IP."""

    id: WireId
    planName: FreeText
    reseller: VoipReseller
    provider: VoipProvider
    deleted: bool
    costPlan: bool
    maxAllowRate: Annotated[float, Field(description="Highest price per minute that is still connected")]


@keeps_unknown
class VoipRule(TypedDict, total=False):
    """What calls to one prefix cost; the longest prefix wins."""

    prefix: str
    country: Annotated[str, Field(description="Upper case")]
    price: Annotated[float, Field(description="Per minute")]
    fromdate: Annotated[str, Field(description="YYYY-MM-DD HH:MM:SS")]


TARIFF_SHAPE = AnswerShape(Tariff)
TARIFF_RULE_SHAPE = AnswerShape(TariffRule)
VOIP_TARIFF_SHAPE = AnswerShape(VoipTariff)
VOIP_RULE_SHAPE = AnswerShape(VoipRule)
TARIFF_RULES_KEY = "listTariffRule"


class TariffCalls(OcsCalls):
    """What traffic costs."""

    async def list_reseller_tariff(self, *, reseller_id: int | None = None) -> list[Tariff]:
        """What the reseller pays."""
        return await self._link.read("listResellerTariff", given_members(resellerId=reseller_id), parse_member_rows("tariff", TARIFF_SHAPE))

    async def list_subscriber_tariff(self, *, reseller_id: int | None = None) -> list[Tariff]:
        """What the reseller charges."""
        return await self._link.read(
            "listSubscriberTariff", given_members(resellerId=reseller_id), parse_member_rows("tariff", TARIFF_SHAPE)
        )

    async def list_rules(self, tariff_id: int) -> list[TariffRule]:
        """The prices of one list, by network."""
        return await self._link.read("listTariffRule", tariff_id, parse_member_rows("rule", TARIFF_RULE_SHAPE))

    async def customer_tariff(self, reseller_id: int) -> list[TariffRule]:
        """The prices this reseller is charged, by network."""
        return await self._link.read("getCustomerTariff", reseller_id, parse_member_rows("rule", TARIFF_RULE_SHAPE), key=TARIFF_RULES_KEY)

    async def stream_customer_tariff(self, reseller_id: int) -> JsonArrayStream:
        """The same as `customer_tariff`, as the raw JSON array: megabytes pass without being decoded."""
        return await self._link.stream("getCustomerTariff", reseller_id, key=(TARIFF_RULES_KEY, "rule"))

    async def list_voip_tariffs(self, *, reseller_id: int | None = None) -> list[VoipTariff]:
        """Plans for calls over IP; deleted ones may be among them."""
        return await self._link.read("listSubscriberVoipTariff", given_members(resellerId=reseller_id), parse_rows(VOIP_TARIFF_SHAPE))

    async def list_voip_rules(self, voip_plan_id: int) -> list[VoipRule]:
        """The prices of one plan, by called prefix."""
        return await self._link.read("listVoipTariffRule", voip_plan_id, parse_rows(VOIP_RULE_SHAPE))
