"""Subscribers: finding lines, and how the wire shows them."""

from collections.abc import Sequence
from typing import Literal

from simulators.network.entities import (
    ALREADY_EXISTS,
    NOT_FOUND,
    NOT_VISIBLE,
    UNLIMITED_BITRATE,
    GreenZone,
    ImsiRow,
    Line,
    LineStatus,
    NetworkRefusal,
    NetworkToken,
    NumberRow,
    Sim,
    StatusRow,
)
from simulators.network.named_records import (
    CONTACT_IDENTIFIERS,
    SINGLE_IDENTIFIERS,
    find_account,
    find_flat_line,
    find_line,
    find_nested_line,
    find_record,
    read_line_identifier,
    require_living_line,
    require_visible,
)
from simulators.network.wire import (
    RequestFields,
    WireMembers,
    bare_method,
    invalid_request,
    network_method,
    read_digits,
    read_digits_or_number,
    read_flag,
    read_integer,
    read_one_of,
    read_text,
    require_exactly_one,
    wire_euro,
    wire_moment,
    wire_moment_or_none,
)
from simulators.network.world import World

SHORTEST_PREFIX = {"imsiPrefix": 10, "iccidPrefix": 13, "msisdnPrefix": 7}
SUBSCRIBER_FILTERS = (*SHORTEST_PREFIX, "accountId", "activationCode")
WRITABLE_STATUSES: tuple[LineStatus, ...] = ("ACTIVE", "INACTIVE", "DISCONNECTED", "SUSPENDED", "END_OF_LIFE")
SIM_STATUSES: dict[str, Literal["FREE", "AFFECTED"]] = {"Affected": "AFFECTED", "Free": "FREE"}
SHORTEST_PHONE_NUMBER = 5
LONGEST_PHONE_NUMBER = 15


@network_method("getSingleSubscriber")
def get_single_subscriber(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    with_sim = fields.maybe("withSimInfo", read_flag) is not False
    only_subscriber = fields.maybe("onlySubsInfo", read_flag) or False
    with_counter = fields.maybe("withGzCounter", read_flag) or False
    name, value = read_line_identifier(fields, SINGLE_IDENTIFIERS)
    fields.done()
    line = find_line(world, caller, name, value)
    members = subscriber_view(world, line, sim=with_sim, histories=not only_subscriber)
    counter = green_counter_view(world, line) if with_counter else None
    return {**members, "networkInfo": network_info_view(line), "greenZoneCounter": counter}


@network_method("listSubscriber")
def list_subscriber(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """Lines by a prefix, an account or an activation code; history counts. There is no second page."""
    name = require_exactly_one(fields, SUBSCRIBER_FILTERS)
    found = filtered_lines(world, caller, fields, name)
    rows = [subscriber_view(world, line) for line in found[: world.row_cap]]
    return {"subscriberList": rows, "hasMore": len(found) > len(rows), "nbFound": len(found)}


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


@bare_method("getSimProviderStatus")
def get_sim_provider_status(world: World, caller: NetworkToken, number: int) -> object:
    """What the SIM's provider says of its profile, newest first; no answer key when it said nothing."""
    line = _line_of_sim(world, caller, number)
    rows = [
        {
            "simId": number,
            "status": row.status,
            "start": wire_moment(row.start),
            "end": wire_moment_or_none(row.end),
            "profileType": row.profile_type,
            "statusModification": row.modification,
        }
        for row in reversed(line.sim.provider)
    ]
    return rows or None


def _line_of_sim(world: World, caller: NetworkToken, number: int) -> Line:
    line = world.lookup.line(world.lines, "sim", number)
    if line is None:
        raise NetworkRefusal(NOT_FOUND, f"no SIM {number}")
    require_visible(world, caller, line.reseller_id, "SIM")
    return line


def subscriber_view(world: World, line: Line, *, sim: bool = True, histories: bool = True) -> WireMembers:
    """The members that listSubscriber shows; getSingleSubscriber adds to them."""
    seen = line.sighting
    members: WireMembers = {
        "subscriberId": line.id,
        "accountId": line.account_id,
        "account": world.accounts[line.account_id].name,
        "resellerId": line.reseller_id,
        "reseller": world.resellers[line.reseller_id].name,
        "batchId": line.batch_id,
        "subscriberName": line.name,
        "email": line.email,
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
    if histories:
        members |= {
            "imsiList": [_imsi_view(line, row) for row in line.imsis],
            "phoneNumberList": [_history_view(line, row, phoneNumber=row.number) for row in line.numbers],
            "multiImsi": [{**_imsi_view(line, row), "iccid": None, "endDate": None} for row in line.multi_imsis if row.end is None],
            # Choice: the read spelling of END_OF_LIFE, "End of life", is published nowhere.
            "status": [{**_history_view(line, row), "status": row.status.replace("_", " ").capitalize()} for row in line.statuses],
        }
    if sim:
        members["sim"] = sim_view(line, line.sim)
    return members


def _history_view(line: Line, row: ImsiRow | NumberRow | StatusRow, **own: object) -> WireMembers:
    return {"id": row.id, "subscriberId": line.id, **own, "startDate": wire_moment(row.start), "endDate": wire_moment_or_none(row.end)}


def _imsi_view(line: Line, row: ImsiRow) -> WireMembers:
    return _history_view(line, row, imsi=row.imsi, iccid=row.iccid)


def sim_view(line: Line, sim: Sim) -> WireMembers:
    """The card or profile, with its secrets: the wire hides nothing."""
    return {
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
    return {
        "subscriberId": line.id,
        "greenZoneId": effective.id,
        "greenZoneName": effective.name,
        "volumeOnGZ": line.green_bytes,
        "startDateUTC": wire_moment_or_none(line.green_started),
        "lastResetDate": wire_moment_or_none(line.green_reset),
        "lastUpdateDate": wire_moment_or_none(line.green_updated),
        "accountGZ": _green_zone_view(own),
        "resellerGZ": _green_zone_view(shared),
    }


def _green_zone_view(zone: GreenZone | None) -> WireMembers | None:
    if zone is None:
        return None
    return {"greenZoneId": zone.id, "greenZoneName": zone.name, "maxVolumeMB": zone.max_mb, "throttlingKbs": zone.throttle_kbps}


@network_method("modifySubscriberContactInfo")
def modify_subscriber_contact_info(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """Changes the contact of a line; what is left out stays."""
    name, phone = fields.maybe("name", read_text), fields.maybe("phone", read_text)
    mail, company = fields.maybe("mail", read_text), fields.maybe("company", read_text)
    line = find_nested_line(world, caller, fields, kinds=CONTACT_IDENTIFIERS)
    line.name, line.phone = name or line.name, phone or line.phone
    line.email, line.company = mail or line.email, company or line.company


@network_method("modifySubscriberStatus")
def modify_subscriber_status(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """A new row of the status history, also when it says what the row before said."""
    status: LineStatus = fields.need("newStatus", read_one_of(WRITABLE_STATUSES))
    begin_line_status(world, require_living_line(find_nested_line(world, caller, fields)), status)


def begin_line_status(world: World, line: Line, status: LineStatus) -> None:
    line.statuses[-1].end = world.now
    line.statuses.append(StatusRow(world.next_id("status"), status, world.now))
    if status == "ACTIVE" and line.activated_at is None:
        line.activated_at = world.now


@network_method("setSubscriberTrafficRestrictions")
def set_subscriber_traffic_restrictions(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    data, moc = fields.need("dataAllowed", read_flag), fields.need("mocAllowed", read_flag)
    mtc, mo_sms = fields.need("mtcAllowed", read_flag), fields.need("smsMoAllowed", read_flag)
    line = require_living_line(find_nested_line(world, caller, fields))
    line.allowed_data, line.allowed_moc, line.allowed_mtc, line.allowed_mo_sms = data, moc, mtc, mo_sms


@network_method("modifySubscriberSteeringList")
def modify_subscriber_steering_list(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """Choose a steering list, or none; nothing is sent to the card."""
    number = fields.maybe("steeringListId", read_integer)
    line = find_nested_line(world, caller, fields)
    if number is not None and find_record(world.steering, number, "steering list").reseller_id != line.reseller_id:
        raise NetworkRefusal(NOT_VISIBLE, "the steering list belongs to another reseller")
    line.steering_list_id = number


@network_method("modifySubscriberMobilePlan")
def modify_subscriber_mobile_plan(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """Sets the price list of a line; without an id that of its reseller applies."""
    number = fields.maybe("mobilePlanId", read_integer)
    line = find_nested_line(world, caller, fields, key="subscriberId")
    tariff = None if number is None else find_record(world.tariffs, number, "mobile plan")
    if tariff and tariff.reseller_id != line.reseller_id:
        raise NetworkRefusal(NOT_VISIBLE, "the mobile plan belongs to another reseller")
    if tariff and tariff.kind != "SUBSCRIBER":
        raise NetworkRefusal(NOT_FOUND, "no mobile plan with this id: it is a reseller's tariff")
    line.mobile_plan_id = number


@network_method("modifySubscriberVoipPlan")
def modify_subscriber_voip_plan(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """Sets the price list of a line's calls over IP; without an id that of its reseller applies."""
    number = fields.maybe("voipPlanId", read_integer)
    line = find_nested_line(world, caller, fields, key="subscriberId")
    tariff = None if number is None else find_record(world.voip_tariffs, number, "VoIP plan")
    if tariff and tariff.reseller_id != line.reseller_id:
        raise NetworkRefusal(NOT_VISIBLE, "the VoIP plan belongs to another reseller")
    line.voip_plan_id = number


@network_method("changeSimStatus")
def change_sim_status(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """Repair a SIM's status; a profile that was downloaded is not made downloadable by it."""
    number, status = fields.need("simId", read_integer), fields.need("newStatus", read_one_of(tuple(SIM_STATUSES)))
    fields.done()
    line = _line_of_sim(world, caller, number)
    sim, before = line.sim, line.sim.status
    sim.status = SIM_STATUSES[status]
    world.lookup.sim_changed(line, before)
    if sim.status == "FREE":
        sim.affected_at = None
    elif sim.affected_at is None:
        sim.affected_at = world.now


@network_method("affectSubscriberRealPhoneNumber")
def affect_subscriber_real_phone_number(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """Give a line a public number. Choice: the number it already has is accepted and changes nothing."""
    number = fields.need("phoneNumber", read_digits_or_number)
    if not SHORTEST_PHONE_NUMBER <= len(number) <= LONGEST_PHONE_NUMBER:
        raise invalid_request(f"params.phoneNumber must have {SHORTEST_PHONE_NUMBER} to {LONGEST_PHONE_NUMBER} digits")
    line = require_living_line(find_nested_line(world, caller, fields))
    if world.lookup.line(world.lines, "msisdn", number) not in (None, line):
        raise NetworkRefusal(ALREADY_EXISTS, "the phone number is in use")
    assign_phone_number(world, line, number, real=True)


@network_method("affectSubscriberFakePhoneNumber")
def affect_subscriber_fake_phone_number(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    line = find_flat_line(world, caller, fields)
    assign_phone_number(world, line, line.own_number, real=False)


def assign_phone_number(world: World, line: Line, number: str, *, real: bool) -> None:
    if line.number == number:
        return
    line.numbers[-1].end = world.now
    line.numbers.append(NumberRow(world.next_id("row"), number, world.now, real=real))
    world.lookup.number_changed(line)
