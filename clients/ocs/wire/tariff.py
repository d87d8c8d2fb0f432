"""Price lists for roaming and for calls over IP."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.network import Operator
from clients.ocs.wire.template import ResellerName
from clients.ocs.wire.values import WireId, keeps_unknown


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
    sponsorname: str
    deleted: bool
    displayname: str


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
    resellerName: str


@keeps_unknown
class VoipProvider(TypedDict, total=False):
    """Who carries the calls of a plan."""

    providerId: int
    providerName: str


@keeps_unknown
class VoipTariff(TypedDict, total=False):
    """A plan for calls over IP."""

    id: WireId
    planName: str
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
