"""Which intent a line or a package belongs to at a moment."""

import sqlalchemy as sa

from storage.country_entries import COUNTRY_ENTRY
from storage.engine.sql import Command, Connection, Query, row_exists
from storage.intents import INTENT, IntentHolder, find_holder
from storage.issuance import ISSUANCE, issuance_of_package

# Choice: what happened before a line was drawn is its previous owner's. Clocks differ, so these seconds before it are the present one's.
CLOCKS_DIFFER_SECONDS = 10

# A test eSIM has no row in the ledger, no previous owner and no account.
BOUND_ACCOUNT: sa.BindParameter[int | None] = sa.bindparam("account", type_=sa.BigInteger)

FIND_LINE_OWNER = Query(
    IntentHolder,
    sa.select(*(INTENT.c[name] for name in IntentHolder._fields))
    .select_from(INTENT.outerjoin(ISSUANCE, (ISSUANCE.c.held == INTENT.c.iccid) & (ISSUANCE.c.intent == INTENT.c.id)))
    .where(
        INTENT.c.iccid == sa.bindparam("iccid"),
        ISSUANCE.c.dispatched.is_(None) | (ISSUANCE.c.dispatched <= sa.bindparam("latest")),
        ISSUANCE.c.account_id.is_(None) | (ISSUANCE.c.account_id == sa.func.coalesce(BOUND_ACCOUNT, ISSUANCE.c.account_id)),
    ),
)

OWNED_AT: sa.BindParameter[float] = sa.bindparam("at", type_=sa.Double)

SEEN_SINCE = sa.exists().where(
    COUNTRY_ENTRY.c.iccid == ISSUANCE.c.held,
    COUNTRY_ENTRY.c.occurred_at >= ISSUANCE.c.dispatched - CLOCKS_DIFFER_SECONDS,
    COUNTRY_ENTRY.c.occurred_at <= OWNED_AT,
)

SUBJECT_LOCK_SEED = 0x5253_4C52  # our name among the other users of a shared server

LOCK_SUBJECT = Command(
    lambda _: sa.select(
        sa.func.pg_advisory_xact_lock(
            sa.func.hashtextextended(sa.bindparam("subject", type_=sa.Text), sa.literal_column(str(SUBJECT_LOCK_SEED)))
        )
    )
)


def line_subject(iccid: str) -> str:
    """The name under which reports of a line are kept."""
    return f"line|{iccid}"


def package_subject(package_id: int) -> str:
    """The name under which reports of a package are kept."""
    return f"package|{package_id}"


def owner_at(connection: Connection, *, iccid: str, at: float, account: int | None = None) -> IntentHolder | None:
    """The intent that owned an ICCID at a moment, if it owns it still.

    `account` is whose the line was then, if that is known: a line that has left the account it was drawn from is its intent's no more.
    """
    return connection.first(FIND_LINE_OWNER, iccid=iccid, latest=at + CLOCKS_DIFFER_SECONDS, account=account)


@row_exists
def is_drawn_unseen(*, iccid: str, account: int | None, at: float) -> sa.Executable:
    """Whether a line was drawn from another account than this one, and has been nowhere between then and a moment. `at`: Unix seconds."""
    return sa.select(ISSUANCE.c.key).where(ISSUANCE.c.held == iccid, ISSUANCE.c.account_id != BOUND_ACCOUNT, ~SEEN_SINCE)


def owner_of_package(connection: Connection, *, package_id: int) -> tuple[IntentHolder, str] | None:
    """The intent whose plan a package is, and its ICCID; other packages on its line are nobody's."""
    row = issuance_of_package(connection, package_id=package_id)
    if row is None or row.held is None or row.intent is None:
        return None
    holder = find_holder(connection, iccid=row.held)
    return (holder, row.held) if holder is not None and holder.id == row.intent else None


def lock_subject(connection: Connection, *, subject: str) -> None:
    """Nobody gives the subject an owner until the commit, so that what is kept for the owner is found by them.

    SQLite has one writer at a time, which is enough. Before the lock is taken, the subject's owner may be looked up; after it, again.
    """
    if connection.dialect_name == "postgresql":
        connection.run(LOCK_SUBJECT, subject=subject)
