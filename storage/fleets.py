"""Fleets: what is known of how far the lines of an organisation have been read from the charging system, and who reads them now.

A fleet is an organisation's lines as ONE connection shows them: it has a number of its own, which every row about its lines bears. Another
connection, or another token, is another fleet. A fleet that has ended is never read again; its rows are removed in steps.
"""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Query,
    StatementBuild,
    TableDescription,
    all_rows,
    changes_one,
    first_row,
    insert_once,
    upsert,
    value_or,
    writes,
)
from storage.organisations import ORGANISATION
from storage.replicas import REPLICA


class FleetState(NamedTuple):
    """How far a fleet has been read. Times are Unix seconds; 0: never.

    `ended`: 0, or the fleet's own number once its connection is no more; `due` is then when its rows were first removed. `listed`: when
    the last finished listing began, `listing_seconds` how long it took; `cut`: 1 where the charging system has lines that no list shows.
    `list_due`: when the next listing is due. `parts`: JSON, the beginnings of ICCIDs by which each account was listed. `backoff_until`:
    the charging system asked us to wait. `calls`: calls that reading has made so far. `error` is a sentence of ours.
    """

    id: BigInt
    organisation: str
    identity: str
    instance: str
    began: float
    ended: BigInt
    listed: float
    listing_seconds: float
    list_due: float
    cut: int
    parts: str
    served: float
    due: float
    lease: str
    lease_until: float
    backoff_until: float
    failures: int
    calls: BigInt
    error: str
    error_at: float


class FleetSyncTable(TableDescription, row=FleetState, without=("id",), table=True):
    """One organisation's lines as one connection shows them, and how far they have been read."""

    id: int | None = Field(default=None, sa_column=sa.Column(sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True))
    __table_args__ = (
        sa.Index("fleet_sync_identity", "organisation", "identity", "ended", unique=True),
        sa.Index("fleet_sync_due", "ended", "due"),
    )


class FleetSettingTable(TableDescription, table=True):
    """What an organisation has chosen about its fleet. `personal` 1: customers' names and addresses are kept, so that they are found."""

    organisation: str = Field(primary_key=True)
    personal: int


FLEET = FleetSyncTable.table

FLEET_SETTING = FleetSettingTable.table

IS_CURRENT = FLEET.c.ended == 0

THIS_FLEET = FLEET.c.id == sa.bindparam("fleet", type_=sa.BigInteger)

HOLDS_LEASE = FLEET.c.lease == sa.bindparam("token", type_=sa.Text)

BEGIN_FLEET = Command(
    insert_once(
        FLEET,
        ("organisation", "identity", "instance", "began"),
        ended=0,
        listed=0.0,
        listing_seconds=0.0,
        list_due=0.0,
        cut=0,
        parts="",
        served=0.0,
        due=0.0,
        lease="",
        lease_until=0.0,
        backoff_until=0.0,
        failures=0,
        calls=0,
        error="",
        error_at=0.0,
    )
)

FIND_FLEET = Query(
    FleetState,
    lambda _: sa.select(*(FLEET.c[name] for name in FleetState._fields)).where(
        FLEET.c.organisation == sa.bindparam("organisation"), FLEET.c.identity == sa.bindparam("identity"), IS_CURRENT
    ),
)

HAS_ENDED = {"ended": FLEET.c.id, "lease": "", "lease_until": 0.0, "due": 0.0}

# A simulated network lives in one process and is gone with it: nobody will read that fleet again.
END_ABANDONED = Command(
    sa.update(FLEET)
    .where(
        IS_CURRENT,
        FLEET.c.instance != "",
        FLEET.c.instance.not_in(sa.select(REPLICA.c.id).where(REPLICA.c.expires_at > sa.bindparam("now", type_=sa.Double))),
        FLEET.c.instance != sa.bindparam("instance", type_=sa.Text),
    )
    .values(HAS_ENDED)
)


def begin_fleet(connection: Connection, *, organisation: str, identity: str, instance: str, now: float) -> FleetState:
    """The fleet of `organisation` as `identity` shows it, made where there is none. `instance`: a simulated network's process, or ''."""
    if instance:
        connection.run(END_ABANDONED, now=now, instance=instance)
    connection.run(BEGIN_FLEET, organisation=organisation, identity=identity, instance=instance, began=now)
    found = connection.first(FIND_FLEET, organisation=organisation, identity=identity)
    assert found is not None, "a fleet that was just made is there"
    return found


def find_fleet(connection: Connection, *, organisation: str, identity: str) -> FleetState | None:
    """The fleet of `organisation` as `identity` shows it, which has not ended."""
    return connection.first(FIND_FLEET, organisation=organisation, identity=identity)


@first_row(FleetState)
def fleet_state(*, fleet: int) -> sa.Executable:
    """A fleet by its number, unless it has ended."""
    return sa.select(*(FLEET.c[name] for name in FleetState._fields)).where(THIS_FLEET, IS_CURRENT)


@all_rows(int)
def current_fleets(*, organisation: str) -> sa.Executable:
    """The numbers of the organisation's fleets that have not ended."""
    return sa.select(FLEET.c.id).where(FLEET.c.organisation == organisation, IS_CURRENT).order_by(FLEET.c.id)


@all_rows(int)
def fleets_of_organisation(*, organisation: str) -> sa.Executable:
    """The numbers of all of the organisation's fleets, also those that have ended and whose rows are still being removed."""
    return sa.select(FLEET.c.id).where(FLEET.c.organisation == organisation).order_by(FLEET.c.id)


@writes
def end_fleet(*, fleet: int) -> sa.Executable:
    """Ends one fleet: the connection that it was read by is another one now."""
    return sa.update(FLEET).where(THIS_FLEET, IS_CURRENT).values(HAS_ENDED)


@writes
def end_fleets(*, organisation: str) -> sa.Executable:
    """Ends every fleet of `organisation`, in the commit that ends or replaces its connection: from then on nothing of it is shown."""
    return sa.update(FLEET).where(FLEET.c.organisation == organisation, IS_CURRENT).values(HAS_ENDED)


@writes
def end_simulated_fleets() -> sa.Executable:
    """Ends the fleets of organisations whose account was simulated, now that there is a real charging system."""
    return (
        sa.update(FLEET)
        .where(IS_CURRENT, FLEET.c.organisation.in_(sa.select(ORGANISATION.c.id).where(ORGANISATION.c.simulated == 1)))
        .values(HAS_ENDED)
    )


@all_rows(str)
def connected_without_fleet(*, instance: str, after: str, most: int) -> sa.Executable:
    """Organisations behind the id `after` that are connected and have no fleet yet; `instance`: as `begin_fleet` has it."""
    has_one = sa.exists().where(FLEET.c.organisation == ORGANISATION.c.id, FLEET.c.instance == instance, IS_CURRENT)
    waiting = sa.and_(ORGANISATION.c.mode.is_not(None), ORGANISATION.c.id > after, ~has_one)
    return sa.select(ORGANISATION.c.id).where(waiting).order_by(ORGANISATION.c.id).limit(most)


WRONG_CLOCK_SECONDS = 3600.0
"""No lease and no pause lasts so long, and nothing was read in the future: what says so was written by a clock that was wrong."""

NOW = sa.bindparam("now", type_=sa.Double)

LATER_THAN_ANY = NOW + WRONG_CLOCK_SECONDS

LEASE_IS_FREE = sa.or_(FLEET.c.lease_until < NOW, FLEET.c.lease_until > LATER_THAN_ANY)

MAY_BE_READ = sa.and_(IS_CURRENT, LEASE_IS_FREE, sa.or_(FLEET.c.backoff_until <= NOW, FLEET.c.backoff_until > LATER_THAN_ANY))

IS_DUE = sa.or_(FLEET.c.due <= NOW, FLEET.c.listed > LATER_THAN_ANY)

NEXT_DUE = (
    sa.select(FLEET.c.id)
    .where(
        MAY_BE_READ,
        IS_DUE,
        FLEET.c.instance.in_((sa.bindparam("instance", type_=sa.Text), sa.bindparam("none", "", type_=sa.Text))),
    )
    .order_by(FLEET.c.served)
    .limit(1)
)

CLAIM_NEXT = Query(
    FleetState,
    sa.update(FLEET)
    .where(FLEET.c.id.in_(NEXT_DUE.scalar_subquery()), LEASE_IS_FREE)
    .values(
        lease=sa.bindparam("token", type_=sa.Text),
        lease_until=sa.bindparam("until", type_=sa.Double),
        served=sa.bindparam("now", type_=sa.Double),
    ),
)


@value_or(0.0)
def next_fleet_due(*, now: float, instance: str) -> sa.Executable:
    """When the fleet that waits longest became due; 0.0 where none is due and free. A read, so that idle workers take no lock."""
    return sa.select(FLEET.c.due + 1e-9).where(MAY_BE_READ, IS_DUE, FLEET.c.instance.in_((instance, ""))).order_by(FLEET.c.served).limit(1)


def claim_next_fleet(connection: Connection, *, token: str, now: float, until: float, instance: str) -> FleetState | None:
    """Takes the lease of the due fleet that was served longest ago, until `until`; None where none is due. Times: Unix seconds."""
    return connection.first(CLAIM_NEXT, token=token, now=now, until=until, instance=instance, none="")


@first_row(FleetState)
def claim_fleet(*, fleet: int, token: str, now: float, until: float) -> sa.Executable:
    """Takes the lease of this fleet, whether it is due or not; None while another holds it."""
    return sa.update(FLEET).where(THIS_FLEET, IS_CURRENT, LEASE_IS_FREE).values(lease=token, lease_until=until, served=now)


@changes_one
def renew_fleet_lease(*, fleet: int, token: str, until: float) -> sa.Executable:
    """Holds the lease until `until`, Unix seconds; False where it was lost, or the fleet has ended."""
    return sa.update(FLEET).where(THIS_FLEET, HOLDS_LEASE, IS_CURRENT).values(lease_until=until)


@changes_one
def give_lease_back(
    *, fleet: int, token: str, backoff_until: float, failures: int, calls: int, error: str, error_at: float
) -> sa.Executable:
    """Ends a turn in which `calls` were made; whoever calls this says in the same transaction when the fleet is due again."""
    return (
        sa.update(FLEET)
        .where(THIS_FLEET, HOLDS_LEASE)
        .values(
            lease="",
            lease_until=0.0,
            backoff_until=backoff_until,
            failures=failures,
            calls=FLEET.c.calls + calls,
            error=error,
            error_at=error_at,
        )
    )


LIST_EVERY_SECONDS = 300.0
"""No listing is repeated sooner, unless it is asked for."""


@changes_one
def note_listing(
    *, fleet: int, token: str, began: float, seconds: float, list_due: float, seen: float, cut: int, parts: str
) -> sa.Executable:
    """A listing that began at `began` has ended; the next one is due at `list_due`, or at once if one was asked for meanwhile.

    False where the lease `token` was lost, or the fleet has ended.

    `seen`: when this one was due. `cut`: 1 where lines stayed out of reach.
    """
    due = sa.case((FLEET.c.list_due == seen, list_due), else_=FLEET.c.list_due)
    listed = {"listed": began, "listing_seconds": seconds, "list_due": due, "cut": cut, "parts": parts}
    return sa.update(FLEET).where(THIS_FLEET, HOLDS_LEASE, IS_CURRENT).values(listed)


def is_held_up(fleet: FleetState, now: float) -> bool:
    """Whether the charging system is left alone at `now`, Unix seconds, since it could not be read."""
    return now < fleet.backoff_until <= now + WRONG_CLOCK_SECONDS


def is_dated_ahead(fleet: FleetState, now: float) -> bool:
    """Whether the fleet was listed after `now`, Unix seconds: by a clock that was wrong."""
    return fleet.listed > now + WRONG_CLOCK_SECONDS


def is_listing_due(fleet: FleetState, now: float) -> bool:
    """Whether all lines are to be listed at `now`, Unix seconds."""
    return fleet.list_due <= now or is_dated_ahead(fleet, now)


def is_listing_asked_for(fleet: FleetState) -> bool:
    """Whether the next listing was asked for, since a call of ours has changed a line that no list has shown yet."""
    return fleet.listed > 0 and fleet.list_due < fleet.listed + LIST_EVERY_SECONDS


@writes
def make_fleet_due(*, fleet: int, due: float) -> sa.Executable:
    """The fleet has something to read from `due` on, Unix seconds."""
    return sa.update(FLEET).where(THIS_FLEET, IS_CURRENT).values(due=due)


@writes
def list_fleet_again(*, fleet: int, now: float) -> sa.Executable:
    """The next listing is due now."""
    return sa.update(FLEET).where(THIS_FLEET).values(list_due=now, due=now)


@value_or(-1)
def personal_choice(*, organisation: str) -> sa.Executable:
    """Whether customers' names are kept: 1 or 0 as an admin has chosen; -1: nobody has."""
    return sa.select(FLEET_SETTING.c.personal).where(FLEET_SETTING.c.organisation == organisation)


@writes
def choose_personal(*, organisation: str, personal: int) -> StatementBuild:
    """Keeps (1) or stops keeping (0) customers' names; what was kept is erased by `erase_personal`."""
    return upsert(FLEET_SETTING, key=["organisation"], organisation=organisation, personal=personal)


class EndedFleet(NamedTuple):
    """A fleet that has ended; `due`: when its rows were first removed, Unix seconds, 0.0: not yet."""

    id: int
    due: float


@all_rows(EndedFleet)
def ended_fleets(*, most: int) -> sa.Executable:
    """Fleets that have ended, whose rows are to be removed."""
    return sa.select(FLEET.c.id, FLEET.c.due).where(FLEET.c.ended > 0).order_by(FLEET.c.id).limit(most)


@writes
def note_sweep(*, fleet: int, now: float) -> sa.Executable:
    """The rows of a fleet that has ended were removed at `now`. Its own row stays a while: a write that was under way may come after."""
    return sa.update(FLEET).where(THIS_FLEET, FLEET.c.ended > 0, FLEET.c.due == 0).values(due=now)


@writes
def forget_fleet(*, fleet: int) -> sa.Executable:
    """Removes the row of a fleet that has ended and has no other rows left."""
    return sa.delete(FLEET).where(THIS_FLEET, FLEET.c.ended > 0)


MARKED, NEVER_READ, CHANGED, FINISH_DAY, BACKFILL, LOOK_AGAIN, RADIO = 0, 1, 2, 3, 4, 5, 6
"""What a line waits for, the most pressing first: it was written to or told of; it was never read; it was used; a day of use has
ended; older days are missing; its packages may be others by now, though nothing was told of them; whether a network sees it decides a
verdict."""
