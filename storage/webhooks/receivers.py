"""How often one receiving host is sent to, whoever's endpoints point at it: nobody can turn this service's webhooks against a host.

Each host has two rates, kept in the database, so that all processes together keep them:

- Endpoints that have yet to answer 2xx, or whose newest attempts failed, share STRICT a second. A host that answers 2xx more often than
  not earns them more, up to STRICT + MOST_CREDIT a second; every failure takes two successes' worth away.
- Endpoints that answer 2xx share OPEN a second. What others do to their host does not slow them.

What finds no place is due again a little later: it is no attempt, and its place in the schedule stays.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import sqlalchemy as sa

from storage.connection import Connection
from storage.listed import listed, packed
from storage.schema import WebhookReceiverTable
from storage.statement import Command, Dialect, Query, table

RECEIVER = table(WebhookReceiverTable)
STRICT, STRICT_BURST = 1, 20
OPEN, OPEN_BURST = 100, 200
MOST_CREDIT = 49
ONE = 1000
"""A delivery, in the thousandths that buckets count: a rate a second is as many of them a millisecond."""
LONGEST_WAIT_MS = 120_000
"""However much waits for a host, each delivery is looked at again so soon: the host may have earned more by then."""

HostOf = Callable[[str], str | None]
"""The host of an endpoint's URL; nothing: no bound, as for this machine itself."""


class Waits(Protocol):
    """A delivery that is about to be sent."""

    @property
    def url(self) -> str | None: ...
    @property
    def proven(self) -> int | None: ...
    @property
    def failing_since(self) -> int | None: ...


W = TypeVar("W", bound=Waits)


class Receiver(NamedTuple):
    """A host, with two token buckets in thousandths of a delivery, as they were at `at_ms`."""

    host: str
    strict: int
    open: int
    at_ms: int
    credit: int


class Postponed(NamedTuple):
    """A delivery that its host has no place for, by its place in what was given, and when it is due again."""

    position: int
    due_ms: int


def keeping(dialect: Dialect) -> sa.Executable:
    """The hosts of a claim, in the order of their names; what they have earned is not touched."""
    given = listed(dialect, "receivers", "given", host=sa.Text, strict=sa.Integer, open=sa.Integer, at_ms=sa.BigInteger)
    rows = sa.select(*given.c, sa.literal_column("0", sa.Integer)).where(sa.true()).order_by(given.c.host)
    insert = dialect.insert(RECEIVER).from_select(["host", "strict", "open", "at_ms", "credit"], rows)
    taken = {name: insert.excluded[name] for name in ("strict", "open", "at_ms")}
    return insert.on_conflict_do_update(index_elements=["host"], set_=taken)


READ = Query(
    Receiver,
    lambda dialect: sa.select(*(RECEIVER.c[name] for name in Receiver._fields)).where(
        RECEIVER.c.host.in_(sa.select(listed(dialect, "hosts", "asked", host=sa.Text).c.host))
    ),
)
KEEP = Command(keeping)
EARNED = RECEIVER.c.credit + sa.bindparam("more", type_=sa.Integer)
WITHIN = sa.case((EARNED < 0, 0), (EARNED > MOST_CREDIT, MOST_CREDIT), else_=EARNED)
JUDGE = Command(sa.update(RECEIVER).where(RECEIVER.c.host == sa.bindparam("named"), RECEIVER.c.credit != WITHIN).values(credit=WITHIN))
SWEEP = Command(
    sa.delete(RECEIVER).where(
        RECEIVER.c.host.in_(
            sa.select(RECEIVER.c.host).where(RECEIVER.c.at_ms < sa.bindparam("before_ms", type_=sa.BigInteger)).limit(sa.bindparam("most"))
        )
    )
)


def take_places(connection: Connection, *, rows: Sequence[Waits], host_of: HostOf, now_ms: int) -> list[Postponed]:
    """Count these deliveries, which come in the order in which they are to be sent, against their hosts; those that find no place."""
    hosts = [None if row.url is None else host_of(row.url) for row in rows]
    named = sorted({host for host in hosts if host is not None})
    if not named:
        return []
    known = {row.host: row for row in connection.all(READ, hosts=packed([[host] for host in named]))}
    receivers = {host: filled(known.get(host), host, now_ms) for host in named}
    postponed, behind = list[Postponed](), dict.fromkeys(named, 0)
    for position, (row, host) in enumerate(zip(rows, hosts, strict=True)):
        if host is None:
            continue
        proven = bool(row.proven) and row.failing_since is None
        after = taken(receivers[host], proven)
        if after is None:
            # One behind the other, so that they do not all come back at once; how far is bounded.
            behind[host] += ONE
            wait = (behind[host] - (receivers[host].open if proven else receivers[host].strict)) // rate_of(receivers[host], proven)
            postponed.append(Postponed(position, now_ms + max(1, min(wait, LONGEST_WAIT_MS))))
        else:
            receivers[host] = after
    kept = [(row.host, row.strict, row.open, row.at_ms) for row in receivers.values()]
    connection.run(KEEP, receivers=packed(kept))
    return postponed


def rate_of(receiver: Receiver, proven: bool) -> int:
    """Deliveries a second."""
    return OPEN if proven else STRICT + receiver.credit


def filled(receiver: Receiver | None, host: str, now_ms: int) -> Receiver:
    """The host with what its buckets have won since; a host that was never sent to has them full."""
    if receiver is None:
        return Receiver(host, STRICT_BURST * ONE, OPEN_BURST * ONE, now_ms, 0)
    passed = max(0, now_ms - receiver.at_ms)
    strict = min(STRICT_BURST * ONE, receiver.strict + passed * rate_of(receiver, False))
    return Receiver(host, strict, min(OPEN_BURST * ONE, receiver.open + passed * OPEN), now_ms, receiver.credit)


def taken(receiver: Receiver, proven: bool) -> Receiver | None:
    """The host with one delivery less in the bucket; nothing where none is left."""
    if proven:
        return receiver._replace(open=receiver.open - ONE) if receiver.open >= ONE else None
    return receiver._replace(strict=receiver.strict - ONE) if receiver.strict >= ONE else None


def judge_receivers(connection: Connection, *, earned: Mapping[str, int]) -> None:
    """What attempts earned or cost their hosts. A host that has all it may have, or nothing to lose, costs no write."""
    rows = [{"named": host, "more": more} for host, more in sorted(earned.items()) if more]
    connection.run_many(JUDGE, rows)


def sweep_receivers(connection: Connection, *, before: float, most: int) -> int:
    """Forget hosts that nothing was sent to since then."""
    return connection.run(SWEEP, before_ms=int(before * 1000), most=most)
