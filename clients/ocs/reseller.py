"""Resellers, accounts, sponsors, steering lists and price lists."""

from clients.ocs.json_array import JsonArrayStream
from clients.ocs.link import OcsLink, given_members
from clients.ocs.wire.reseller import AccountStock, EsimCounts, ResellerAccounts, ResellerInfo, Sponsor, SponsorStock, SteeringList
from clients.ocs.wire.tariff import Tariff, TariffRule, VoipRule, VoipTariff
from clients.ocs.wire_schema import AnswerShape, parse_member_rows, parse_nothing, parse_record, parse_rows

ACCOUNTS_SHAPE = AnswerShape(ResellerAccounts, filled=("account",))
SPONSOR_STOCK_SHAPE = AnswerShape(SponsorStock, inside={"esim": AnswerShape(EsimCounts, filled=("status",))})
ACCOUNT_STOCK_SHAPE = AnswerShape(AccountStock, filled=("sponsor",), inside={"sponsor": SPONSOR_STOCK_SHAPE})
RESELLER_INFO_SHAPE = AnswerShape(ResellerInfo, required=("id",))
SPONSOR_SHAPE = AnswerShape(Sponsor)
STEERING_LIST_SHAPE = AnswerShape(SteeringList)


class ResellerCalls:
    """What concerns a reseller as a whole."""

    def __init__(self, link: OcsLink) -> None:
        self._link = link

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


TARIFF_SHAPE = AnswerShape(Tariff)
TARIFF_RULE_SHAPE = AnswerShape(TariffRule)
VOIP_TARIFF_SHAPE = AnswerShape(VoipTariff)
VOIP_RULE_SHAPE = AnswerShape(VoipRule)
TARIFF_RULES_KEY = "listTariffRule"


class TariffCalls:
    """What traffic costs."""

    def __init__(self, link: OcsLink) -> None:
        self._link = link

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
