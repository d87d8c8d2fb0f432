"""Phone numbers of lines."""

from clients.sandbox.ocs.entities import Line, NumberRow, Refused, Token
from clients.sandbox.ocs.params import Fields, digits_or_number, refuse
from clients.sandbox.ocs.resolve import alive, flat_line, nested_line
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import NOTHING

DUPLICATE = 4
SHORTEST, LONGEST = 5, 15


def affect_subscriber_real_phone_number(world: World, caller: Token, params: object) -> object:
    """Give a line a public number. Choice: the number it already has is accepted and changes nothing."""
    fields = Fields(params)
    number = fields.need("phoneNumber", digits_or_number)
    if not SHORTEST <= len(number) <= LONGEST:
        raise refuse(f"params.phoneNumber must have {SHORTEST} to {LONGEST} digits")
    line = alive(nested_line(world, caller, fields))
    if world.lookup.line(world.lines, "msisdn", number) not in (None, line):
        raise Refused(DUPLICATE, "the phone number is in use")
    assign(world, line, number, real=True)
    return NOTHING


def affect_subscriber_fake_phone_number(world: World, caller: Token, params: object) -> object:
    """Give a line its own internal number back."""
    line = flat_line(world, caller, params)
    assign(world, line, line.own_number, real=False)
    return NOTHING


def assign(world: World, line: Line, number: str, *, real: bool) -> None:
    """End the former number, begin the new one."""
    if line.number == number:
        return
    line.numbers[-1].end = world.now
    line.numbers.append(NumberRow(world.next_id("row"), number, world.now, real=real))
    world.lookup.number_changed(line)
