"""Price lists, and how the wire shows them."""

from typing import Literal

from simulators.network.entities import NetworkToken
from simulators.network.methods.zones import operator_view
from simulators.network.named_records import find_record, find_reseller, find_tariff, find_visible, visible_resellers
from simulators.network.wire import (
    EURO_CURRENCY_ID,
    RequestFields,
    WireMembers,
    bare_method,
    network_method,
    read_integer,
    wire_euro,
    wire_euro_or_none,
    wire_moment,
)
from simulators.network.world import Tariff, TariffRule, VoipRule, VoipTariff, World

ANY_SPONSOR = -1


@network_method("listResellerTariff")
def list_reseller_tariff(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    return _tariff_list_view(world, caller, fields, "RESELLER")


@network_method("listSubscriberTariff")
def list_subscriber_tariff(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """What resellers charge."""
    return _tariff_list_view(world, caller, fields, "SUBSCRIBER")


def _tariff_list_view(world: World, caller: NetworkToken, fields: RequestFields, kind: Literal["RESELLER", "SUBSCRIBER"]) -> object:
    owners = _tariff_owners(world, caller, fields)
    rows = [tariff for tariff in world.tariffs.values() if tariff.kind == kind and tariff.reseller_id in owners]
    return {"tariff": [tariff_view(world, tariff) for tariff in rows]}


def _tariff_owners(world: World, caller: NetworkToken, fields: RequestFields) -> set[int]:
    number = fields.maybe("resellerId", read_integer)
    fields.done()
    return {reseller.id for reseller in visible_resellers(world, caller, number)}


@bare_method("listTariffRule")
def list_tariff_rule(world: World, caller: NetworkToken, number: int) -> object:
    return tariff_rules_view(world, find_tariff(world, caller, number))


@bare_method("getCustomerTariff", key="listTariffRule")
def get_customer_tariff(world: World, caller: NetworkToken, number: int) -> object:
    """All prices that a reseller pays."""
    reseller = find_reseller(world, caller, number)
    return tariff_rules_view(world, find_record(world.tariffs, reseller.buy_tariff_id, "tariff"))


@network_method("listSubscriberVoipTariff")
def list_subscriber_voip_tariff(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """Price lists of calls over IP, deleted ones too."""
    owners = _tariff_owners(world, caller, fields)
    return [voip_tariff_view(world, tariff) for tariff in world.voip_tariffs.values() if tariff.reseller_id in owners] or None


@bare_method("listVoipTariffRule")
def list_voip_tariff_rule(world: World, caller: NetworkToken, number: int) -> object:
    tariff = find_visible(world, caller, world.voip_tariffs, number, "VoIP plan")
    return [voip_rule_view(rule) for rule in tariff.rules] or None


def tariff_view(world: World, tariff: Tariff) -> WireMembers:
    """A tariff without its rules; it has no default prices."""
    owner = world.resellers[tariff.reseller_id]
    return {
        "resellers": {"resellerid": owner.id, "resellername": owner.name},
        "roamingplanid": tariff.id,
        "roamingplanname": tariff.name,
        "defaultoutgoingvoice": 0.0,
        "defaultterminatedvoice": 0.0,
        "defaulttext": 0.0,
        "defaultdata": 0.0,
        "defaultmtsms": 0.0,
        "resellerid": tariff.reseller_id,
        "currencyid": EURO_CURRENCY_ID,
        "isusedefaultprices": False,
        "tariffType": tariff.kind,
    }


def tariff_rules_view(world: World, tariff: Tariff) -> WireMembers:
    return {"rule": [tariff_rule_view(world, rule) for rule in tariff.rules]}


def tariff_rule_view(world: World, rule: TariffRule) -> WireMembers:
    """What one network costs: per MiB, per minute, per message."""
    sponsor = world.sponsors[rule.sponsor_id] if rule.sponsor_id is not None else None
    return {
        "operator": operator_view(world, world.networks[rule.network_id]),
        "currency": {"currencyid": EURO_CURRENCY_ID, "currencycode": "EUR", "currencyname": "Euro"},
        "sponsor": {
            "sponsorid": sponsor.id,
            "imsiprefix": sponsor.prefix,
            "pricingplanid": sponsor.pricing_plan_id,
            "sponsorname": sponsor.name,
            "deleted": False,
            "displayname": sponsor.display_name,
        }
        if sponsor
        else None,
        "roamingplanruleid": rule.id,
        "roamingplanid": rule.tariff_id,
        "networkid": rule.network_id,
        "sponsorid": rule.sponsor_id,
        "sponsoridx": ANY_SPONSOR if rule.sponsor_id is None else rule.sponsor_id,
        "active": rule.active,
        "mocallrate": wire_euro_or_none(rule.moc_rate),
        "mtcallrate": wire_euro_or_none(rule.mtc_rate),
        "mosmsrate": wire_euro_or_none(rule.mo_sms_rate),
        "mtsmsrate": wire_euro_or_none(rule.mt_sms_rate),
        "datarate": wire_euro_or_none(rule.data_rate),
        "currencyid": EURO_CURRENCY_ID,
        "startdate": wire_moment(rule.start),
        "isDiscounted": rule.discounted,
        "hidden": rule.hidden,
        "dailyCap": rule.daily_cap,
    }


def voip_tariff_view(world: World, tariff: VoipTariff) -> WireMembers:
    owner = world.resellers[tariff.reseller_id]
    return {
        "id": tariff.id,
        "planName": tariff.name,
        "reseller": {"resellerId": owner.id, "resellerName": owner.name},
        "provider": {"providerId": tariff.id, "providerName": tariff.provider} if tariff.provider else None,
        "deleted": tariff.deleted,
        "costPlan": tariff.cost_plan,
        "maxAllowRate": wire_euro(tariff.max_rate),
    }


def voip_rule_view(rule: VoipRule) -> WireMembers:
    """A price per minute by prefix; this date alone has a space in its middle."""
    fromdate = wire_moment(rule.start).replace("T", " ")
    return {"prefix": rule.prefix, "country": rule.country.upper(), "price": wire_euro(rule.price), "fromdate": fromdate}
