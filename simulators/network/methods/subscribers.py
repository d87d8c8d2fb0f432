"""Subscribers: finding lines, and how the wire shows them (ocs.md 2.1 and 2.3)."""

from collections.abc import Sequence

from simulators.network.entities import (
    UNLIMITED_BITRATE,
    GreenZone,
    ImsiRow,
    Line,
    LineStatus,
    NetworkRefusal,
    NetworkToken,
    NumberRow,
    ProviderRow,
    Sim,
    StatusRow,
)
from simulators.network.named_records import NOT_FOUND, SINGLE_IDENTIFIERS, find_account, find_line, read_line_identifier, require_visible
from simulators.network.params import RequestFields, invalid_request, read_digits, read_flag, read_integer, read_text, require_exactly_one
from simulators.network.wire import NO_PAYLOAD, WireMembers, drop_empty, wire_euro, wire_moment, wire_moment_or_none
from simulators.network.world import World

SHORTEST_PREFIX = {"imsiPrefix": 10, "iccidPrefix": 13, "msisdnPrefix": 7}

SUBSCRIBER_FILTERS = (*SHORTEST_PREFIX, "accountId", "activationCode")


def get_single_subscriber(world: World, caller: NetworkToken, params: object) -> object:
    """One line by its current identifier."""
    fields = RequestFields(params)
    with_sim = fields.maybe("withSimInfo", read_flag) is not False
    only_subscriber = fields.maybe("onlySubsInfo", read_flag) or False
    with_counter = fields.maybe("withGzCounter", read_flag) or False
    name, value = read_line_identifier(fields, SINGLE_IDENTIFIERS)
    fields.done()
    line = find_line(world, caller, name, value)
    members = subscriber_view(world, line, sim=with_sim, histories=not only_subscriber)
    counter = green_counter_view(world, line) if with_counter else None
    return drop_empty({**members, "networkInfo": network_info_view(line), "greenZoneCounter": counter})


def list_subscriber(world: World, caller: NetworkToken, params: object) -> object:
    """Lines by a prefix, an account or an activation code; history counts. There is no second page."""
    fields = RequestFields(params)
    name = require_exactly_one(fields, SUBSCRIBER_FILTERS)
    found = filtered_lines(world, caller, fields, name)
    rows = [subscriber_view(world, line) for line in found[: world.row_cap]]
    return {**drop_empty({"subscriberList": rows}), "hasMore": len(found) > len(rows), "nbFound": len(found)}


def filtered_lines(world: World, caller: NetworkToken, fields: RequestFields, name: str) -> Sequence[Line]:
    """The lines that a filter names and the caller may see, lowest id first."""
    if name == "accountId":
        number = fields.need(name, read_integer)
        fields.done()
        return world.lines_of(find_account(world, caller, number).id)
    value = fields.need(name, read_text if name == "activationCode" else read_digits)
    fields.done()
    if name == "activationCode":
        lines = [line] if (line := world.lookup.line(world.lines, name, value)) else []
    elif len(value) < SHORTEST_PREFIX[name]:
        raise invalid_request(f"params.{name} needs at least {SHORTEST_PREFIX[name]} digits")
    else:
        lines = world.lookup.with_prefix(world.lines, name, value)
    family = world.family(caller.reseller_id)
    return [line for line in lines if line.reseller_id in family]


def get_sim_provider_status(world: World, caller: NetworkToken, params: object) -> object:
    """What the SIM's provider says of its profile, newest first; no answer key when it said nothing."""
    number = read_integer(params, "params")
    line = line_of_sim(world, caller, number)
    rows = [provider_view(number, row) for row in reversed(line.sim.provider)]
    return rows or NO_PAYLOAD


def line_of_sim(world: World, caller: NetworkToken, number: int) -> Line:
    """The line that has a SIM."""
    line = world.lookup.line(world.lines, "sim", number)
    if line is None:
        raise NetworkRefusal(NOT_FOUND, f"no SIM {number}")
    require_visible(world, caller, line.reseller_id, "SIM")
    return line


def provider_view(sim_id: int, row: ProviderRow) -> WireMembers:
    """One statement of the provider."""
    return drop_empty(
        {
            "simId": sim_id,
            "status": row.status,
            "start": wire_moment(row.start),
            "end": wire_moment_or_none(row.end),
            "profileType": row.profile_type,
            "statusModification": row.modification,
        }
    )


# Choice: the read spelling of END_OF_LIFE is published nowhere.
STATUS_TITLES: dict[LineStatus, str] = {
    "ACTIVE": "Active",
    "INACTIVE": "Inactive",
    "SUSPENDED": "Suspended",
    "DISCONNECTED": "Disconnected",
    "PENDING": "Pending",
    "END_OF_LIFE": "End of life",
}


def subscriber_view(world: World, line: Line, *, sim: bool = True, histories: bool = True) -> WireMembers:
    """The members that listSubscriber shows; getSingleSubscriber adds to them."""
    members = {**subscriber_identity(world, line), **subscriber_settings(line)}
    if histories:
        members |= {
            "imsiList": [imsi_view(line, row) for row in line.imsis],
            "phoneNumberList": [number_view(line, row) for row in line.numbers],
            "multiImsi": [
                drop_empty({**imsi_view(line, row), "iccid": None, "endDate": None}) for row in line.multi_imsis if row.end is None
            ],
            "status": [status_view(line, row) for row in line.statuses],
        }
    if sim:
        members["sim"] = sim_view(line, line.sim)
    return drop_empty(members)


def subscriber_identity(world: World, line: Line) -> WireMembers:
    """Who it is, and whose."""
    return {
        "subscriberId": line.id,
        "accountId": line.account_id,
        "account": world.accounts[line.account_id].name,
        "resellerId": line.reseller_id,
        "reseller": world.resellers[line.reseller_id].name,
        "batchId": line.batch_id,
        "subscriberName": line.name,
        "email": line.email,
    }


def subscriber_settings(line: Line) -> WireMembers:
    """What it may do and how it stands."""
    seen = line.sighting
    return {
        "prepaid": True,
        "useAccountForCharging": line.use_account,
        "balance": wire_euro(line.balance),
        "activationDate": wire_moment_or_none(line.activated_at),
        "lastUsageDate": wire_moment_or_none(line.last_usage_at),
        "allowedMoc": line.allowed_moc,
        "allowedMtc": line.allowed_mtc,
        "allowedData": line.allowed_data,
        "allowedMosms": line.allowed_mo_sms,
        "allowedMtsms": True,
        "lastMcc": int(seen.mcc) if seen else None,
        "lastMnc": int(seen.mnc) if seen else None,
        "steeringListId": line.steering_list_id,
        "throttlingLimit": None if line.bitrate == UNLIMITED_BITRATE else int(line.bitrate.removeprefix("KB_")),
    }


def imsi_view(line: Line, row: ImsiRow) -> WireMembers:
    """An IMSI and ICCID with the time it held."""
    start, end = wire_moment(row.start), wire_moment_or_none(row.end)
    return drop_empty({"id": row.id, "subscriberId": line.id, "imsi": row.imsi, "iccid": row.iccid, "startDate": start, "endDate": end})


def number_view(line: Line, row: NumberRow) -> WireMembers:
    """A phone number with the time it held."""
    start, end = wire_moment(row.start), wire_moment_or_none(row.end)
    return drop_empty({"id": row.id, "subscriberId": line.id, "phoneNumber": row.number, "startDate": start, "endDate": end})


def status_view(line: Line, row: StatusRow) -> WireMembers:
    """A status with the time it held."""
    start, end = wire_moment(row.start), wire_moment_or_none(row.end)
    return drop_empty({"id": row.id, "subscriberId": line.id, "startDate": start, "endDate": end, "status": STATUS_TITLES[row.status]})


def sim_view(line: Line, sim: Sim) -> WireMembers:
    """The card or profile, with its secrets: the wire hides nothing."""
    return drop_empty(
        {
            "id": sim.id,
            "subscriberId": line.id,
            "esim": sim.esim,
            "status": sim.status,
            "affectationDateUtc": wire_moment_or_none(sim.affected_at),
            "pin1": sim.pin1 or None,
            "puk1": sim.puk1 or None,
            "pin2": sim.pin2 or None,
            "puk2": sim.puk2 or None,
            "smdpServer": sim.smdp or None,
            "activationCode": sim.activation_code or None,
            "confirmationCode": sim.confirmation_code,
        }
    )


def network_info_view(line: Line) -> WireMembers | None:
    """Where it was last seen; the lower-case subscriberid is the wire's."""
    seen = line.sighting
    if seen is None:
        return None
    return {
        "subscriberid": line.id,
        "time": wire_moment(seen.at),
        "lastMcc": int(seen.mcc),
        "lastMnc": int(seen.mnc),
        "lastCellId": seen.cell_id,
        "lastLac": seen.lac,
        "lastImei": seen.imei,
        "lastRat": seen.rat,
    }


def green_counter_view(world: World, line: Line) -> WireMembers | None:
    """What the line used in its green zone; none without a zone. Choice: an account's zone of 0 MB gives way to the reseller's."""
    own, shared = world.accounts[line.account_id].green_zone, world.resellers[line.reseller_id].green_zone
    effective = own if own and own.max_mb else shared or own
    if effective is None:
        return None
    return drop_empty(
        {
            "subscriberId": line.id,
            "greenZoneId": effective.id,
            "greenZoneName": effective.name,
            "volumeOnGZ": line.green_bytes,
            "startDateUTC": wire_moment_or_none(line.green_started),
            "lastResetDate": wire_moment_or_none(line.green_reset),
            "lastUpdateDate": wire_moment_or_none(line.green_updated),
            "accountGZ": green_zone_view(own),
            "resellerGZ": green_zone_view(shared),
        }
    )


def green_zone_view(zone: GreenZone | None) -> WireMembers | None:
    """A green zone's limits."""
    if zone is None:
        return None
    return {"greenZoneId": zone.id, "greenZoneName": zone.name, "maxVolumeMB": zone.max_mb, "throttlingKbs": zone.throttle_kbps}
