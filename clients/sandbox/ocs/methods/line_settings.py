"""What may be set on a line: contact, status, traffic, steering, plans, the SIM's status."""

from typing import Literal

from clients.sandbox.ocs.entities import Line, Refused, Status, StatusRow, Token
from clients.sandbox.ocs.methods.subscribers import line_of_sim
from clients.sandbox.ocs.params import Fields, flag, integer, one_of, text
from clients.sandbox.ocs.resolve import CONTACT_IDENTIFIERS, NOT_FOUND, NOT_VISIBLE, alive, known, nested_line
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import NOTHING

WRITABLE: dict[str, Status] = {
    "ACTIVE": "ACTIVE",
    "INACTIVE": "INACTIVE",
    "DISCONNECTED": "DISCONNECTED",
    "SUSPENDED": "SUSPENDED",
    "END_OF_LIFE": "END_OF_LIFE",
}
SIM_STATUSES: dict[str, Literal["FREE", "AFFECTED"]] = {"Affected": "AFFECTED", "Free": "FREE"}


def modify_subscriber_contact_info(world: World, caller: Token, params: object) -> object:
    """Names and addresses; what is left out stays."""
    fields = Fields(params)
    name, phone = fields.maybe("name", text), fields.maybe("phone", text)
    mail, company = fields.maybe("mail", text), fields.maybe("company", text)
    line = nested_line(world, caller, fields, kinds=CONTACT_IDENTIFIERS)
    line.name, line.phone = name or line.name, phone or line.phone
    line.email, line.company = mail or line.email, company or line.company
    return NOTHING


def modify_subscriber_status(world: World, caller: Token, params: object) -> object:
    """A new row of the status history, also when it says what the row before said."""
    fields = Fields(params)
    status = fields.need("newStatus", one_of(tuple(WRITABLE)))
    begin_status(world, alive(nested_line(world, caller, fields)), WRITABLE[status])
    return NOTHING


def begin_status(world: World, line: Line, status: Status) -> None:
    """End the row before, begin another."""
    line.statuses[-1].end = world.now
    line.statuses.append(StatusRow(world.next_id("status"), status, world.now))
    if status == "ACTIVE" and line.activated_at is None:
        line.activated_at = world.now


def set_subscriber_traffic_restrictions(world: World, caller: Token, params: object) -> object:
    """All four switches at once."""
    fields = Fields(params)
    data, moc = fields.need("dataAllowed", flag), fields.need("mocAllowed", flag)
    mtc, mo_sms = fields.need("mtcAllowed", flag), fields.need("smsMoAllowed", flag)
    line = alive(nested_line(world, caller, fields))
    line.allowed_data, line.allowed_moc, line.allowed_mtc, line.allowed_mo_sms = data, moc, mtc, mo_sms
    return NOTHING


def modify_subscriber_steering_list(world: World, caller: Token, params: object) -> object:
    """Choose a steering list, or none; nothing is sent to the card."""
    fields = Fields(params)
    number = fields.maybe("steeringListId", integer)
    line = nested_line(world, caller, fields)
    if number is not None and known(world.steering, number, "steering list").reseller_id != line.reseller_id:
        raise Refused(NOT_VISIBLE, "the steering list belongs to another reseller")
    line.steering_list_id = number
    return NOTHING


def modify_subscriber_mobile_plan(world: World, caller: Token, params: object) -> object:
    """Choose what a line is charged, or the reseller's plan."""
    fields = Fields(params)
    number = fields.maybe("mobilePlanId", integer)
    line = nested_line(world, caller, fields, key="subscriberId")
    tariff = None if number is None else known(world.tariffs, number, "mobile plan")
    if tariff and tariff.reseller_id != line.reseller_id:
        raise Refused(NOT_VISIBLE, "the mobile plan belongs to another reseller")
    if tariff and tariff.kind != "SUBSCRIBER":
        raise Refused(NOT_FOUND, "no mobile plan with this id: it is a reseller's tariff")
    line.mobile_plan_id = number
    return NOTHING


def modify_subscriber_voip_plan(world: World, caller: Token, params: object) -> object:
    """Choose what calls over IP cost, or the reseller's plan."""
    fields = Fields(params)
    number = fields.maybe("voipPlanId", integer)
    line = nested_line(world, caller, fields, key="subscriberId")
    tariff = None if number is None else known(world.voip_tariffs, number, "VoIP plan")
    if tariff and tariff.reseller_id != line.reseller_id:
        raise Refused(NOT_VISIBLE, "the VoIP plan belongs to another reseller")
    line.voip_plan_id = number
    return NOTHING


def change_sim_status(world: World, caller: Token, params: object) -> object:
    """Repair a SIM's status; a profile that was downloaded is not made downloadable by it."""
    fields = Fields(params)
    number, status = fields.need("simId", integer), fields.need("newStatus", one_of(tuple(SIM_STATUSES)))
    fields.done()
    line = line_of_sim(world, caller, number)
    sim, before = line.sim, line.sim.status
    sim.status = SIM_STATUSES[status]
    world.lookup.sim_changed(line, before)
    if sim.status == "FREE":
        sim.affected_at = None
    elif sim.affected_at is None:
        sim.affected_at = world.now
    return NOTHING
