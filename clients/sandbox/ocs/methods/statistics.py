"""What a line used, and its signalling; a week at most."""

from datetime import date, timedelta

from clients.sandbox.ocs import statistics
from clients.sandbox.ocs.entities import Line, Token
from clients.sandbox.ocs.moments import stamp
from clients.sandbox.ocs.params import Fields, day, refuse
from clients.sandbox.ocs.resolve import flat_line, nested_line
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import lean

LONGEST = timedelta(days=6)


def get_subscriber_active_period(world: World, caller: Token, params: object) -> object:
    """First and last use."""
    line = flat_line(world, caller, params)
    first, last = line.first_usage_at, line.last_usage_at
    period = {"start": stamp(first), "end": stamp(last)} if first is not None and last is not None else None
    return lean({"subscriberId": line.id, "period": period})


def subscriber_usage_over_period(world: World, caller: Token, params: object) -> object:
    """Call records of up to seven days, added up."""
    line, first, last = read_period(world, caller, params)
    return statistics.usage_over(world, line, first, last)


def subscriber_network_events_over_period(world: World, caller: Token, params: object) -> object:
    """Signalling of up to seven days."""
    line, first, last = read_period(world, caller, params)
    return statistics.events_over(world, line, first, last)


def read_period(world: World, caller: Token, params: object) -> tuple[Line, date, date]:
    """The line and its days, both ends included."""
    fields = Fields(params)
    period = fields.nested("period")
    first, last = period.need("start", day), period.need("end", day)
    period.done()
    if not first <= last <= first + LONGEST:
        raise refuse("params.period must have 1 to 7 days, both ends included, and not end before it starts")
    return nested_line(world, caller, fields), first, last
