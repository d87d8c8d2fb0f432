"""How often one receiving host is sent to, whoever's endpoints point at it: nobody can turn this service's webhooks against a host.

Each host has two rates, kept in the database, so that all processes together keep them:

- Endpoints that have yet to answer 2xx, or whose newest attempts failed, share STRICT_RATE a second. A host that answers 2xx more
  often than not earns them more, up to STRICT_RATE + MOST_CREDIT a second; every failure takes two successes' worth away.
- Endpoints that answer 2xx share OPEN_RATE a second. What others do to their host does not slow them.

What finds no place is due again a little later: it is no attempt, and its place in the schedule stays.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple, Protocol

import sqlalchemy as sa

from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Dialect,
    Key,
    Query,
    TableDescription,
    bound_list,
    changes_rows,
    json_rows,
    pack_rows,
    to_milliseconds,
)


class WebhookReceiver(NamedTuple):
    """A host, with two token buckets in thousandths of a delivery, as they were at `at_ms`."""

    host: Key
    strict: int
    open: int
    at_ms: BigInt
    credit: int


class WebhookReceiverTable(TableDescription, row=WebhookReceiver, table=True):
    """A host that events are sent to, whoever's endpoints point at it, and how much it may be sent."""


WEBHOOK_RECEIVER = WebhookReceiverTable.table

STRICT_RATE = 1

STRICT_BURST = 20

OPEN_RATE = 100

OPEN_BURST = 200

MOST_CREDIT = 49

DELIVERY_TOKENS = 1000
"""A delivery, in the thousandths that buckets count: a rate a second is as many of them a millisecond."""

LONGEST_WAIT_MS = 120_000
"""However much waits for a host, each delivery is looked at again so soon: the host may have earned more by then."""

HostOf = Callable[[str], str | None]
"""The host of an endpoint's URL; nothing: no bound, as for this machine itself."""


class UnsentDelivery(Protocol):
    """A delivery that is about to be sent."""

    @property
    def url(self) -> str | None: ...
    @property
    def proven(self) -> int | None: ...
    @property
    def failing_since(self) -> int | None: ...


class PostponedDelivery(NamedTuple):
    """A delivery that its host has no place for, by its place in what was given, and when it is due again."""

    position: int
    due_ms: int


def upsert_receivers_query(dialect: Dialect) -> sa.Executable:
    """The hosts of a claim, in the order of their names; what they have earned is not touched."""
    given = json_rows(dialect, "receivers", "given", host=sa.Text, strict=sa.Integer, open=sa.Integer, at_ms=sa.BigInteger)
    rows = sa.select(*given.c, sa.literal_column("0", sa.Integer)).where(sa.true()).order_by(given.c.host)
    insert = dialect.insert(WEBHOOK_RECEIVER).from_select(["host", "strict", "open", "at_ms", "credit"], rows)
    taken = {name: insert.excluded[name] for name in ("strict", "open", "at_ms")}
    return insert.on_conflict_do_update(index_elements=["host"], set_=taken)


READ_RECEIVERS = Query(
    WebhookReceiver,
    lambda dialect: sa.select(*(WEBHOOK_RECEIVER.c[name] for name in WebhookReceiver._fields)).where(
        WEBHOOK_RECEIVER.c.host.in_(bound_list(dialect, "hosts"))
    ),
)

UPSERT_RECEIVERS = Command(upsert_receivers_query)

EARNED_CREDIT = WEBHOOK_RECEIVER.c.credit + sa.bindparam("more", type_=sa.Integer)

BOUNDED_CREDIT = sa.case((EARNED_CREDIT < 0, 0), (EARNED_CREDIT > MOST_CREDIT, MOST_CREDIT), else_=EARNED_CREDIT)

JUDGE_RECEIVER = Command(
    sa.update(WEBHOOK_RECEIVER)
    .where(WEBHOOK_RECEIVER.c.host == sa.bindparam("named"), WEBHOOK_RECEIVER.c.credit != BOUNDED_CREDIT)
    .values(credit=BOUNDED_CREDIT)
)


def take_receiver_places(
    connection: Connection, *, rows: Sequence[UnsentDelivery], host_of: HostOf, now_ms: int
) -> list[PostponedDelivery]:
    """Count these deliveries, which come in the order in which they are to be sent, against their hosts; those that find no place."""
    hosts = [None if row.url is None else host_of(row.url) for row in rows]
    named = sorted({host for host in hosts if host is not None})
    if not named:
        return []
    known = {row.host: row for row in connection.all(READ_RECEIVERS, hosts=pack_rows([[host] for host in named]))}
    receivers = {host: refilled_receiver(known.get(host), host, now_ms) for host in named}
    postponed, behind = list[PostponedDelivery](), dict.fromkeys(named, 0)
    for position, (row, host) in enumerate(zip(rows, hosts, strict=True)):
        if host is None:
            continue
        proven = bool(row.proven) and row.failing_since is None
        after = take_token(receivers[host], proven)
        if after is None:
            # One behind the other, so that they do not all come back at once; how far is bounded.
            behind[host] += DELIVERY_TOKENS
            wait = (behind[host] - (receivers[host].open if proven else receivers[host].strict)) // receiver_rate(receivers[host], proven)
            postponed.append(PostponedDelivery(position, now_ms + max(1, min(wait, LONGEST_WAIT_MS))))
        else:
            receivers[host] = after
    kept = [(row.host, row.strict, row.open, row.at_ms) for row in receivers.values()]
    connection.run(UPSERT_RECEIVERS, receivers=pack_rows(kept))
    return postponed


def receiver_rate(receiver: WebhookReceiver, proven: bool) -> int:
    """Deliveries a second."""
    return OPEN_RATE if proven else STRICT_RATE + receiver.credit


def refilled_receiver(receiver: WebhookReceiver | None, host: str, now_ms: int) -> WebhookReceiver:
    """The host with what its buckets have won since; a host that was never sent to has them full. `now_ms`: Unix milliseconds."""
    if receiver is None:
        return WebhookReceiver(host, STRICT_BURST * DELIVERY_TOKENS, OPEN_BURST * DELIVERY_TOKENS, now_ms, 0)
    passed = max(0, now_ms - receiver.at_ms)
    strict = min(STRICT_BURST * DELIVERY_TOKENS, receiver.strict + passed * receiver_rate(receiver, False))
    return WebhookReceiver(host, strict, min(OPEN_BURST * DELIVERY_TOKENS, receiver.open + passed * OPEN_RATE), now_ms, receiver.credit)


def take_token(receiver: WebhookReceiver, proven: bool) -> WebhookReceiver | None:
    """The host with one delivery less in the bucket; nothing where none is left."""
    if proven:
        return receiver._replace(open=receiver.open - DELIVERY_TOKENS) if receiver.open >= DELIVERY_TOKENS else None
    return receiver._replace(strict=receiver.strict - DELIVERY_TOKENS) if receiver.strict >= DELIVERY_TOKENS else None


def judge_receivers(connection: Connection, *, earned: Mapping[str, int]) -> None:
    """What attempts earned or cost their hosts. A host that has all it may have, or nothing to lose, costs no write."""
    rows = [{"named": host, "more": more} for host, more in sorted(earned.items()) if more]
    connection.run_many(JUDGE_RECEIVER, rows)


@changes_rows
def sweep_receivers(*, before: Annotated[float, to_milliseconds], most: int) -> sa.Executable:
    """Delete hosts that nothing was sent to since `before` (Unix seconds); returns how many."""
    return sa.delete(WEBHOOK_RECEIVER).where(
        WEBHOOK_RECEIVER.c.host.in_(
            sa.select(WEBHOOK_RECEIVER.c.host).where(WEBHOOK_RECEIVER.c.at_ms < sa.bindparam("before", type_=sa.BigInteger)).limit(most)
        )
    )
