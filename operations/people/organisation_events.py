"""Events of an organisation's own affairs: its keys, its members, and its connection to the charging system.

Each is written in the transaction, and where the storage says, that something has changed.
"""

from collections.abc import Sequence
from typing import Literal, cast

from operations.event_types.declaration import new_event
from operations.event_types.organisation import (
    ORGANISATION_KEY_CREATED,
    ORGANISATION_KEY_REVOKED,
    ORGANISATION_MEMBER_ADDED,
    ORGANISATION_UPSTREAM_CONNECTED,
    ORGANISATION_UPSTREAM_DISCONNECTED,
    AddedMember,
    ConnectedUpstream,
    CreatedKey,
    DisconnectedUpstream,
    RevokedKey,
)
from registry.ids import Ids
from storage.api_keys import EndedKey
from storage.engine.sql import Connection
from storage.event_log import log_event
from storage.upstream_connections import UpstreamRow, find_upstream, leave_simulation


def log_key_created(connection: Connection, *, organisation: str, key: CreatedKey, ids: Ids, now: float) -> None:
    """The organisation has one key more. `now`: Unix seconds."""
    log_event(connection, event=new_event(ORGANISATION_KEY_CREATED, key, organisation=organisation, ids=ids, now=now))


def log_ended_keys(ids: Ids, connection: Connection, keys: Sequence[EndedKey], now: float) -> None:
    """These keys were live until now. Those of people without an organisation are nobody's to be told of. `now`: Unix seconds."""
    for key in keys:
        if key.organisation_id is not None:
            named: RevokedKey = {"key": key.id, "prefix": key.prefix, "made_with": key.made_with}
            event = new_event(ORGANISATION_KEY_REVOKED, named, organisation=key.organisation_id, ids=ids, now=now)
            log_event(connection, event=event)


def log_member_added(connection: Connection, *, organisation: str, person: str, role: str, ids: Ids, now: float) -> None:
    """The `person` was no member before. `now`: Unix seconds."""
    named: AddedMember = {"person": person, "role": cast("Literal['admin', 'member']", role)}
    log_event(connection, event=new_event(ORGANISATION_MEMBER_ADDED, named, organisation=organisation, ids=ids, now=now))


def log_connection_change(connection: Connection, *, organisation: str, before: UpstreamRow, ids: Ids, now: float) -> None:
    """What the connection is now, where it is another one than `before`. `now`: Unix seconds.

    Whoever calls this holds the connection (`hold_connection`, or the counter of callers), so that `before` is what it was.
    """
    after = find_upstream(connection, organisation=organisation)
    if after is None or after == before:
        return
    if after.mode is None:
        log_disconnected(connection, organisation=organisation, mode=before.mode, account=before.account_id, ids=ids, now=now)
        return
    reached: ConnectedUpstream = {
        "mode": cast("Literal['managed', 'own']", after.mode),
        "account_id": after.account_id,
        "replaced": before.mode is not None,
    }
    log_event(connection, event=new_event(ORGANISATION_UPSTREAM_CONNECTED, reached, organisation=organisation, ids=ids, now=now))


def log_disconnected(connection: Connection, *, organisation: str, mode: str | None, account: int | None, ids: Ids, now: float) -> None:
    """The organisation has no connection any more; `mode` and `account`: of the one that it had. `now`: Unix seconds."""
    reached: DisconnectedUpstream = {"mode": cast("Literal['managed', 'own']", mode), "account_id": account}
    log_event(connection, event=new_event(ORGANISATION_UPSTREAM_DISCONNECTED, reached, organisation=organisation, ids=ids, now=now))


def end_simulated_connections(connection: Connection, *, ids: Ids, now: float) -> int:
    """Disconnects the organisations whose account was simulated, now that there is a real charging system; how many there were."""
    left = leave_simulation(connection)
    for each in left:
        if each.mode is not None:
            log_disconnected(connection, organisation=each.id, mode=each.mode, account=each.account_id, ids=ids, now=now)
    return len(left)
