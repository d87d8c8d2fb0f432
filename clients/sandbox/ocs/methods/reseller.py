"""Resellers, their accounts, sponsors and steering lists."""

from collections.abc import Iterable

from clients.sandbox.ocs.entities import Account, Reseller, Token
from clients.sandbox.ocs.lookup import Sims
from clients.sandbox.ocs.params import Fields, exactly_one, integer
from clients.sandbox.ocs.resolve import find_account, find_reseller, resellers_meant
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import Members, comma_euro, euro, lean

STATUS_NUMBERS = {"FREE": (0, "Free"), "AFFECTED": (2, "Affected")}


def list_reseller_account(world: World, caller: Token, params: object) -> object:
    """Resellers with their accounts."""
    fields = Fields(params)
    number = fields.maybe("resellerId", integer)
    fields.done()
    return lean({"reseller": [reseller_row(world, reseller) for reseller in resellers_meant(world, caller, number)]})


def reseller_row(world: World, reseller: Reseller) -> Members:
    """A reseller and its accounts."""
    accounts = [account_row(account) for account in accounts_of(world, reseller)]
    return lean({"id": reseller.id, "name": reseller.name, "account": accounts})


def accounts_of(world: World, reseller: Reseller) -> Iterable[Account]:
    """A reseller's own accounts."""
    return (account for account in world.accounts.values() if account.reseller_id == reseller.id)


def account_row(account: Account) -> Members:
    """An account."""
    return lean(
        {
            "id": account.id,
            "name": account.name,
            "balance": euro(account.balance),
            "packageOnly": account.package_only,
            "steeringListId": account.steering_list_id,
        }
    )


def get_reseller_info(world: World, caller: Token, params: object) -> object:
    """One reseller: its flags, plans and contact."""
    fields = Fields(params)
    number = fields.maybe("id", integer)
    fields.done()
    reseller = find_reseller(world, caller, number)
    return lean(
        {
            "id": reseller.id,
            "name": reseller.name,
            "parentId": reseller.parent_id,
            "balance": comma_euro(reseller.balance),
            "cdrFolder": f"/cdr/{reseller.id}",
            "trafficInfo": traffic_info(reseller),
            "chargingInfo": charging_info(world, reseller),
            "contactInfo": dict(reseller.contact),
        }
    )


def traffic_info(reseller: Reseller) -> Members:
    """What is relayed to the reseller's own system."""
    return {
        "relayGy": reseller.relay_gy,
        "relayCallSms": reseller.relay_calls,
        "relayLU": reseller.relay_location,
        "relayVoIP": reseller.relay_voip,
    }


def charging_info(world: World, reseller: Reseller) -> Members:
    """The plans of new subscribers; one member begins with a capital."""
    plan, voip = world.tariffs.get(reseller.mobile_plan_id), world.voip_tariffs.get(reseller.voip_plan_id)
    return lean(
        {
            "mobilePlan": {"id": plan.id, "name": plan.name} if plan else None,
            "voipPlan": {"id": voip.id, "name": voip.name} if voip else None,
            "CallPackageUseSingleCounter": reseller.single_counter,
            "voipFree": False,
        }
    )


def esim_status_per_account(world: World, caller: Token, params: object) -> object:
    """How many eSIMs of each sponsor are free."""
    fields = Fields(params)
    name = exactly_one(fields, ("accountId", "resellerId"))
    number = fields.need(name, integer)
    fields.done()
    if name == "accountId":
        accounts: Iterable[Account] = [find_account(world, caller, number)]
    else:
        accounts = accounts_of(world, find_reseller(world, caller, number))
    return lean({"account": [esim_row(world, account) for account in accounts]})


def esim_row(world: World, account: Account) -> Members:
    """An account's eSIMs by sponsor."""
    found = world.lookup.esims(world.lines, account.id)
    numbers = sorted({number for (number, _), count in found.items() if count})
    sponsors = [{"id": number, "name": world.sponsors[number].name, "esim": {"status": counts(found, number)}} for number in numbers]
    return lean({"id": account.id, "name": account.name, "sponsor": sponsors})


def counts(sims: Sims, sponsor: int) -> list[Members]:
    """How many of a sponsor's are in each status; a status that nothing has is not named."""
    found = {status: sims[sponsor, status] for status in STATUS_NUMBERS}
    rows = [(*STATUS_NUMBERS[status], count) for status, count in found.items() if count]
    return [{"statusNum": number, "statusStr": word, "count": count} for number, word, count in rows]


def list_sponsor(world: World, caller: Token, params: object) -> object:
    """A reseller's sponsors."""
    reseller = find_reseller(world, caller, integer(params, "params"))
    sponsors = [world.sponsors[number] for number in world.sponsored.get(reseller.id, ())]
    return lean({"sponsor": [{"id": sponsor.id, "prefix": sponsor.prefix, "name": sponsor.name} for sponsor in sponsors]})


def list_steering_list(world: World, caller: Token, params: object) -> object:
    """A reseller's steering lists, without what is in them; null when there are none."""
    reseller = find_reseller(world, caller, integer(params, "params"))
    rows = [row for row in world.steering.values() if row.reseller_id == reseller.id]
    return [{"id": row.id, "resellerId": row.reseller_id, "name": row.name} for row in rows] or None
