"""Resellers, accounts, sponsors, steering lists."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.link import OcsCalls, given_members
from clients.ocs.wire_schema import AnswerShape, Named, WireId, keeps_unknown, parse_member_rows, parse_nothing, parse_record, parse_rows
from registry.free_text import FREE_TEXT, FreeText


@keeps_unknown
class Account(TypedDict, total=False):
    """An account that holds lines."""

    id: WireId
    name: FreeText
    balance: Annotated[float, Field(description="EUR")]
    packageOnly: Annotated[bool, Field(description="Whether the account has no balance to spend")]
    steeringListId: int


@keeps_unknown
class ResellerAccounts(TypedDict, total=False):
    """A reseller with its accounts."""

    id: WireId
    name: FreeText
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
    name: FreeText
    parentId: Annotated[int, Field(description="-1 for a top reseller")]
    balance: Annotated[str, Field(description='EUR with a decimal comma, such as "1530,20"')]
    cdrFolder: str
    trafficInfo: TrafficInfo
    chargingInfo: ChargingInfo
    contactInfo: dict[str, Annotated[object, FREE_TEXT]]


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
    name: FreeText
    esim: EsimCounts


@keeps_unknown
class AccountStock(TypedDict, total=False):
    """The eSIMs of an account by sponsor."""

    id: WireId
    name: FreeText
    sponsor: list[SponsorStock]


@keeps_unknown
class Sponsor(TypedDict, total=False):
    """A network whose IMSI range the SIMs roam with."""

    id: WireId
    prefix: Annotated[int, Field(description="IMSI prefix")]
    name: FreeText


@keeps_unknown
class SteeringList(TypedDict, total=False):
    """A named list of preferred networks; its content is not shown."""

    id: WireId
    resellerId: WireId
    name: FreeText


ACCOUNTS_SHAPE = AnswerShape(ResellerAccounts, filled=("account",))
SPONSOR_STOCK_SHAPE = AnswerShape(SponsorStock, inside={"esim": AnswerShape(EsimCounts, filled=("status",))})
ACCOUNT_STOCK_SHAPE = AnswerShape(AccountStock, filled=("sponsor",), inside={"sponsor": SPONSOR_STOCK_SHAPE})
RESELLER_INFO_SHAPE = AnswerShape(ResellerInfo, required=("id",))
SPONSOR_SHAPE = AnswerShape(Sponsor)
STEERING_LIST_SHAPE = AnswerShape(SteeringList)


class ResellerCalls(OcsCalls):
    """What concerns a reseller as a whole."""

    async def list_reseller_account(self, *, reseller_id: int | None = None) -> list[ResellerAccounts]:
        """All resellers the token sees, or one, with their accounts."""
        params = given_members(resellerId=reseller_id)
        return await self._link.read("listResellerAccount", params, parse_member_rows("reseller", ACCOUNTS_SHAPE))

    async def modify_account_balance(
        self, account_id: int, amount: float, *, set_balance: bool = False, description: str | None = None
    ) -> None:
        """Add to an account's balance (EUR), or set it; a result below 0 becomes 0."""
        params = given_members(accountId=account_id, amount=amount, setBalance=set_balance or None, description=description)
        await self._link.write("modifyAccountBalance", params, parse_nothing)

    async def modify_reseller_balance(
        self, reseller_id: int, kind: str, amount: float, *, set_balance: bool = False, description: str | None = None
    ) -> None:
        """Add to a reseller's balance (EUR), or set it; `kind` is the type of the transfer, such as Wire."""
        params = given_members(resellerId=reseller_id, type=kind, amount=amount, setBalance=set_balance or None, description=description)
        await self._link.write("modifyResellerBalance", params, parse_nothing)

    async def get_reseller_info(self, *, reseller_id: int | None = None) -> ResellerInfo:
        """A reseller's own data; without id, those of the token's owner. The cheapest probe of a token."""
        return await self._link.read("getResellerInfo", given_members(id=reseller_id), parse_record(RESELLER_INFO_SHAPE))

    async def esim_status_per_account(self, *, account_id: int | None = None, reseller_id: int | None = None) -> list[AccountStock]:
        """How many eSIMs are free and affected: of one account, or of all accounts of a reseller."""
        params = given_members(accountId=account_id, resellerId=reseller_id)
        return await self._link.read("esimStatusPerAccount", params, parse_member_rows("account", ACCOUNT_STOCK_SHAPE))

    async def list_sponsor(self, reseller_id: int) -> list[Sponsor]:
        """The sponsors of a reseller."""
        return await self._link.read("listSponsor", reseller_id, parse_member_rows("sponsor", SPONSOR_SHAPE))

    async def list_steering_list(self, reseller_id: int) -> list[SteeringList]:
        """The steering lists of a reseller, by name."""
        return await self._link.read("listSteeringList", reseller_id, parse_rows(STEERING_LIST_SHAPE))
