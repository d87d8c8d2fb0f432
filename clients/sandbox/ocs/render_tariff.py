"""Price lists as the wire shows them (ocs.md 2.6, 3.5)."""

from clients.sandbox.ocs.moments import stamp
from clients.sandbox.ocs.places import Sponsor
from clients.sandbox.ocs.prices import Tariff, TariffRule, VoipRule, VoipTariff
from clients.sandbox.ocs.render_network import operator
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import Members, euro, euro_or_none, lean

EURO_ID = 1
ANY_SPONSOR = -1


def tariff_of(world: World, tariff: Tariff) -> Members:
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
        "currencyid": EURO_ID,
        "isusedefaultprices": False,
        "tariffType": tariff.kind,
    }


def rules_of(world: World, tariff: Tariff) -> Members:
    """The answer of listTariffRule and of getCustomerTariff."""
    return lean({"rule": [rule_of(world, rule) for rule in tariff.rules]})


def rule_of(world: World, rule: TariffRule) -> Members:
    """What one network costs: per MiB, per minute, per message."""
    sponsor = world.sponsors[rule.sponsor_id] if rule.sponsor_id is not None else None
    return lean(
        {
            "operator": operator(world, world.networks[rule.network_id]),
            "currency": {"currencyid": EURO_ID, "currencycode": "EUR", "currencyname": "Euro"},
            "sponsor": sponsor_of(sponsor) if sponsor else None,
            "roamingplanruleid": rule.id,
            "roamingplanid": rule.tariff_id,
            "networkid": rule.network_id,
            "sponsorid": rule.sponsor_id,
            "sponsoridx": ANY_SPONSOR if rule.sponsor_id is None else rule.sponsor_id,
            "active": rule.active,
            **rates(rule),
            "currencyid": EURO_ID,
            "startdate": stamp(rule.start),
            "isDiscounted": rule.discounted,
            "hidden": rule.hidden,
            "dailyCap": rule.daily_cap,
        }
    )


def rates(rule: TariffRule) -> Members:
    """Prices; what has none is left out."""
    return {
        "mocallrate": euro_or_none(rule.moc_rate),
        "mtcallrate": euro_or_none(rule.mtc_rate),
        "mosmsrate": euro_or_none(rule.mo_sms_rate),
        "mtsmsrate": euro_or_none(rule.mt_sms_rate),
        "datarate": euro_or_none(rule.data_rate),
    }


def sponsor_of(sponsor: Sponsor) -> Members:
    """A sponsor inside a rule."""
    return {
        "sponsorid": sponsor.id,
        "imsiprefix": sponsor.prefix,
        "pricingplanid": sponsor.pricing_plan_id,
        "sponsorname": sponsor.name,
        "deleted": False,
        "displayname": sponsor.display_name,
    }


def voip_tariff_of(world: World, tariff: VoipTariff) -> Members:
    """A price list for calls over IP."""
    owner = world.resellers[tariff.reseller_id]
    return lean(
        {
            "id": tariff.id,
            "planName": tariff.name,
            "reseller": {"resellerId": owner.id, "resellerName": owner.name},
            "provider": {"providerId": tariff.id, "providerName": tariff.provider} if tariff.provider else None,
            "deleted": tariff.deleted,
            "costPlan": tariff.cost_plan,
            "maxAllowRate": euro(tariff.max_rate),
        }
    )


def voip_rule_of(rule: VoipRule) -> Members:
    """A price per minute by prefix; this date alone has a space in its middle."""
    fromdate = stamp(rule.start).replace("T", " ")
    return {"prefix": rule.prefix, "country": rule.country.upper(), "price": euro(rule.price), "fromdate": fromdate}
