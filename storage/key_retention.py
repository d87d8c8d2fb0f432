"""Rows that are removed by their age although their idempotency keys are used for ever: stored answers, and issuances without an eSIM.

In the transaction that removes a row its key is stored in `expired_key`, so that the call is never made a second time.
"""

from typing import NamedTuple

import sqlalchemy as sa

from storage.claims import CLAIM
from storage.engine.sql import Connection, Dialect, Query, json_rows, pack_rows, unindexed
from storage.expired_keys import INSERT_EXPIRED_KEY, LEDGER_OPERATION, RemovedClaim, expired_key_values, insert_expired_key
from storage.issuance import ISSUANCE
from storage.replicas import older_programs_are_gone


class ClaimEsim(NamedTuple):
    """The eSIM that a claim's call drew, if it drew one."""

    organisation: str
    operation: str
    key: str
    iccid: str | None


# An unknown outcome keeps its claim until somebody settles it.
ANSWER_HAS_AGED = (
    CLAIM.c.expires_at.is_(None) & (CLAIM.c.claimed < sa.bindparam("before", type_=sa.BigInteger)) & (unindexed(CLAIM.c.state) == "done")
)

ANSWER_KEY = (CLAIM.c.organisation, CLAIM.c.operation, CLAIM.c.key)

OLDEST_ANSWERS = sa.select(*ANSWER_KEY).where(ANSWER_HAS_AGED).order_by(CLAIM.c.claimed).limit(sa.bindparam("most"))

# Said twice: PostgreSQL asks a row that has changed meanwhile for the outer condition only, and it may be unknown again.
REMOVE_STORED_ANSWERS = Query(
    RemovedClaim,
    lambda _: sa.delete(CLAIM).where(sa.tuple_(*ANSWER_KEY).in_(OLDEST_ANSWERS), ANSWER_HAS_AGED),
)


def drawn_esims_query(dialect: Dialect) -> sa.Executable:
    """The eSIMs that the calls of these claims drew."""
    given = json_rows(dialect, "claims", "given", organisation=sa.Text, operation=sa.Text, key=sa.Text)
    return sa.select(ISSUANCE.c.organisation, ISSUANCE.c.operation, ISSUANCE.c.claim_key.label("key"), ISSUANCE.c.iccid).join_from(
        given,
        ISSUANCE,
        (ISSUANCE.c.organisation == given.c.organisation)
        & (ISSUANCE.c.claim_key == given.c.key)
        & (ISSUANCE.c.operation == given.c.operation),
    )


DRAWN_ESIMS = Query(ClaimEsim, drawn_esims_query)


def sweep_stored_answers(connection: Connection, *, before: float, most: int, now: float) -> int:
    """Remove the oldest stored answers of keys that never expire, and keep the keys; 0 while an older program runs beside."""
    if not older_programs_are_gone(connection, now=now):
        return 0
    removed = connection.all(REMOVE_STORED_ANSWERS, before=int(before), most=most)
    if removed:
        found = connection.all(DRAWN_ESIMS, claims=pack_rows([each[:3] for each in removed]))
        iccids = {row[:3]: row.iccid for row in found}
        connection.run_many(INSERT_EXPIRED_KEY, [expired_key_values(each, iccids.get(each[:3])) for each in removed])
    return len(removed)


class EndedIssuance(NamedTuple):
    organisation: str
    key: str
    iccid: str | None
    dispatched: float


# A row without an eSIM that nothing can change any more, whose key has no stored answer. Choice: a row that has its eSIM stays whole: it
# says whose the line is; so does one of an order, which stays as well.
FIRST_CHARACTER = sa.literal_column("1", sa.Integer)

FOUR_CHARACTERS = sa.literal_column("4", sa.Integer)

ORDER_PREFIXES = [sa.literal_column(f"'{prefix}'", sa.Text) for prefix in ("ord_", "onr_")]

NO_TEXT = sa.literal_column("''", sa.Text)

# As that index spells it: SQLite would take the index of `held` for a bare column.
HOLDS_NOTHING = sa.func.coalesce(ISSUANCE.c.held, NO_TEXT) == NO_TEXT

ISSUANCE_HAS_ENDED = (
    HOLDS_NOTHING
    & (ISSUANCE.c.updated < sa.bindparam("before", type_=sa.Double))
    & unindexed(ISSUANCE.c.state).in_(["failed", "rolled_back", "released"])
    & sa.func.substr(ISSUANCE.c.key, FIRST_CHARACTER, FOUR_CHARACTERS).not_in(ORDER_PREFIXES)
    & sa.not_(
        sa.exists().where(
            CLAIM.c.organisation == ISSUANCE.c.organisation, CLAIM.c.operation == ISSUANCE.c.operation, CLAIM.c.key == ISSUANCE.c.claim_key
        )
    )
)

ISSUANCE_KEY = (ISSUANCE.c.organisation, ISSUANCE.c.key)

OLDEST_ENDED_ISSUANCES = sa.select(*ISSUANCE_KEY).where(ISSUANCE_HAS_ENDED).order_by(ISSUANCE.c.updated).limit(sa.bindparam("most"))

REMOVE_ISSUANCES = Query(
    EndedIssuance,
    lambda _: sa.delete(ISSUANCE).where(
        sa.tuple_(*ISSUANCE_KEY).in_(OLDEST_ENDED_ISSUANCES), HOLDS_NOTHING, ISSUANCE.c.updated < sa.bindparam("before", type_=sa.Double)
    ),
)


def sweep_issuances(connection: Connection, *, before: float, most: int, now: float) -> int:
    """Remove the oldest rows that ended without an eSIM, and keep their keys; 0 while an older program runs beside. Unix seconds."""
    if not older_programs_are_gone(connection, now=now):
        return 0
    removed = connection.all(REMOVE_ISSUANCES, before=before, most=most)
    for row in removed:
        kept = RemovedClaim(row.organisation, LEDGER_OPERATION, row.key, b"", None, int(row.dispatched))
        insert_expired_key(connection, swept=kept, iccid=row.iccid)
    return len(removed)
