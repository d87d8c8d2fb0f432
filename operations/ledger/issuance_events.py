"""Events of issuances: their outcome became unknown, they ended without an eSIM, or their eSIM was given back.

Each is written in the transaction, and where the update of the ledger's row says, that it has become so.
"""

from collections.abc import Sequence
from typing import Literal

from operations.event_types.declaration import new_event
from operations.event_types.esim import (
    ESIM_ISSUANCE_FAILED,
    ESIM_ISSUANCE_UNKNOWN,
    ESIM_ROLLED_BACK,
    FailedIssuance,
    RolledBackEsim,
    UnknownIssuance,
)
from registry.ids import Ids
from storage.engine.sql import Connection
from storage.event_log import log_event
from storage.issuance import IssuanceRow


def issuance_names(row: IssuanceRow) -> RolledBackEsim:
    """What an event names of the ledger's `row`. Nothing that an answer named and nobody believed: it may be another's eSIM."""
    return {"intent": row.intent, "idempotency_key": row.key, "package_template_id": row.template_id, "iccid": row.iccid}


def log_issuance_unknown(
    connection: Connection, *, row: IssuanceRow, ids: Ids, now: float, reason: Literal["no_answer", "late_answer"] = "no_answer"
) -> None:
    """The outcome of `row` has just become unknown. `now`: Unix seconds."""
    named: UnknownIssuance = {**issuance_names(row), "reason": reason}
    log_event(connection, event=new_event(ESIM_ISSUANCE_UNKNOWN, named, organisation=row.organisation, ids=ids, now=now))


def log_lost_issuances(ids: Ids, connection: Connection, rows: Sequence[IssuanceRow], now: float) -> None:
    """The outcomes of `rows` have just become unknown, since the processes that had sent them are gone. `now`: Unix seconds."""
    for row in rows:
        log_issuance_unknown(connection, row=row, ids=ids, now=now)


def log_issuance_failed(connection: Connection, *, row: IssuanceRow, code: str, ids: Ids, now: float) -> None:
    """It was settled that `row` drew nothing; `code` says why. `now`: Unix seconds."""
    named: FailedIssuance = {**issuance_names(row), "code": code}
    log_event(connection, event=new_event(ESIM_ISSUANCE_FAILED, named, organisation=row.organisation, ids=ids, now=now))


def log_esim_rolled_back(connection: Connection, *, row: IssuanceRow, ids: Ids, now: float) -> None:
    """The eSIM of `row` was given back. `now`: Unix seconds."""
    log_event(connection, event=new_event(ESIM_ROLLED_BACK, issuance_names(row), organisation=row.organisation, ids=ids, now=now))
