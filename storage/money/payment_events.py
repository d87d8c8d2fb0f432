"""Events of the payment processor that had their effect, so that each has it once."""

import sqlalchemy as sa

from storage.connection import Connection
from storage.money.money_tables import PaymentEventTable
from storage.statement import Command, table

EVENT = table(PaymentEventTable)
NAMES = ("id", "type", "account", "received")
INSERT = Command(
    lambda dialect: dialect.insert(EVENT).values({name: sa.bindparam(name) for name in NAMES}).on_conflict_do_nothing(index_elements=["id"])
)
SWEEP = Command(sa.delete(EVENT).where(EVENT.c.received < sa.bindparam("before")))


def take_event(connection: Connection, *, id: str, type: str, account: str | None, now: float) -> bool:
    """Whether the event is new; its effect belongs into the same transaction."""
    return connection.run(INSERT, id=id, type=type, account=account, received=int(now)) == 1


def sweep_payment_events(connection: Connection, *, before: float) -> int:
    """Forget the ids of events that were taken long ago: their records say by themselves what is newer."""
    return connection.run(SWEEP, before=int(before))
