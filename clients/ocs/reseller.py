"""Resellers, accounts, sponsors, steering lists."""

from clients.ocs.link import OcsLink
from clients.ocs.params import given
from clients.ocs.shape import Shape, member_rows, nothing, record, rows
from clients.ocs.wire.reseller import AccountStock, ResellerAccounts, ResellerInfo, Sponsor, SteeringList

ID = Shape(ids=("id",))
ACCOUNTS = Shape(ids=("id",), lists={"account": ID})
STOCK = Shape(ids=("id",), lists={"sponsor": Shape(ids=("id",), objects={"esim": Shape(lists={"status": Shape()})})})
INFO = Shape(ids=("id",), required=("id",), objects={"trafficInfo": Shape(), "chargingInfo": Shape(), "contactInfo": Shape()})
STEERING = Shape(ids=("id", "resellerId"))


class ResellerCalls:
    """What concerns a reseller as a whole."""

    def __init__(self, link: OcsLink) -> None:
        self._link = link

    async def list_reseller_account(self, *, reseller_id: int | None = None) -> list[ResellerAccounts]:
        """All resellers the token sees, or one, with their accounts."""
        params = given(resellerId=reseller_id)
        return await self._link.read("listResellerAccount", params, member_rows(ResellerAccounts, "reseller", ACCOUNTS))

    async def modify_account_balance(
        self, account_id: int, amount: float, *, set_balance: bool = False, description: str | None = None
    ) -> None:
        """Add to an account's balance (EUR), or set it; a result below 0 becomes 0."""
        params = given(accountId=account_id, amount=amount, setBalance=set_balance or None, description=description)
        await self._link.write("modifyAccountBalance", params, nothing)

    async def modify_reseller_balance(
        self, reseller_id: int, kind: str, amount: float, *, set_balance: bool = False, description: str | None = None
    ) -> None:
        """Add to a reseller's balance (EUR), or set it; `kind` is the type of the transfer, such as Wire."""
        params = given(resellerId=reseller_id, type=kind, amount=amount, setBalance=set_balance or None, description=description)
        await self._link.write("modifyResellerBalance", params, nothing)

    async def get_reseller_info(self, *, reseller_id: int | None = None) -> ResellerInfo:
        """A reseller's own data; without id, those of the token's owner. The cheapest probe of a token."""
        return await self._link.read("getResellerInfo", given(id=reseller_id), record(ResellerInfo, INFO))

    async def esim_status_per_account(self, *, account_id: int | None = None, reseller_id: int | None = None) -> list[AccountStock]:
        """How many eSIMs are free and affected: of one account, or of all accounts of a reseller."""
        params = given(accountId=account_id, resellerId=reseller_id)
        return await self._link.read("esimStatusPerAccount", params, member_rows(AccountStock, "account", STOCK))

    async def list_sponsor(self, reseller_id: int) -> list[Sponsor]:
        """The sponsors of a reseller."""
        return await self._link.read("listSponsor", reseller_id, member_rows(Sponsor, "sponsor", ID))

    async def list_steering_list(self, reseller_id: int) -> list[SteeringList]:
        """The steering lists of a reseller, by name."""
        return await self._link.read("listSteeringList", reseller_id, rows(SteeringList, STEERING))
