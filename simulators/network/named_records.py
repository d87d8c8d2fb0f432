"""The records that a request names: refused with 6 where there is none, with 11 where it belongs to another reseller."""

from collections.abc import Collection, Mapping
from typing import Protocol, TypeVar

from simulators.network.entities import (
    END_OF_LIFE,
    INVALID_RESELLER,
    NOT_FOUND,
    NOT_VISIBLE,
    Line,
    NetworkRefusal,
    NetworkToken,
    Package,
    Reseller,
    ResellerAccount,
)
from simulators.network.wire import RequestFields, read_digits, read_integer, read_text, require_exactly_one
from simulators.network.world import Tariff, World

RecordT = TypeVar("RecordT")


class OwnedRecord(Protocol):
    """A record that belongs to a reseller."""

    @property
    def reseller_id(self) -> int: ...


OwnedT = TypeVar("OwnedT", bound=OwnedRecord)
LINE_IDENTIFIERS = ("subscriberId", "imsi", "iccid", "msisdn", "multiImsi", "activationCode")
SINGLE_IDENTIFIERS = ("subscriberId", "imsi", "iccid", "msisdn", "activationCode")
CONTACT_IDENTIFIERS = ("subscriberId", "imsi", "iccid")


def find_nested_line(
    world: World, caller: NetworkToken, fields: RequestFields, *, key: str = "subscriber", kinds: Collection[str] = LINE_IDENTIFIERS
) -> Line:
    """The line of an identifier object inside the parameters; the caller has read everything else before."""
    identifier = fields.nested(key)
    name, value = read_line_identifier(identifier, kinds)
    identifier.done()
    fields.done()
    return find_line(world, caller, name, value)


def find_flat_line(world: World, caller: NetworkToken, fields: RequestFields) -> Line:
    """The line of parameters that are an identifier and nothing else."""
    name, value = read_line_identifier(fields)
    fields.done()
    return find_line(world, caller, name, value)


def read_line_identifier(fields: RequestFields, kinds: Collection[str] = LINE_IDENTIFIERS) -> tuple[str, str | int]:
    """Exactly one identifier and its value; the wrong kinds are left for `done` to refuse."""
    name = require_exactly_one(fields, kinds)
    if name == "subscriberId":
        return name, fields.need(name, read_integer)
    return name, fields.need(name, read_text if name == "activationCode" else read_digits)


def find_line(world: World, caller: NetworkToken, name: str, value: str | int) -> Line:
    """The line that an identifier names now; former values do not count."""
    line = world.lines.get(value) if isinstance(value, int) else world.lookup.line(world.lines, name, value)
    if line is None:
        raise NetworkRefusal(NOT_FOUND, f"no subscriber with this {name}")
    if line.reseller_id not in world.family(caller.reseller_id):
        raise NetworkRefusal(NOT_VISIBLE, "the subscriber belongs to another reseller")
    return line


def require_living_line(line: Line) -> Line:
    """Refuse what may not be done to a line that is at its end."""
    if line.status == "END_OF_LIFE":
        raise NetworkRefusal(END_OF_LIFE, "the subscriber is at its end of life")
    return line


def find_record(records: Mapping[int, RecordT], number: int, noun: str) -> RecordT:
    """The record `number`. Raises NetworkRefusal (6); `noun` is for its text."""
    found = records.get(number)
    if found is None:
        raise NetworkRefusal(NOT_FOUND, f"no {noun} {number}")
    return found


def require_visible(world: World, caller: NetworkToken, reseller_id: int, noun: str) -> None:
    """Refuse what belongs to a reseller outside the caller's tree."""
    if reseller_id not in world.family(caller.reseller_id):
        raise NetworkRefusal(NOT_VISIBLE, f"the {noun} belongs to another reseller")


def find_reseller(world: World, caller: NetworkToken, number: int | None) -> Reseller:
    """A reseller by id; without one, the caller's own."""
    reseller = world.resellers.get(caller.reseller_id if number is None else number)
    if reseller is None:
        raise NetworkRefusal(INVALID_RESELLER, f"no reseller {number}")
    require_visible(world, caller, reseller.id, "reseller")
    return reseller


def visible_resellers(world: World, caller: NetworkToken, number: int | None) -> list[Reseller]:
    """One reseller, or all that the caller may see."""
    if number is not None:
        return [find_reseller(world, caller, number)]
    family = world.family(caller.reseller_id)
    return [reseller for reseller in world.resellers.values() if reseller.id in family]


def find_visible(world: World, caller: NetworkToken, records: Mapping[int, OwnedT], number: int, noun: str) -> OwnedT:
    """The record `number` that belongs to a reseller of the caller's tree. Raises NetworkRefusal (6, 11); `noun` is for its text."""
    found = find_record(records, number, noun)
    require_visible(world, caller, found.reseller_id, noun)
    return found


def find_account(world: World, caller: NetworkToken, number: int) -> ResellerAccount:
    """The account `number`. Raises NetworkRefusal (6, 11)."""
    return find_visible(world, caller, world.accounts, number, "account")


def find_package(world: World, caller: NetworkToken, number: int) -> Package:
    package = find_record(world.packages, number, "package")
    require_visible(world, caller, world.lines[package.line_id].reseller_id, "package")
    return package


def find_tariff(world: World, caller: NetworkToken, number: int) -> Tariff:
    """A tariff that a reseller of the caller's tree pays or charges. Raises NetworkRefusal (6, 11)."""
    tariff = find_record(world.tariffs, number, "tariff")
    family = world.family(caller.reseller_id)
    paid = {world.resellers[member].buy_tariff_id for member in family}
    if tariff.reseller_id not in family and tariff.id not in paid:
        raise NetworkRefusal(NOT_VISIBLE, "the tariff belongs to another reseller")
    return tariff
