"""What credentials with limits have made due, and how often they called what: exact counters, charged with the calls that they count."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.ports import SpendingCharge
from registry.spending import limit_reached
from storage.engine.sql import BigInt, Command, Connection, Key, Query, TableDescription, all_rows, value_or


class SpendingTable(TableDescription, table=True):
    """What was taken from a limit: `used` of `subject`, a currency (minor units) or an operation (calls), in a UTC day or month."""

    credential: Key
    period: Key
    subject: Key
    used: BigInt


class SpendingChargeTable(TableDescription, table=True):
    """What one call took that stands between two commits, so that it is given back once at most: `call` is its request id."""

    call: Key
    credential: Key
    period: Key
    subject: Key
    amount: BigInt
    __table_args__ = (sa.Index("spending_charge_period", "period"),)


SPENDING = SpendingTable.table

SPENDING_CHARGE = SpendingChargeTable.table

COUNTER_KEY = ("credential", "period", "subject")

TAKE_SPENDING = Query(
    int,
    lambda dialect: (
        dialect.insert(SPENDING)
        .values({**{name: sa.bindparam(name) for name in COUNTER_KEY}, "used": sa.bindparam("amount")})
        .on_conflict_do_update(
            index_elements=COUNTER_KEY,
            set_={"used": SPENDING.c.used + sa.bindparam("amount")},
            where=SPENDING.c.used <= sa.bindparam("room"),
        )
        .returning(SPENDING.c.used)
    ),
)


@value_or(0)
def read_spending(*, credential: str, period: str, subject: str) -> sa.Executable:
    """What `credential` has used of `subject` in `period`: minor units of a currency, or calls of an operation."""
    return sa.select(SPENDING.c.used).where(
        *(SPENDING.c[name] == value for name, value in (("credential", credential), ("period", period), ("subject", subject)))
    )


def reserve_spending(connection: Connection, *, charges: Sequence[SpendingCharge], now: float) -> None:
    """Take every charge, or none: Restricted names the first limit that has too little left, and undoes the transaction.

    One statement a charge, however many calls it is for. `now`: Unix seconds.
    """
    for charge in charges:
        taken = None
        if charge.amount <= charge.most:
            taken = connection.first(
                TAKE_SPENDING,
                credential=charge.credential,
                period=charge.period,
                subject=charge.subject,
                amount=charge.amount,
                room=charge.most - charge.amount,
            )
        if taken is None:
            used = read_spending(connection, credential=charge.credential, period=charge.period, subject=charge.subject)
            raise limit_reached(charge, used, now)


class CountedCharge(NamedTuple):
    """What was added to one counter."""

    credential: str
    period: str
    subject: str
    amount: int


INSERT_CHARGE = Command(sa.insert(SPENDING_CHARGE).values({name: sa.bindparam(name) for name in ("call", *CountedCharge._fields)}))

RETURN_SPENDING = Command(
    sa.update(SPENDING)
    .where(*(SPENDING.c[name] == sa.bindparam("of_" + name) for name in COUNTER_KEY))
    .values(used=SPENDING.c.used - sa.bindparam("amount"))
)


def keep_charges(connection: Connection, *, call: str, charges: Sequence[SpendingCharge]) -> None:
    """Remember what the call with the request id `call` took, until it is known whether it did anything."""
    connection.run_many(
        INSERT_CHARGE, [{"call": call, **{name: getattr(each, name) for name in CountedCharge._fields}} for each in charges]
    )


@all_rows(CountedCharge)
def take_charges(*, call: str) -> sa.Executable:
    """What the call with the request id `call` took, which is forgotten by this."""
    return sa.delete(SPENDING_CHARGE).where(SPENDING_CHARGE.c.call == call)


def give_back_call(connection: Connection, *, call: str) -> None:
    """Give back what the call with the request id `call` took, if it took anything and that was not given back before."""
    give_back_spending(connection, charges=take_charges(connection, call=call))


def give_back_spending(connection: Connection, *, charges: Iterable[CountedCharge | SpendingCharge]) -> None:
    """Give back what was taken for calls that did nothing. Whoever calls it makes sure that it happens once."""
    for each in sorted(charges):  # the order in which they are taken, so that no two transactions wait for each other
        connection.run(RETURN_SPENDING, of_credential=each.credential, of_period=each.period, of_subject=each.subject, amount=each.amount)


FORGET_SPENDING = tuple(Command(sa.delete(table).where(table.c.period < sa.bindparam("before"))) for table in (SPENDING, SPENDING_CHARGE))


def sweep_spending(connection: Connection, *, before: str) -> None:
    """Forget the counters of UTC days and months before the day `before`."""
    for forget in FORGET_SPENDING:
        connection.run(forget, before=before)
