"""What a change set takes from the limits of its asker's credential: reserved when it is applied, given back for what was not done."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import cast

import orjson

from operations.changes.plans.changes import read_change
from operations.changes.plans.rows import row_operations
from operations.changes.plans.views import NETWORK_CURRENCY
from operations.deps import Ctx, Deps
from registry.caller import Money
from registry.errors import Restricted
from registry.operation import NOTHING_DUE, Due, SpendKind
from registry.ports import SpendingCharge
from registry.spending import check_due, limits_of, spending_charges
from storage.change_rows import UNBOUNDED_COST, ChangeRow, known_cost, list_rows
from storage.change_sets import ChangeSet
from storage.engine.sql import Connection
from storage.spending import CountedCharge, give_back_spending, read_spending

ROWS_READ_AT_ONCE = 1000
KEPT_STATES = ("done", "unknown")
"""Rows whose part of the reservation is kept: they made due what they make due, or may have."""


def due_of_set(deps: Deps, row: ChangeSet) -> Due | SpendKind:
    """What the rows make due together; OPEN where nobody can say of a row."""
    operations = deps.internal_calls.pipeline.catalogue.operations
    names = row_operations(read_change(row.change), undoes=bool(row.undo_of))
    unbounded = row.largest_cost >= UNBOUNDED_COST or resumes_series(row)
    if unbounded or any(operations[name].spends is SpendKind.OPEN for name in names):
        return SpendKind.OPEN
    return Due((Money(row.cost, NETWORK_CURRENCY),), largest=(Money(row.largest_cost, NETWORK_CURRENCY),))


def resumes_series(row: ChangeSet) -> bool:
    """Whether packages come again by this set. Choice: nobody says what those cost, since somebody may have assigned them long ago."""
    return bool(row.undo_of) and row.action == "stop_series"


def calls_of(rows: Iterable[ChangeRow]) -> Counter[str]:
    """How often the rows call which operation."""
    found = Counter[str]()
    for row in rows:
        found.update(operation for operation, _ in cast("list[tuple[str, object]]", orjson.loads(row.steps)))
    return found


def calls_made(rows: Iterable[ChangeRow]) -> Counter[str]:
    """How often rows that failed half-way called which operation before."""
    found = Counter[str]()
    for row in rows:
        found.update(operation for operation, _ in cast("list[tuple[str, object]]", orjson.loads(row.steps))[: row.step])
    return found


async def times_charges(ctx: Ctx, row: ChangeSet) -> tuple[SpendingCharge, ...]:
    """What the rows take from limits by operation (`times`)."""
    limits = limits_of(ctx.caller)
    if not any(each.times for each in limits):
        return ()
    after, found = 0, Counter[str]()
    while rows := await ctx.deps.store.read(list_rows, change_set=row.id, which="planned", after=after, most=ROWS_READ_AT_ONCE):
        found += calls_of(rows)
        after = rows[-1].number
    return tuple(sorted(charge for name, calls in found.items() for charge in spending_charges(limits, NOTHING_DUE, name, ctx.now, calls)))


def money_charges(ctx: Ctx) -> tuple[SpendingCharge, ...]:
    """What the rows take from limits of money: the pipeline takes it with the call that applies the set."""
    return () if isinstance(ctx.due, SpendKind) else spending_charges(limits_of(ctx.caller), ctx.due, "", ctx.now)


def stored_charges(charges: Sequence[SpendingCharge]) -> str:
    """The text under which charges are kept."""
    return orjson.dumps([[charge.credential, charge.period, charge.subject, charge.amount] for charge in charges]).decode()


async def require_plan_fits(ctx: Ctx, rows: Sequence[ChangeRow]) -> None:
    """Raises Restricted where the rows are past a limit of the credential, and says how many of them fit."""
    planned = [row for row in rows if row.state == "planned"]
    limits = limits_of(ctx.caller)
    if not limits or not planned:
        return
    largest = Money(max(known_cost(row.cost) for row in planned), NETWORK_CURRENCY)
    check_due(Due(largest=(largest,)), limits)
    most = len(planned)
    for charge, used in await counted(ctx, planned):
        most = min(most, rows_that_fit(planned, charge, charge.most - used))
    if most < len(planned):
        raise Restricted(
            f"lines: the plan has {len(planned)} rows, and {most} of them fit into what the limits of this credential leave; nothing was "
            "planned",
            param="lines",
            hint=f"Plan the first {most} lines, or use a credential with larger limits; explain_key shows what is left" if most else None,
        )


async def counted(ctx: Ctx, planned: Sequence[ChangeRow]) -> list[tuple[SpendingCharge, int]]:
    """Every charge that the rows would make, with what is used up of its limit already."""
    limits, total = limits_of(ctx.caller), Money(sum(known_cost(row.cost) for row in planned), NETWORK_CURRENCY)
    charges = list(spending_charges(limits, Due((total,)), "", ctx.now))
    for name, calls in calls_of(planned).items():
        charges += spending_charges(limits, NOTHING_DUE, name, ctx.now, calls)
    store = ctx.deps.store
    return [
        (charge, await store.read(read_spending, credential=charge.credential, period=charge.period, subject=charge.subject))
        for charge in charges
    ]


def rows_that_fit(planned: Sequence[ChangeRow], charge: SpendingCharge, left: int) -> int:
    """How many rows from the first one on fit into `left`, minor units or calls."""
    taken = 0
    for place, row in enumerate(planned):
        taken += calls_of([row])[charge.subject] if charge.limit == "times" else known_cost(row.cost)
        if taken > left:
            return place
    return len(planned)


def give_back_unsent(connection: Connection, *, row: ChangeSet) -> None:
    """Gives back what a set that has ended had reserved for calls that were not made, and for rows that did nothing."""
    if not row.charged:
        return
    calls, money, after = Counter[str](), 0, 0
    while rows := list_rows(connection, change_set=row.id, which="all", after=after, most=ROWS_READ_AT_ONCE):
        unused = [each for each in rows if each.state not in KEPT_STATES and each.steps != "[]"]
        calls += calls_of(unused) - calls_made(unused)
        money += sum(known_cost(each.cost) for each in unused if not each.step)
        after = rows[-1].number
    charged = [CountedCharge(*cast("tuple[str, str, str, int]", each)) for each in orjson.loads(row.charged)]
    amounts = {NETWORK_CURRENCY: money, **calls}
    unspent = [charge._replace(amount=min(charge.amount, amounts.get(charge.subject, 0))) for charge in charged]
    give_back_spending(connection, charges=[charge for charge in unspent if charge.amount])
