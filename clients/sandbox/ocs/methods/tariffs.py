"""Price lists."""

from typing import Literal

from clients.sandbox.ocs.entities import Token
from clients.sandbox.ocs.params import Fields, integer
from clients.sandbox.ocs.render_tariff import rules_of, tariff_of, voip_rule_of, voip_tariff_of
from clients.sandbox.ocs.resolve import find_reseller, find_tariff, known, resellers_meant, visible
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import NOTHING, lean


def list_reseller_tariff(world: World, caller: Token, params: object) -> object:
    """What resellers pay."""
    return tariffs_of(world, caller, params, "RESELLER")


def list_subscriber_tariff(world: World, caller: Token, params: object) -> object:
    """What resellers charge."""
    return tariffs_of(world, caller, params, "SUBSCRIBER")


def tariffs_of(world: World, caller: Token, params: object, kind: Literal["RESELLER", "SUBSCRIBER"]) -> object:
    """Tariffs of a kind, of one reseller or of all that are visible."""
    owners = owners_of(world, caller, params)
    rows = [tariff for tariff in world.tariffs.values() if tariff.kind == kind and tariff.reseller_id in owners]
    return lean({"tariff": [tariff_of(world, tariff) for tariff in rows]})


def owners_of(world: World, caller: Token, params: object) -> set[int]:
    """The resellers that optional parameters mean."""
    fields = Fields(params)
    number = fields.maybe("resellerId", integer)
    fields.done()
    return {reseller.id for reseller in resellers_meant(world, caller, number)}


def list_tariff_rule(world: World, caller: Token, params: object) -> object:
    """All prices of a tariff."""
    return rules_of(world, find_tariff(world, caller, integer(params, "params")))


def get_customer_tariff(world: World, caller: Token, params: object) -> object:
    """All prices that a reseller pays."""
    reseller = find_reseller(world, caller, integer(params, "params"))
    return rules_of(world, known(world.tariffs, reseller.buy_tariff_id, "tariff"))


def list_subscriber_voip_tariff(world: World, caller: Token, params: object) -> object:
    """Price lists of calls over IP, deleted ones too."""
    owners = owners_of(world, caller, params)
    return [voip_tariff_of(world, tariff) for tariff in world.voip_tariffs.values() if tariff.reseller_id in owners] or NOTHING


def list_voip_tariff_rule(world: World, caller: Token, params: object) -> object:
    """All prices of such a list."""
    tariff = known(world.voip_tariffs, integer(params, "params"), "VoIP plan")
    visible(world, caller, tariff.reseller_id, "VoIP plan")
    return [voip_rule_of(rule) for rule in tariff.rules] or NOTHING
