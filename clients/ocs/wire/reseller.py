"""Resellers, accounts, sponsors, steering lists."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.values import Named, WireId, keeps_unknown


@keeps_unknown
class Account(TypedDict, total=False):
    """An account that holds lines."""

    id: WireId
    name: str
    balance: Annotated[float, Field(description="EUR")]
    packageOnly: Annotated[bool, Field(description="Whether the account has no balance to spend")]
    steeringListId: int


@keeps_unknown
class ResellerAccounts(TypedDict, total=False):
    """A reseller with its accounts."""

    id: WireId
    name: str
    account: list[Account]


@keeps_unknown
class TrafficInfo(TypedDict, total=False):
    """Which live traffic is relayed to the customer's own system."""

    relayGy: Annotated[bool, Field(description="Live data charging is relayed")]
    relayCallSms: Annotated[bool, Field(description="Calls and SMS are relayed")]
    relayLU: Annotated[bool, Field(description="Location updates are relayed")]
    relayVoIP: Annotated[bool, Field(description="Calls over IP are relayed")]


@keeps_unknown
class ChargingInfo(TypedDict, total=False):
    """The price lists of a reseller."""

    mobilePlan: Named
    voipPlan: Named
    CallPackageUseSingleCounter: Annotated[bool, Field(description="Made and received calls share one counter")]
    voipFree: bool


@keeps_unknown
class ResellerInfo(TypedDict, total=False):
    """A reseller's own data."""

    id: WireId
    name: str
    parentId: Annotated[int, Field(description="-1 for a top reseller")]
    balance: Annotated[str, Field(description='EUR with a decimal comma, such as "1530,20"')]
    cdrFolder: str
    trafficInfo: TrafficInfo
    chargingInfo: ChargingInfo
    contactInfo: dict[str, object]


@keeps_unknown
class EsimStatusCount(TypedDict, total=False):
    """How many eSIMs stand in one status."""

    statusNum: Annotated[int, Field(description="0 free, 2 affected")]
    statusStr: str
    count: int


@keeps_unknown
class EsimCounts(TypedDict, total=False):
    """eSIMs by status."""

    status: list[EsimStatusCount]


@keeps_unknown
class SponsorStock(TypedDict, total=False):
    """The eSIMs of one sponsor in an account."""

    id: WireId
    name: str
    esim: EsimCounts


@keeps_unknown
class AccountStock(TypedDict, total=False):
    """The eSIMs of an account by sponsor."""

    id: WireId
    name: str
    sponsor: list[SponsorStock]


@keeps_unknown
class Sponsor(TypedDict, total=False):
    """A network whose IMSI range the SIMs roam with."""

    id: WireId
    prefix: Annotated[int, Field(description="IMSI prefix")]
    name: str


@keeps_unknown
class SteeringList(TypedDict, total=False):
    """A named list of preferred networks; its content is not shown."""

    id: WireId
    resellerId: WireId
    name: str
