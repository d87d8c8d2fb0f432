"""Finding and showing lines."""

from collections.abc import Sequence

from clients.sandbox.ocs.entities import Line, ProviderRow, Token
from clients.sandbox.ocs.moments import stamp, stamp_or_none
from clients.sandbox.ocs.params import Fields, digits, exactly_one, flag, integer, refuse, text
from clients.sandbox.ocs.render_subscriber import green_counter, network_info, subscriber
from clients.sandbox.ocs.resolve import NOT_FOUND, WITHOUT_MULTI, Refused, find_account, find_line, read_identifier, visible
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import NOTHING, Members, lean

SHORTEST = {"imsiPrefix": 10, "iccidPrefix": 13, "msisdnPrefix": 7}
FILTERS = (*SHORTEST, "accountId", "activationCode")


def get_single_subscriber(world: World, caller: Token, params: object) -> object:
    """One line by its current identifier."""
    fields = Fields(params)
    with_sim = fields.maybe("withSimInfo", flag) is not False
    only_subscriber = fields.maybe("onlySubsInfo", flag) or False
    with_counter = fields.maybe("withGzCounter", flag) or False
    name, value = read_identifier(fields, WITHOUT_MULTI)
    fields.done()
    line = find_line(world, caller, name, value)
    members = subscriber(world, line, sim=with_sim, histories=not only_subscriber)
    counter = green_counter(world, line) if with_counter else None
    return lean({**members, "networkInfo": network_info(line), "greenZoneCounter": counter})


def list_subscriber(world: World, caller: Token, params: object) -> object:
    """Lines by a prefix, an account or an activation code; history counts. There is no second page."""
    fields = Fields(params)
    name = exactly_one(fields, FILTERS)
    found = chosen(world, caller, fields, name)
    rows = [subscriber(world, line) for line in found[: world.row_cap]]
    return {**lean({"subscriberList": rows}), "hasMore": len(found) > len(rows), "nbFound": len(found)}


def chosen(world: World, caller: Token, fields: Fields, name: str) -> Sequence[Line]:
    """The lines that a filter names and the caller may see, lowest id first."""
    if name == "accountId":
        number = fields.need(name, integer)
        fields.done()
        return world.lines_of(find_account(world, caller, number).id)
    value = fields.need(name, text if name == "activationCode" else digits)
    fields.done()
    if name == "activationCode":
        lines = [line] if (line := world.lookup.line(world.lines, name, value)) else []
    elif len(value) < SHORTEST[name]:
        raise refuse(f"params.{name} needs at least {SHORTEST[name]} digits")
    else:
        lines = world.lookup.with_prefix(world.lines, name, value)
    family = world.family(caller.reseller_id)
    return [line for line in lines if line.reseller_id in family]


def get_sim_provider_status(world: World, caller: Token, params: object) -> object:
    """What the SIM's provider says of its profile, newest first; no answer key when it said nothing."""
    number = integer(params, "params")
    line = line_of_sim(world, caller, number)
    rows = [provider_row(number, row) for row in reversed(line.sim.provider)]
    return rows or NOTHING


def line_of_sim(world: World, caller: Token, number: int) -> Line:
    """The line that has a SIM."""
    line = world.lookup.line(world.lines, "sim", number)
    if line is None:
        raise Refused(NOT_FOUND, f"no SIM {number}")
    visible(world, caller, line.reseller_id, "SIM")
    return line


def provider_row(sim_id: int, row: ProviderRow) -> Members:
    """One statement of the provider."""
    return lean(
        {
            "simId": sim_id,
            "status": row.status,
            "start": stamp(row.start),
            "end": stamp_or_none(row.end),
            "profileType": row.profile_type,
            "statusModification": row.modification,
        }
    )
