"""From what a request names to a record its caller may see: 6 when there is none, 11 when it is another reseller's."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from clients.sandbox.ocs.entities import Account, Line, Package, Refused, Reseller, Token
from clients.sandbox.ocs.params import Fields, digits, exactly_one, integer, text
from clients.sandbox.ocs.prices import Tariff
from clients.sandbox.ocs.state import World

T = TypeVar("T")
NOT_FOUND, INVALID_RESELLER, NOT_VISIBLE, END_OF_LIFE = 6, 10, 11, 17
IDENTIFIERS = ("subscriberId", "imsi", "iccid", "msisdn", "multiImsi", "activationCode")
WITHOUT_MULTI = ("subscriberId", "imsi", "iccid", "msisdn", "activationCode")
CONTACT_IDENTIFIERS = ("subscriberId", "imsi", "iccid")


def nested_line(world: World, caller: Token, fields: Fields, *, key: str = "subscriber", kinds: Collection[str] = IDENTIFIERS) -> Line:
    """The line of an identifier object inside the parameters; the caller has read everything else before."""
    identifier = fields.nested(key)
    name, value = read_identifier(identifier, kinds)
    identifier.done()
    fields.done()
    return find_line(world, caller, name, value)


def flat_line(world: World, caller: Token, params: object, *, kinds: Collection[str] = IDENTIFIERS) -> Line:
    """The line of parameters that are an identifier and nothing else."""
    fields = Fields(params)
    name, value = read_identifier(fields, kinds)
    fields.done()
    return find_line(world, caller, name, value)


def read_identifier(fields: Fields, kinds: Collection[str] = IDENTIFIERS) -> tuple[str, str | int]:
    """Exactly one identifier and its value; the wrong kinds are left for `done` to refuse."""
    name = exactly_one(fields, kinds)
    if name == "subscriberId":
        return name, fields.need(name, integer)
    return name, fields.need(name, text if name == "activationCode" else digits)


def find_line(world: World, caller: Token, name: str, value: str | int) -> Line:
    """The line that an identifier names now; former values do not count."""
    line = world.lines.get(value) if isinstance(value, int) else world.lookup.line(world.lines, name, value)
    if line is None:
        raise Refused(NOT_FOUND, f"no subscriber with this {name}")
    if line.reseller_id not in world.family(caller.reseller_id):
        raise Refused(NOT_VISIBLE, "the subscriber belongs to another reseller")
    return line


def alive(line: Line) -> Line:
    """Refuse what may not be done to a line that is at its end."""
    if line.status == "END_OF_LIFE":
        raise Refused(END_OF_LIFE, "the subscriber is at its end of life")
    return line


def known(records: Mapping[int, T], number: int, noun: str) -> T:
    """A record by id."""
    found = records.get(number)
    if found is None:
        raise Refused(NOT_FOUND, f"no {noun} {number}")
    return found


def visible(world: World, caller: Token, reseller_id: int, noun: str) -> None:
    """Refuse what belongs to a reseller outside the caller's tree."""
    if reseller_id not in world.family(caller.reseller_id):
        raise Refused(NOT_VISIBLE, f"the {noun} belongs to another reseller")


def find_reseller(world: World, caller: Token, number: int | None) -> Reseller:
    """A reseller by id; without one, the caller's own."""
    reseller = world.resellers.get(caller.reseller_id if number is None else number)
    if reseller is None:
        raise Refused(INVALID_RESELLER, f"no reseller {number}")
    visible(world, caller, reseller.id, "reseller")
    return reseller


def resellers_meant(world: World, caller: Token, number: int | None) -> list[Reseller]:
    """One reseller, or all that the caller may see."""
    if number is not None:
        return [find_reseller(world, caller, number)]
    family = world.family(caller.reseller_id)
    return [reseller for reseller in world.resellers.values() if reseller.id in family]


def find_account(world: World, caller: Token, number: int) -> Account:
    """An account by id."""
    account = known(world.accounts, number, "account")
    visible(world, caller, account.reseller_id, "account")
    return account


def find_package(world: World, caller: Token, number: int) -> Package:
    """A package on a line of the caller's."""
    package = known(world.packages, number, "package")
    visible(world, caller, world.lines[package.line_id].reseller_id, "package")
    return package


def find_tariff(world: World, caller: Token, number: int) -> Tariff:
    """A tariff the caller pays or charges."""
    tariff = known(world.tariffs, number, "tariff")
    family = world.family(caller.reseller_id)
    paid = {world.resellers[member].buy_tariff_id for member in family}
    if tariff.reseller_id not in family and tariff.id not in paid:
        raise Refused(NOT_VISIBLE, "the tariff belongs to another reseller")
    return tariff
