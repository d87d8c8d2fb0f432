"""What of each charge is refunded or about to be, so that no two refunds take the same cent."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.money.money_tables import ChargeRefundsTable
from storage.statement import Command, Query, table

REFUNDS = table(ChargeRefundsTable)


class ChargeRefunds(NamedTuple):
    """A charge's amount, and what of it was taken and not given back."""

    amount: int
    reserved: int


NAMES = ("account", "charge", "amount", "reserved", "updated")
OF_CHARGE: sa.ColumnElement[bool] = (REFUNDS.c.account == sa.bindparam("of")) & (REFUNDS.c.charge == sa.bindparam("named"))
INSERT = Command(
    lambda dialect: (
        dialect.insert(REFUNDS)
        .values({name: sa.bindparam(name) for name in NAMES})
        .on_conflict_do_nothing(index_elements=["account", "charge"])
    )
)
FIND = Query(ChargeRefunds, sa.select(REFUNDS.c.amount, REFUNDS.c.reserved).where(OF_CHARGE))
SET = Command(sa.update(REFUNDS).where(OF_CHARGE).values(reserved=sa.bindparam("taken"), updated=sa.bindparam("now")))
MORE: sa.ColumnElement[int] = REFUNDS.c.reserved + sa.bindparam("more", type_=sa.BigInteger)
TAKE = Command(
    sa.update(REFUNDS).where(OF_CHARGE, REFUNDS.c.amount >= MORE).values(reserved=MORE, updated=sa.bindparam("now", type_=sa.BigInteger))
)


def open_refunds(connection: Connection, *, account: str, charge: str, amount: int, reserved: int, now: float) -> None:
    """The row of a charge, at its first refund."""
    connection.run(INSERT, account=account, charge=charge, amount=amount, reserved=reserved, updated=int(now))


def find_refunds(connection: Connection, *, account: str, charge: str) -> ChargeRefunds | None:
    """What is taken of a charge; None: nobody has refunded it through us yet."""
    return connection.first(FIND, of=account, named=charge)


def set_reserved(connection: Connection, *, account: str, charge: str, reserved: int, now: float) -> None:
    """What is taken by all that is known now; said by whoever has locked the account."""
    connection.run(SET, of=account, named=charge, taken=reserved, now=int(now))


def take_refund(connection: Connection, *, account: str, charge: str, amount: int, now: float) -> bool:
    """Take it, if so much is left."""
    return connection.run(TAKE, of=account, named=charge, more=amount, now=int(now)) == 1
