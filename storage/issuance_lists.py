"""Lists of the issuance ledger of an organisation, what was asked for last first.

A list is made of parts, one for each state, where accounts are named one for each state of each of them: an index has each part in this
order, so that it is read from its beginning and no further than a page is long. What eSIMs were drawn under is found by the ICCID: few keys
ever had the same one. What drew the lines with some tags is found by these lines, however long the ledger is.
"""

from collections.abc import Collection, Sequence
from heapq import nlargest
from itertools import product
from typing import NamedTuple, get_args

import sqlalchemy as sa

from storage.engine.drivers import Value
from storage.engine.sql import Connection, Query, bound_list, pack_rows, unindexed
from storage.issuance import ISSUANCE, ISSUANCE_COLUMNS, IssuanceRow, IssuanceState
from storage.line_tags import LINE_TAG, tags_of_lines

ISSUANCE_STATES: Sequence[IssuanceState] = get_args(IssuanceState)


class IssuancePlace(NamedTuple):
    """Where a page of the ledger begins: behind the row with this key, whose call was sent then, Unix seconds."""

    dispatched: float
    key: str


LEDGER_BEGIN = IssuancePlace(1e15, "")
"""Before all rows: the moment is later than any."""


class LedgerBounds(NamedTuple):
    """The rows that a credential may see: what drew lines with these ICCIDs or tags, or was drawn from these accounts; None: all."""

    iccids: Collection[str] | None
    accounts: Collection[int] | None
    tags: Collection[str] | None


class LedgerFilter(NamedTuple):
    """Which rows, and where the page begins."""

    states: Sequence[str]
    bounds: LedgerBounds
    behind: IssuancePlace


BEHIND_MOMENT = sa.bindparam("dispatched", type_=sa.Double)

BEHIND_PLACE = (ISSUANCE.c.dispatched < BEHIND_MOMENT) | (
    (ISSUANCE.c.dispatched == BEHIND_MOMENT) & (ISSUANCE.c.key < sa.bindparam("behind", type_=sa.Text))
)

OWN_ISSUANCE = ISSUANCE.c.organisation == sa.bindparam("organisation", type_=sa.Text)


def newest_issuances_of_part(*of_part: sa.ColumnElement[bool]) -> sa.Executable:
    """The newest rows of a part, behind the place and not before `above`."""
    bounds = (ISSUANCE.c.dispatched <= BEHIND_MOMENT, ISSUANCE.c.dispatched >= sa.bindparam("above", type_=sa.Double), BEHIND_PLACE)
    return (
        sa.select(*ISSUANCE_COLUMNS)
        .where(*of_part, ISSUANCE.c.state == sa.bindparam("state", type_=sa.Text), *bounds)
        .order_by(ISSUANCE.c.dispatched.desc(), ISSUANCE.c.key.desc())
        .limit(sa.bindparam("most"))
    )


NEWEST_OF_STATE = Query(IssuanceRow, lambda _: newest_issuances_of_part(OWN_ISSUANCE))

NEWEST_OF_ACCOUNT = Query(
    IssuanceRow, lambda _: newest_issuances_of_part(ISSUANCE.c.account_id == sa.bindparam("account", type_=sa.BigInteger), OWN_ISSUANCE)
)

ISSUANCES_OF_ICCIDS = Query(
    IssuanceRow,
    lambda dialect: sa.select(*ISSUANCE_COLUMNS).where(OWN_ISSUANCE, ISSUANCE.c.iccid.in_(bound_list(dialect, "iccids"))),
)

TAGGED_LINES = sa.select(LINE_TAG.c.iccid).where(
    LINE_TAG.c.organisation == sa.bindparam("organisation", type_=sa.Text), LINE_TAG.c.tag == sa.bindparam("tag", type_=sa.Text)
)

NEWEST_OF_TAG = Query(
    IssuanceRow,
    lambda dialect: (
        sa.select(*ISSUANCE_COLUMNS)
        .where(
            OWN_ISSUANCE,
            ISSUANCE.c.iccid.in_(TAGGED_LINES),
            unindexed(ISSUANCE.c.state).in_(bound_list(dialect, "states")),
            unindexed(ISSUANCE.c.account_id).in_(bound_list(dialect, "accounts", sa.BigInteger)) | (sa.bindparam("any_account") == 1),
            BEHIND_PLACE,
        )
        .order_by(ISSUANCE.c.dispatched.desc(), ISSUANCE.c.key.desc())
        .limit(sa.bindparam("most"))
    ),
)


def issuance_place(row: IssuanceRow) -> IssuancePlace:
    return IssuancePlace(row.dispatched, row.key)


def list_ledger(connection: Connection, *, organisation: str, asked: LedgerFilter, most: int) -> list[IssuanceRow]:
    """At most `most` rows that fit."""
    bounds, behind = asked.bounds, asked.behind
    if bounds.iccids is not None:
        packed = pack_rows([[iccid] for iccid in bounds.iccids])
        rows = connection.all(ISSUANCES_OF_ICCIDS, organisation=organisation, iccids=packed)
        fit = [row for row in rows if row.state in asked.states and issuance_place(row) < behind]
        return nlargest(most, rows_in_view(connection, organisation=organisation, rows=fit, bounds=bounds), key=issuance_place)
    page: dict[str, Value] = {"organisation": organisation, "dispatched": behind.dispatched, "behind": behind.key, "most": most}
    if bounds.tags is not None:
        return newest_of_tags(connection, asked, page, most)
    found = list[IssuanceRow]()
    for state, account in product(asked.states, [None] if bounds.accounts is None else sorted(bounds.accounts)):
        query, of_account = (NEWEST_OF_STATE, {}) if account is None else (NEWEST_OF_ACCOUNT, {"account": account})
        above = found[-1].dispatched if len(found) == most else 0.0
        found = nlargest(most, [*found, *connection.all(query, **page, **of_account, state=state, above=above)], key=issuance_place)
    return found


def newest_of_tags(connection: Connection, asked: LedgerFilter, page: dict[str, Value], most: int) -> list[IssuanceRow]:
    accounts = asked.bounds.accounts
    given = {
        "states": pack_rows([[state] for state in asked.states]),
        "accounts": pack_rows([[account] for account in accounts or ()]),
        "any_account": int(accounts is None),
    }
    found = dict[str, IssuanceRow]()
    for tag in sorted(asked.bounds.tags or ()):
        found |= {row.key: row for row in connection.all(NEWEST_OF_TAG, **page, **given, tag=tag)}
    return nlargest(most, found.values(), key=issuance_place)


def rows_in_view(connection: Connection, *, organisation: str, rows: Sequence[IssuanceRow], bounds: LedgerBounds) -> list[IssuanceRow]:
    """Those of some rows that may be seen."""
    tagged: set[str] | None = None
    if bounds.tags is not None:
        iccids = sorted({row.iccid for row in rows if row.iccid is not None})
        found = tags_of_lines(connection, organisation=organisation, iccids=iccids) if iccids else []
        tagged = {each.iccid for each in found if each.tag in bounds.tags}
    return [
        row
        for row in rows
        if (bounds.iccids is None or row.iccid in bounds.iccids)
        and (bounds.accounts is None or row.account_id in bounds.accounts)
        and (tagged is None or row.iccid in tagged)
    ]
