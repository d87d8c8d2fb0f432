"""Events of the payment processor that had their effect, so that each has it once."""

import sqlalchemy as sa

from storage.connection import Connection
from storage.money.money_tables import PaymentEventTable
from storage.statement import Command, table
from storage.sweep import oldest

EVENT = table(PaymentEventTable)
NAMES = ("id", "type", "account", "received")
INSERT = Command(
    lambda dialect: dialect.insert(EVENT).values({name: sa.bindparam(name) for name in NAMES}).on_conflict_do_nothing(index_elements=["id"])
)
SWEEP = oldest(EVENT, EVENT.c.received < sa.bindparam("before"), EVENT.c.received)


def take_event(connection: Connection, *, id: str, type: str, account: str | None, now: float) -> bool:
    """Whether the event is new; its effect belongs into the same transaction."""
    return connection.run(INSERT, id=id, type=type, account=account, received=int(now)) == 1


def sweep_payment_events(connection: Connection, *, before: float, most: int) -> int:
    """Forget the ids of the oldest events that were taken long ago: their records say by themselves what is newer."""
    return connection.run(SWEEP, before=int(before), most=most)
