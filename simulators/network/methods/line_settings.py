"""What may be set on a line: contact, status, phone number, traffic, steering, plans, the SIM's status."""

from typing import Literal

from simulators.network.entities import Line, LineStatus, NetworkRefusal, NetworkToken, NumberRow, StatusRow
from simulators.network.methods.subscribers import line_of_sim
from simulators.network.named_records import (
    ALREADY_EXISTS,
    CONTACT_IDENTIFIERS,
    NOT_FOUND,
    NOT_VISIBLE,
    find_flat_line,
    find_nested_line,
    find_record,
    require_living_line,
)
from simulators.network.params import RequestFields, invalid_request, read_digits_or_number, read_flag, read_integer, read_one_of, read_text
from simulators.network.wire import NO_PAYLOAD
from simulators.network.world import World

WRITABLE_STATUSES: dict[str, LineStatus] = {
    "ACTIVE": "ACTIVE",
    "INACTIVE": "INACTIVE",
    "DISCONNECTED": "DISCONNECTED",
    "SUSPENDED": "SUSPENDED",
    "END_OF_LIFE": "END_OF_LIFE",
}

SIM_STATUSES: dict[str, Literal["FREE", "AFFECTED"]] = {"Affected": "AFFECTED", "Free": "FREE"}


def modify_subscriber_contact_info(world: World, caller: NetworkToken, params: object) -> object:
    """Names and addresses; what is left out stays."""
    fields = RequestFields(params)
    name, phone = fields.maybe("name", read_text), fields.maybe("phone", read_text)
    mail, company = fields.maybe("mail", read_text), fields.maybe("company", read_text)
    line = find_nested_line(world, caller, fields, kinds=CONTACT_IDENTIFIERS)
    line.name, line.phone = name or line.name, phone or line.phone
    line.email, line.company = mail or line.email, company or line.company
    return NO_PAYLOAD


def modify_subscriber_status(world: World, caller: NetworkToken, params: object) -> object:
    """A new row of the status history, also when it says what the row before said."""
    fields = RequestFields(params)
    status = fields.need("newStatus", read_one_of(tuple(WRITABLE_STATUSES)))
    begin_line_status(world, require_living_line(find_nested_line(world, caller, fields)), WRITABLE_STATUSES[status])
    return NO_PAYLOAD


def begin_line_status(world: World, line: Line, status: LineStatus) -> None:
    """End the row before, begin another."""
    line.statuses[-1].end = world.now
    line.statuses.append(StatusRow(world.next_id("status"), status, world.now))
    if status == "ACTIVE" and line.activated_at is None:
        line.activated_at = world.now


def set_subscriber_traffic_restrictions(world: World, caller: NetworkToken, params: object) -> object:
    """All four switches at once."""
    fields = RequestFields(params)
    data, moc = fields.need("dataAllowed", read_flag), fields.need("mocAllowed", read_flag)
    mtc, mo_sms = fields.need("mtcAllowed", read_flag), fields.need("smsMoAllowed", read_flag)
    line = require_living_line(find_nested_line(world, caller, fields))
    line.allowed_data, line.allowed_moc, line.allowed_mtc, line.allowed_mo_sms = data, moc, mtc, mo_sms
    return NO_PAYLOAD


def modify_subscriber_steering_list(world: World, caller: NetworkToken, params: object) -> object:
    """Choose a steering list, or none; nothing is sent to the card."""
    fields = RequestFields(params)
    number = fields.maybe("steeringListId", read_integer)
    line = find_nested_line(world, caller, fields)
    if number is not None and find_record(world.steering, number, "steering list").reseller_id != line.reseller_id:
        raise NetworkRefusal(NOT_VISIBLE, "the steering list belongs to another reseller")
    line.steering_list_id = number
    return NO_PAYLOAD


def modify_subscriber_mobile_plan(world: World, caller: NetworkToken, params: object) -> object:
    """Choose what a line is charged, or the reseller's plan."""
    fields = RequestFields(params)
    number = fields.maybe("mobilePlanId", read_integer)
    line = find_nested_line(world, caller, fields, key="subscriberId")
    tariff = None if number is None else find_record(world.tariffs, number, "mobile plan")
    if tariff and tariff.reseller_id != line.reseller_id:
        raise NetworkRefusal(NOT_VISIBLE, "the mobile plan belongs to another reseller")
    if tariff and tariff.kind != "SUBSCRIBER":
        raise NetworkRefusal(NOT_FOUND, "no mobile plan with this id: it is a reseller's tariff")
    line.mobile_plan_id = number
    return NO_PAYLOAD


def modify_subscriber_voip_plan(world: World, caller: NetworkToken, params: object) -> object:
    """Choose what calls over IP cost, or the reseller's plan."""
    fields = RequestFields(params)
    number = fields.maybe("voipPlanId", read_integer)
    line = find_nested_line(world, caller, fields, key="subscriberId")
    tariff = None if number is None else find_record(world.voip_tariffs, number, "VoIP plan")
    if tariff and tariff.reseller_id != line.reseller_id:
        raise NetworkRefusal(NOT_VISIBLE, "the VoIP plan belongs to another reseller")
    line.voip_plan_id = number
    return NO_PAYLOAD


def change_sim_status(world: World, caller: NetworkToken, params: object) -> object:
    """Repair a SIM's status; a profile that was downloaded is not made downloadable by it."""
    fields = RequestFields(params)
    number, status = fields.need("simId", read_integer), fields.need("newStatus", read_one_of(tuple(SIM_STATUSES)))
    fields.done()
    line = line_of_sim(world, caller, number)
    sim, before = line.sim, line.sim.status
    sim.status = SIM_STATUSES[status]
    world.lookup.sim_changed(line, before)
    if sim.status == "FREE":
        sim.affected_at = None
    elif sim.affected_at is None:
        sim.affected_at = world.now
    return NO_PAYLOAD


SHORTEST_PHONE_NUMBER = 5

LONGEST_PHONE_NUMBER = 15


def affect_subscriber_real_phone_number(world: World, caller: NetworkToken, params: object) -> object:
    """Give a line a public number. Choice: the number it already has is accepted and changes nothing."""
    fields = RequestFields(params)
    number = fields.need("phoneNumber", read_digits_or_number)
    if not SHORTEST_PHONE_NUMBER <= len(number) <= LONGEST_PHONE_NUMBER:
        raise invalid_request(f"params.phoneNumber must have {SHORTEST_PHONE_NUMBER} to {LONGEST_PHONE_NUMBER} digits")
    line = require_living_line(find_nested_line(world, caller, fields))
    if world.lookup.line(world.lines, "msisdn", number) not in (None, line):
        raise NetworkRefusal(ALREADY_EXISTS, "the phone number is in use")
    assign_phone_number(world, line, number, real=True)
    return NO_PAYLOAD


def affect_subscriber_fake_phone_number(world: World, caller: NetworkToken, params: object) -> object:
    """Give a line its own internal number back."""
    line = find_flat_line(world, caller, params)
    assign_phone_number(world, line, line.own_number, real=False)
    return NO_PAYLOAD


def assign_phone_number(world: World, line: Line, number: str, *, real: bool) -> None:
    """End the former number, begin the new one."""
    if line.number == number:
        return
    line.numbers[-1].end = world.now
    line.numbers.append(NumberRow(world.next_id("row"), number, world.now, real=real))
    world.lookup.number_changed(line)
