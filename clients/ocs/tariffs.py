"""Price lists."""

from clients.ocs.link import OcsLink
from clients.ocs.params import given
from clients.ocs.raw_array import RawArray
from clients.ocs.shape import Shape, member_rows, rows
from clients.ocs.wire.tariff import Tariff, TariffRule, VoipRule, VoipTariff

TARIFF = Shape(ids=("roamingplanid",))
RULE = Shape(ids=("roamingplanruleid", "networkid", "sponsoridx"), objects={"operator": Shape(), "currency": Shape(), "sponsor": Shape()})
VOIP_TARIFF = Shape(ids=("id",))
RULES = "listTariffRule"


class TariffCalls:
    """What traffic costs."""

    def __init__(self, link: OcsLink) -> None:
        self._link = link

    async def list_reseller_tariff(self, *, reseller_id: int | None = None) -> list[Tariff]:
        """What the reseller pays."""
        return await self._link.read("listResellerTariff", given(resellerId=reseller_id), member_rows(Tariff, "tariff", TARIFF))

    async def list_subscriber_tariff(self, *, reseller_id: int | None = None) -> list[Tariff]:
        """What the reseller charges."""
        return await self._link.read("listSubscriberTariff", given(resellerId=reseller_id), member_rows(Tariff, "tariff", TARIFF))

    async def list_rules(self, tariff_id: int) -> list[TariffRule]:
        """The prices of one list, by network."""
        return await self._link.read("listTariffRule", tariff_id, member_rows(TariffRule, "rule", RULE))

    async def customer_tariff(self, reseller_id: int) -> list[TariffRule]:
        """The prices this reseller is charged, by network."""
        return await self._link.read("getCustomerTariff", reseller_id, member_rows(TariffRule, "rule", RULE), key=RULES)

    async def stream_customer_tariff(self, reseller_id: int) -> RawArray:
        """The same as `customer_tariff`, as the raw JSON array: megabytes pass without being decoded."""
        return await self._link.stream("getCustomerTariff", reseller_id, key=(RULES, "rule"))

    async def list_voip_tariffs(self, *, reseller_id: int | None = None) -> list[VoipTariff]:
        """Plans for calls over IP; deleted ones may be among them."""
        return await self._link.read("listSubscriberVoipTariff", given(resellerId=reseller_id), rows(VoipTariff, VOIP_TARIFF))

    async def list_voip_rules(self, voip_plan_id: int) -> list[VoipRule]:
        """The prices of one plan, by called prefix."""
        return await self._link.read("listVoipTariffRule", voip_plan_id, rows(VoipRule, Shape()))
