"""Resellers: their accounts, balances, sponsors and steering lists, and lines that move between accounts."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from simulators.network import packages
from simulators.network.entities import NOT_POSSIBLE, BalanceChange, Line, NetworkRefusal, NetworkToken, Reseller, ResellerAccount
from simulators.network.methods.zones import operator_view
from simulators.network.named_records import find_account, find_nested_line, find_reseller, find_visible, visible_resellers
from simulators.network.wire import (
    NULL_PAYLOAD,
    RequestFields,
    WireMembers,
    bare_method,
    invalid_request,
    network_method,
    read_digits,
    read_flag,
    read_integer,
    read_money,
    read_one_of,
    read_text,
    require_exactly_one,
    wire_comma_euro,
    wire_euro,
)
from simulators.network.world import NetworkProfile, SimCounts, SteeringList, World

SIM_STATUS_NUMBERS = {"FREE": (0, "Free"), "AFFECTED": (2, "Affected")}
READ_ONLY_BALANCE = 12
RANGE_COLUMNS = ("IMSI", "ICCID")


@network_method("listResellerAccount")
def list_reseller_account(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    number = fields.maybe("resellerId", read_integer)
    fields.done()
    return {"reseller": [_reseller_view(world, reseller) for reseller in visible_resellers(world, caller, number)]}


def _reseller_view(world: World, reseller: Reseller) -> WireMembers:
    accounts = [
        {
            "id": account.id,
            "name": account.name,
            "balance": wire_euro(account.balance),
            "packageOnly": account.package_only,
            "steeringListId": account.steering_list_id,
        }
        for account in _reseller_accounts(world, reseller)
    ]
    return {"id": reseller.id, "name": reseller.name, "account": accounts}


def _reseller_accounts(world: World, reseller: Reseller) -> Iterable[ResellerAccount]:
    return (account for account in world.accounts.values() if account.reseller_id == reseller.id)


@network_method("getResellerInfo")
def get_reseller_info(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    number = fields.maybe("id", read_integer)
    fields.done()
    reseller = find_reseller(world, caller, number)
    plan, voip = world.tariffs.get(reseller.mobile_plan_id), world.voip_tariffs.get(reseller.voip_plan_id)
    return {
        "id": reseller.id,
        "name": reseller.name,
        "parentId": reseller.parent_id,
        "balance": wire_comma_euro(reseller.balance),
        "cdrFolder": f"/cdr/{reseller.id}",
        "trafficInfo": {
            "relayGy": reseller.relay_gy,
            "relayCallSms": reseller.relay_calls,
            "relayLU": reseller.relay_location,
            "relayVoIP": reseller.relay_voip,
        },
        "chargingInfo": {
            "mobilePlan": {"id": plan.id, "name": plan.name} if plan else None,
            "voipPlan": {"id": voip.id, "name": voip.name} if voip else None,
            "CallPackageUseSingleCounter": reseller.single_counter,
            "voipFree": False,
        },
        "contactInfo": dict(reseller.contact),
    }


@network_method("esimStatusPerAccount")
def esim_status_per_account(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """How many eSIMs of each sponsor are free."""
    name = require_exactly_one(fields, ("accountId", "resellerId"))
    number = fields.need(name, read_integer)
    fields.done()
    if name == "accountId":
        accounts: Iterable[ResellerAccount] = [find_account(world, caller, number)]
    else:
        accounts = _reseller_accounts(world, find_reseller(world, caller, number))
    return {"account": [_esim_count_view(world, account) for account in accounts]}


def _esim_count_view(world: World, account: ResellerAccount) -> WireMembers:
    found = world.lookup.esims(world.lines, account.id)
    numbers = sorted({number for (number, _), count in found.items() if count})
    sponsors = [
        {"id": number, "name": world.sponsors[number].name, "esim": {"status": sim_count_view(found, number)}} for number in numbers
    ]
    return {"id": account.id, "name": account.name, "sponsor": sponsors}


def sim_count_view(sims: SimCounts, sponsor: int) -> list[WireMembers]:
    """The eSIMs of `sponsor` by status; a status without any is left out."""
    found = {status: sims[sponsor, status] for status in SIM_STATUS_NUMBERS}
    rows = [(*SIM_STATUS_NUMBERS[status], count) for status, count in found.items() if count]
    return [{"statusNum": number, "statusStr": word, "count": count} for number, word, count in rows]


@bare_method("listSponsor")
def list_sponsor(world: World, caller: NetworkToken, number: int) -> object:
    reseller = find_reseller(world, caller, number)
    sponsors = [world.sponsors[number] for number in world.sponsored.get(reseller.id, ())]
    return {"sponsor": [{"id": sponsor.id, "prefix": sponsor.prefix, "name": sponsor.name} for sponsor in sponsors]}


@bare_method("listSteeringList")
def list_steering_list(world: World, caller: NetworkToken, number: int) -> object:
    """A reseller's steering lists, without what is in them unless the world tells more; null when there are none."""
    reseller = find_reseller(world, caller, number)
    rows = [row for row in world.steering.values() if row.reseller_id == reseller.id]
    return [steering_list_view(world, row) for row in rows] or NULL_PAYLOAD


def steering_list_view(world: World, row: SteeringList) -> WireMembers:
    members: WireMembers = {"id": row.id, "resellerId": row.reseller_id, "name": row.name}
    if world.tells_more:
        members["operators"] = [operator_view(world, world.networks[number]) for number in row.network_ids]
    return members


class BalanceRequest(NamedTuple):
    """A requested change of a balance; `amount` is in micro-euro."""

    amount: int
    replace: bool
    description: str


def _read_balance_request(fields: RequestFields) -> BalanceRequest:
    amount, replace = fields.need("amount", read_money), fields.maybe("setBalance", read_flag) or False
    return BalanceRequest(amount, replace, fields.maybe("description", read_text) or "")


def apply_balance_request(
    world: World, owner: Literal["reseller", "account", "line"], record: Reseller | ResellerAccount | Line, change: BalanceRequest
) -> None:
    """Change the balance; a result below zero is zero."""
    before = record.balance
    record.balance = max(0, change.amount if change.replace else before + change.amount)
    row = BalanceChange(world.now, owner, record.id, record.balance - before, record.balance, change.description)
    world.transactions.append(row)


@network_method("modifyAccountBalance")
def modify_account_balance(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """An account's balance. Choice: an account that only takes packages has none to change."""
    change, number = _read_balance_request(fields), fields.need("accountId", read_integer)
    fields.done()
    account = find_account(world, caller, number)
    if account.package_only:
        raise NetworkRefusal(READ_ONLY_BALANCE, "the account only takes packages")
    apply_balance_request(world, "account", account, change)


@network_method("modifyResellerBalance")
def modify_reseller_balance(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """A reseller's balance. Choice: a reseller that has a parent cannot change its own."""
    change, number = _read_balance_request(fields), fields.need("resellerId", read_integer)
    fields.need("type", read_text)
    fields.done()
    reseller = find_reseller(world, caller, number)
    if reseller.id == caller.reseller_id and reseller.parent_id in world.resellers:
        raise NetworkRefusal(READ_ONLY_BALANCE, "only the parent reseller may change this balance")
    apply_balance_request(world, "reseller", reseller, change)


@network_method("modifySubscriberBalance")
def modify_subscriber_balance(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    change = _read_balance_request(fields)
    apply_balance_request(world, "line", find_nested_line(world, caller, fields), change)


@network_method("moveSubscriberRangeToAccount")
def move_subscriber_range_to_account(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """Both accounts belong to one reseller; the answer is the bare number of lines moved."""
    source, target, lines = read_range_move(world, caller, fields)
    if source.reseller_id != target.reseller_id:
        raise NetworkRefusal(NOT_POSSIBLE, "the accounts belong to different resellers: use v2")
    if source is target:
        raise invalid_request("srcAccountId and destAccount are the same")
    for line in lines:
        line.account_id = target.id
    world.lookup.moved()
    return len(lines)


@network_method("moveSubscriberRangeToAccount", version="v2")
def move_subscriber_range_to_account_v2(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """As v1, also between resellers and to another network profile; across resellers all packages are lost."""
    profile_id = fields.maybe("destNetworkProfileId", read_integer)
    source, target, lines = read_range_move(world, caller, fields)
    across = source.reseller_id != target.reseller_id
    if profile_id is None and (across or source is target):
        raise invalid_request("params.destNetworkProfileId is missing: it is needed across resellers and within one account")
    profile = None if profile_id is None else find_move_profile(world, caller, profile_id, target, lines)
    for line in lines:
        line.account_id = target.id
        line.profile_id = profile.id if profile else line.profile_id
        if across:
            # what belonged to the former reseller stays behind
            packages.remove_all_packages(world, line)
            line.reseller_id = target.reseller_id
            line.steering_list_id = line.mobile_plan_id = line.voip_plan_id = None
    world.lookup.moved()
    return len(lines)


def read_range_move(world: World, caller: NetworkToken, fields: RequestFields) -> tuple[ResellerAccount, ResellerAccount, list[Line]]:
    """The source account, the destination account, and the lines that are to be moved."""
    column = fields.need("rangeType", read_one_of(RANGE_COLUMNS))
    first, last = fields.need("rangeStart", read_digits), fields.need("rangeEnd", read_digits)
    if len(first) != len(last) or first > last:
        raise invalid_request("rangeStart and rangeEnd must have one length, and the end must not come before the start")
    source_id, target_id = fields.need("srcAccountId", read_integer), fields.need("destAccount", read_integer)
    fields.done()
    source, target = find_account(world, caller, source_id), find_account(world, caller, target_id)
    return source, target, [line for line in world.lines_of(source.id) if line_in_range(line, column, first, last)]


def line_in_range(line: Line, column: str, first: str, last: str) -> bool:
    """Whether the current value lies between the ends, both included."""
    value = line.imsi if column == "IMSI" else line.iccid
    return len(value) == len(first) and first <= value <= last


def find_move_profile(world: World, caller: NetworkToken, number: int, target: ResellerAccount, lines: list[Line]) -> NetworkProfile:
    """A profile of the destination's reseller, for the sponsor of all these SIMs."""
    profile = find_visible(world, caller, world.profiles, number, "network profile")
    if profile.reseller_id != target.reseller_id:
        raise NetworkRefusal(NOT_POSSIBLE, "the network profile belongs to another reseller than the destination account")
    if any(line.sim.sponsor_id != profile.sponsor_id for line in lines):
        raise NetworkRefusal(NOT_POSSIBLE, "the network profile is for another sponsor than some of the SIMs")
    return profile
