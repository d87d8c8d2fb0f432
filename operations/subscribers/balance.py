"""A line's prepaid balance."""

from operations.deps import Ctx
from operations.services.network.balances import BalanceChange, BalanceChanged, ManagedBalance, refuse_gift, sent
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from registry.errors import EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, Once, operation


class LineBalance(BalanceChange, LineRef):
    """Which line, and how its balance changes."""


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/balance",
    scope=Scope.WRITE,
    once=Once(shown=True),
    upstream=True,
    operator=True,
    moves=True,
    access=own_line,
    raises=[NotFound, EndOfLife, ManagedBalance, OcsError],
    examples=[
        Example("Add five euro", {"iccid": "8988303700000100286", "amount": 5.0}, {"data": {"mode": "adapt", "amount": 5.0}}),
        Example("Empty it", {"iccid": "8988303700000100286", "amount": 0.0, "mode": "set"}, {"data": {"mode": "set", "amount": 0.0}}),
    ],
)
async def modify_subscriber_balance(ctx: Ctx, params: LineBalance, line: Line) -> Data[BalanceChanged]:
    """Add to a line's prepaid balance, lower it, or set it.

    Spent on usage outside packages. `adapt` without a key adds again when it is repeated.

    A balance never goes below 0. In managed mode it can be lowered only: raising it answers 409 `managed_balance`. The service's own
    organisation is the exception.
    """
    seen = line.row.get("balance", 0.0)
    refuse_gift(line.upstream, params, seen)
    amount, put = sent(line.upstream, params, seen)
    await line.upstream.ocs.subscriber.modify_balance(line.subscriber_id, amount, set_balance=put, description=params.description)
    return {"data": {"mode": params.mode, "amount": params.amount}}
