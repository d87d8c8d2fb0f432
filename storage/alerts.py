"""Alerts: which are open, what was left on each account by days, and what organisations have set.

A row of an open alert is there while it is open, so that it is opened once and closed once: whoever inserts or removes the row writes the
event, in the same transaction. One of a quota stays until its day has long ended.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlmodel import Field

from registry.clock import DAY_SECONDS
from storage.engine.sql import (
    CLUSTERED,
    BigInt,
    Command,
    Connection,
    Key,
    Query,
    StatementBuild,
    TableDescription,
    all_rows,
    bound_list,
    changes_one,
    changes_rows,
    delete_oldest,
    insert_once,
    pack_rows,
    runs_in_thread,
    upsert,
    writes,
)
from storage.fleet_lines import FLEET_LINE, LINE_IS_THERE, OF_FLEET
from storage.fleets import FLEET, IS_CURRENT
from storage.issuance import ISSUANCE
from storage.organisations import ORGANISATION
from storage.quota import QUOTA

QUOTA_KINDS = ("quota_80", "quota_exceeded")
"""Alerts that open once in a day, and are closed by nothing but its end."""


class AlertRow(NamedTuple):
    """An open alert. `kind`: balance, stock, sync, upstream, or one of QUOTA_KINDS; `subject`: the account, or the day of a quota, or ''.

    `opened`: Unix seconds. `level`, `daily`: what was left when it opened, and used a day, in the kind's own unit (EUR, eSIMs, seconds,
    calls). `topped`: since when a top-up holds, Unix seconds; 0: none does.
    """

    organisation: Key
    kind: Key
    subject: Key
    opened: float
    level: float
    daily: float
    topped: float


class AlertTable(TableDescription, row=AlertRow, table=True):
    """An open alert of an organisation."""

    __table_args__ = (sa.Index("alert_opened", "kind", "opened"), CLUSTERED)


DayKey: TypeAlias = Annotated[int, Field(primary_key=True, sa_column_kwargs={"autoincrement": False})]


class AlertDay(NamedTuple):
    """What was left on an account at the last look of a UTC day, and what was used in the day as far as it was looked at.

    `day` counts from the epoch; `began`, `ended`: from when to when it was looked at, Unix seconds. Balances are in EUR, stocks in eSIMs.
    """

    organisation: Key
    kind: Key
    subject: Key
    day: DayKey
    began: float
    ended: float
    level: float
    used: float


class AlertDayTable(TableDescription, row=AlertDay, table=True):
    """A day of an account's balance or stock."""

    __table_args__ = (
        sa.Index("alert_day_ended", "ended"),
        CLUSTERED,
    )


class AlertSettings(NamedTuple):
    """Which alerts an organisation wants (1 or 0), below how many days left they open and above how many they close, and at which share
    of the quota one opens."""

    balance: int = 1
    stock: int = 1
    sync: int = 1
    quota: int = 1
    upstream: int = 1
    days_to_open: int = 7
    days_to_close: int = 10
    quota_percent: int = 80


class AlertSettingRow(NamedTuple):
    """What an organisation has set; the fields as in AlertSettings."""

    organisation: Key
    balance: int
    stock: int
    sync: int
    quota: int
    upstream: int
    days_to_open: int
    days_to_close: int
    quota_percent: int

    @property
    def settings(self) -> AlertSettings:
        """The same without the organisation."""
        return AlertSettings(*self[1:])


class AlertSettingTable(TableDescription, row=AlertSettingRow, table=True):
    """What an organisation has set of its alerts."""


ALERT = AlertTable.table

ALERT_DAY = AlertDayTable.table

ALERT_SETTING = AlertSettingTable.table


class WatchedOrganisation(NamedTuple):
    """An organisation. `mode`: how it is connected, None where it is not; `used`: calls charged or leased in the period that was asked."""

    id: str
    tier: str
    mode: str | None
    used: int


@all_rows(WatchedOrganisation)
def watched_organisations(*, after: str, most: int, period: str) -> sa.Executable:
    """Organisations behind the id `after`, in the order of their ids. `period`: a UTC day."""
    of_today = sa.and_(QUOTA.c.organisation == ORGANISATION.c.id, QUOTA.c.period == period)
    used = sa.func.coalesce(QUOTA.c.used, 0).label("used")
    return (
        sa.select(ORGANISATION.c.id, ORGANISATION.c.tier, ORGANISATION.c.mode, used)
        .select_from(ORGANISATION.outerjoin(QUOTA, of_today))
        .where(ORGANISATION.c.id > after)
        .order_by(ORGANISATION.c.id)
        .limit(most)
    )


class WatchedFleet(NamedTuple):
    """A fleet, and how far it was listed; as FleetState has it."""

    organisation: str
    id: int
    instance: str
    listed: float
    listing_seconds: float
    cut: int


class AlertFacts(NamedTuple):
    """What is known of some organisations: their open alerts, their settings, and their fleets that have not ended."""

    alerts: Sequence[AlertRow]
    settings: Sequence[AlertSettingRow]
    fleets: Sequence[WatchedFleet]


ALERTS_OF = Query(
    AlertRow,
    lambda dialect: sa.select(*(ALERT.c[name] for name in AlertRow._fields)).where(
        ALERT.c.organisation.in_(bound_list(dialect, "organisations"))
    ),
)

SETTINGS_OF = Query(
    AlertSettingRow,
    lambda dialect: sa.select(*(ALERT_SETTING.c[name] for name in AlertSettingRow._fields)).where(
        ALERT_SETTING.c.organisation.in_(bound_list(dialect, "organisations"))
    ),
)

FLEETS_OF = Query(
    WatchedFleet,
    lambda dialect: sa.select(*(FLEET.c[name] for name in WatchedFleet._fields)).where(
        FLEET.c.organisation.in_(bound_list(dialect, "organisations")), IS_CURRENT
    ),
)


def alert_facts(connection: Connection, *, organisations: Sequence[str]) -> AlertFacts:
    """What is known of these organisations."""
    given = pack_rows([[each] for each in organisations])
    return AlertFacts(
        connection.all(ALERTS_OF, organisations=given),
        connection.all(SETTINGS_OF, organisations=given),
        connection.all(FLEETS_OF, organisations=given),
    )


@changes_one
def open_alert(*, row: AlertRow) -> StatementBuild:
    """Opens an alert; False where it is open already. Whoever gets True writes the event in the same transaction."""
    return insert_once(ALERT, key=["organisation", "kind", "subject"], **row._asdict())


@changes_one
def close_alert(*, row: AlertRow) -> sa.Executable:
    """Closes the alert that was opened at `row.opened`; False where somebody else has. Whoever gets True writes the event."""
    same = sa.and_(ALERT.c.organisation == row.organisation, ALERT.c.kind == row.kind, ALERT.c.subject == row.subject)
    return sa.delete(ALERT).where(same, ALERT.c.opened == row.opened)


@writes
def note_top_up(*, row: AlertRow, since: float) -> sa.Executable:
    """A top-up holds since then, Unix seconds; 0: none does."""
    same = sa.and_(ALERT.c.organisation == row.organisation, ALERT.c.kind == row.kind, ALERT.c.subject == row.subject)
    return sa.update(ALERT).where(same, ALERT.c.opened == row.opened).values(topped=since)


@writes
def forget_alerts(*, organisation: str) -> sa.Executable:
    """What was open of a connection that is no more; alerts of the quota stay."""
    return sa.delete(ALERT).where(ALERT.c.organisation == organisation, ALERT.c.kind.not_in(QUOTA_KINDS))


DAYS_OF = Query(
    AlertDay,
    sa.select(*(ALERT_DAY.c[name] for name in AlertDay._fields))
    .where(ALERT_DAY.c.organisation == sa.bindparam("organisation"), ALERT_DAY.c.day >= sa.bindparam("first", type_=sa.Integer))
    .order_by(ALERT_DAY.c.kind, ALERT_DAY.c.subject, ALERT_DAY.c.day),
)

PUT_DAY = Command(upsert(ALERT_DAY, AlertDay._fields, key=["organisation", "kind", "subject", "day"]))


def days_of_alerts(connection: Connection, *, organisation: str, first: int) -> list[AlertDay]:
    """The days of each of the organisation's accounts from the day `first` on, oldest first."""
    return connection.all(DAYS_OF, organisation=organisation, first=first)


def put_alert_days(connection: Connection, *, days: Sequence[AlertDay]) -> None:
    """Keeps the days, in place of what was known of them."""
    connection.run_many(PUT_DAY, [day._asdict() for day in days])


class FreeEsims(NamedTuple):
    """How many eSIMs of an account can be issued, as the fleet was read last."""

    account_id: BigInt
    esims: int


FREE_ESIMS = Query(
    FreeEsims,
    sa.select(FLEET_LINE.c.account_id, sa.func.count().label("esims"))
    .where(OF_FLEET, LINE_IS_THERE, FLEET_LINE.c.sim_status == "FREE", FLEET_LINE.c.esim == 1)
    .group_by(FLEET_LINE.c.account_id),
)


@runs_in_thread
def free_esims(connection: Connection, *, fleet: int) -> dict[int, int]:
    """The free eSIMs of each account of a fleet that has some."""
    return dict(connection.all(FREE_ESIMS, fleet=fleet))


class IssuedEsims(NamedTuple):
    """How many eSIMs were issued from an account since a moment, and how many of them before another one."""

    account_id: BigInt
    esims: int
    earlier: int


ISSUED_ESIMS = Query(
    IssuedEsims,
    lambda dialect: (
        sa.select(
            ISSUANCE.c.account_id,
            sa.func.count().label("esims"),
            sa.func.sum(sa.case((ISSUANCE.c.dispatched < sa.bindparam("middle", type_=sa.Double), 1), else_=0)).label("earlier"),
        )
        .where(
            ISSUANCE.c.account_id.in_(bound_list(dialect, "accounts", sa.BigInteger)),
            ISSUANCE.c.state == "issued",
            ISSUANCE.c.updated >= sa.bindparam("since", type_=sa.Double),  # found by the index; nothing is issued before it is sent
            ISSUANCE.c.dispatched >= sa.bindparam("since", type_=sa.Double),
        )
        .group_by(ISSUANCE.c.account_id)
    ),
)


def issued_esims(connection: Connection, *, accounts: Sequence[int], day: int) -> dict[int, tuple[int, int]]:
    """How many eSIMs were issued from each account on the UTC day `day`, and on the day before; who has none is left out."""
    middle = float(day * DAY_SECONDS)
    given = pack_rows([[each] for each in accounts])
    found = connection.all(ISSUED_ESIMS, accounts=given, since=middle - DAY_SECONDS, middle=middle)
    return {row.account_id: (row.esims - row.earlier, row.earlier) for row in found}


@writes
def put_alert_settings(*, row: AlertSettingRow) -> StatementBuild:
    """Keeps what an organisation has set."""
    return upsert(ALERT_SETTING, key=["organisation"], **row._asdict())


@changes_rows
def sweep_alert_days(*, before: float, most: int) -> sa.Executable:
    """Forgets the oldest days of balances and stocks; returns how many. `before`: Unix seconds."""
    return delete_oldest(ALERT_DAY, ALERT_DAY.c.ended < before, ALERT_DAY.c.ended, most)


@changes_rows
def sweep_quota_alerts(*, before: float, most: int) -> sa.Executable:
    """Forgets the oldest alerts of quotas, whose days have ended; returns how many. `before`: Unix seconds."""
    return delete_oldest(ALERT, sa.and_(ALERT.c.kind.in_(QUOTA_KINDS), ALERT.c.opened < before), ALERT.c.opened, most)
