"""Moving a range of lines to another account."""

from clients.sandbox.ocs import packages
from clients.sandbox.ocs.entities import Account, Line, Refused, Token
from clients.sandbox.ocs.params import Fields, digits, integer, one_of, refuse
from clients.sandbox.ocs.places import NetworkProfile
from clients.sandbox.ocs.resolve import find_account, known, visible
from clients.sandbox.ocs.state import World

IMPOSSIBLE = 14
COLUMNS = ("IMSI", "ICCID")


def move_subscriber_range_to_account(world: World, caller: Token, params: object) -> object:
    """Both accounts belong to one reseller; the answer is the bare number of lines moved."""
    fields = Fields(params)
    source, target, lines = read_move(world, caller, fields)
    if source.reseller_id != target.reseller_id:
        raise Refused(IMPOSSIBLE, "the accounts belong to different resellers: use v2")
    if source is target:
        raise refuse("srcAccountId and destAccount are the same")
    for line in lines:
        line.account_id = target.id
    world.lookup.moved()
    return len(lines)


def move_subscriber_range_to_account_v2(world: World, caller: Token, params: object) -> object:
    """As v1, also between resellers and to another network profile; across resellers all packages are lost."""
    fields = Fields(params)
    profile_id = fields.maybe("destNetworkProfileId", integer)
    source, target, lines = read_move(world, caller, fields)
    across = source.reseller_id != target.reseller_id
    if profile_id is None and (across or source is target):
        raise refuse("params.destNetworkProfileId is missing: it is needed across resellers and within one account")
    profile = None if profile_id is None else find_profile(world, caller, profile_id, target, lines)
    for line in lines:
        line.account_id = target.id
        line.profile_id = profile.id if profile else line.profile_id
        if across:
            change_reseller(world, line, target)
    world.lookup.moved()
    return len(lines)


def read_move(world: World, caller: Token, fields: Fields) -> tuple[Account, Account, list[Line]]:
    """Where from, where to, and which lines."""
    column = fields.need("rangeType", one_of(COLUMNS))
    first, last = fields.need("rangeStart", digits), fields.need("rangeEnd", digits)
    if len(first) != len(last) or first > last:
        raise refuse("rangeStart and rangeEnd must have one length, and the end must not come before the start")
    source_id, target_id = fields.need("srcAccountId", integer), fields.need("destAccount", integer)
    fields.done()
    source, target = find_account(world, caller, source_id), find_account(world, caller, target_id)
    return source, target, [line for line in world.lines_of(source.id) if in_range(line, column, first, last)]


def in_range(line: Line, column: str, first: str, last: str) -> bool:
    """Whether the current value lies between the ends, both included."""
    value = line.imsi if column == "IMSI" else line.iccid
    return len(value) == len(first) and first <= value <= last


def find_profile(world: World, caller: Token, number: int, target: Account, lines: list[Line]) -> NetworkProfile:
    """A profile of the destination's reseller, for the sponsor of all these SIMs."""
    profile = known(world.profiles, number, "network profile")
    visible(world, caller, profile.reseller_id, "network profile")
    if profile.reseller_id != target.reseller_id:
        raise Refused(IMPOSSIBLE, "the network profile belongs to another reseller than the destination account")
    if any(line.sim.sponsor_id != profile.sponsor_id for line in lines):
        raise Refused(IMPOSSIBLE, "the network profile is for another sponsor than some of the SIMs")
    return profile


def change_reseller(world: World, line: Line, target: Account) -> None:
    """What belonged to the former reseller stays behind."""
    packages.clean(world, line)
    line.reseller_id = target.reseller_id
    line.steering_list_id = line.mobile_plan_id = line.voip_plan_id = None
