"""Platform fees, and the affiliates' shares of them."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.people.setup_tables import CommissionTable, PlatformFeeTable
from storage.statement import Command, Dialect, Query, table

FEE, COMMISSION = table(PlatformFeeTable), table(CommissionTable)
RATE_BPS = 1000
WHOLE_BPS = 10_000


class PlatformFee(NamedTuple):
    """A fee that an organisation owes for a month, or has taken back: minor units. `ref` names what it came from."""

    ref: str
    organisation: str
    month: str
    currency: str
    amount: int
    created: float


class Commission(NamedTuple):
    """An affiliate's share of one organisation's fees of one month."""

    id: str
    month: str
    organisation: str
    currency: str
    fees: int
    amount: int


class Earned(NamedTuple):
    """The sum of an affiliate's shares in one currency."""

    currency: str
    amount: int


class Place(NamedTuple):
    """Where a commission stands in the list."""

    month: str
    id: str


KEY = ("affiliate", "month", "currency", "organisation")
# Sort behind every month and every id of today's alphabet.
LAST = Place("9999-12", "com_" + "z" * 27)
INSERT_FEE = Command(
    lambda dialect: (
        dialect.insert(FEE)
        .values({name: sa.bindparam(name) for name in PlatformFee._fields})
        .on_conflict_do_nothing(index_elements=["ref"])
    )
)


def adding(dialect: Dialect) -> sa.Executable:
    """The fee on top of those that the row has; the share is worked out anew from the sum, on the row as it is then."""
    names = (*KEY, "id", "fees", "amount", "updated")
    insert = dialect.insert(COMMISSION).values({name: sa.bindparam(name) for name in names})
    fees = COMMISSION.c.fees + insert.excluded.fees
    share = sa.case((fees > 0, (fees * RATE_BPS + WHOLE_BPS // 2) // WHOLE_BPS), else_=0)
    return insert.on_conflict_do_update(index_elements=KEY, set_={"fees": fees, "amount": share, "updated": insert.excluded.updated})


ADD = Command(adding)
MINE = COMMISSION.c.affiliate == sa.bindparam("affiliate")
PLACE = Query(Place, sa.select(COMMISSION.c.month, COMMISSION.c.id).where(MINE, COMMISSION.c.id == sa.bindparam("commission")))
LIST = Query(
    Commission,
    sa.select(*(COMMISSION.c[name] for name in Commission._fields))
    .where(
        MINE,
        (COMMISSION.c.month < sa.bindparam("month"))
        | ((COMMISSION.c.month == sa.bindparam("month")) & (COMMISSION.c.id < sa.bindparam("after"))),
    )
    .order_by(COMMISSION.c.month.desc(), COMMISSION.c.id.desc())
    .limit(sa.bindparam("most")),
)
SUMS = Query(
    Earned,
    # The sum of big integers is a decimal on PostgreSQL.
    sa.select(COMMISSION.c.currency, sa.cast(sa.func.sum(COMMISSION.c.amount), sa.BigInteger).label("amount"))
    .where(MINE)
    .group_by(COMMISSION.c.currency)
    .order_by(COMMISSION.c.currency),
)


def share_of(fees: int) -> int:
    """The share of a month's fees, half-up in minor units.

    Choice: a month whose fees were taken back earns nothing, and never less than nothing: what other months earned stays earned.
    """
    return (max(fees, 0) * RATE_BPS + WHOLE_BPS // 2) // WHOLE_BPS


def insert_fee(connection: Connection, *, fee: PlatformFee) -> bool:
    """Keep a fee; False when its `ref` was there already."""
    return connection.run(INSERT_FEE, **fee._asdict()) == 1


def add_to_commission(connection: Connection, *, id: str, affiliate: str, fee: PlatformFee) -> None:
    """Count the fee towards the affiliate's share of its month; `id` is the row's where it is the first."""
    connection.run(
        ADD,
        id=id,
        affiliate=affiliate,
        month=fee.month,
        currency=fee.currency,
        organisation=fee.organisation,
        fees=fee.amount,
        amount=share_of(fee.amount),
        updated=fee.created,
    )


def place_of(connection: Connection, *, affiliate: str, commission: str) -> Place | None:
    """Where one of the affiliate's commissions stands."""
    return connection.first(PLACE, affiliate=affiliate, commission=commission)


def list_commissions(connection: Connection, *, affiliate: str, after: Place = LAST, most: int) -> list[Commission]:
    """Newest month first."""
    return connection.all(LIST, affiliate=affiliate, month=after.month, after=after.id, most=most)


def earned(connection: Connection, *, affiliate: str) -> list[Earned]:
    """What all the shares come to, by currency."""
    return connection.all(SUMS, affiliate=affiliate)
