"""What an empty database gets in demo mode: one enterprise organisation, its admin, and one key."""

from typing import NamedTuple

from operations.services.api_key import new_api_key
from registry.clock import Clock
from registry.ids import Ids
from registry.limits import Role, Tier
from storage.accounts import add_member, create_organisation, create_person, list_organisations
from storage.changes import bump
from storage.connection import Connection
from storage.keys import insert_key
from storage.store import Store

NAME = "Demo Telecom"
PERSON = "Demo Admin"
EMAIL = "admin@demo.invalid"


class Demo(NamedTuple):
    """The demo organisation, and its key on the one occasion it can be shown."""

    organisation: str
    api_key: str | None


async def ensure_demo(store: Store, ids: Ids, clock: Clock, *, account: int | None) -> Demo | None:
    """Seed an empty database; one that has organisations already keeps them. `account` is its sub-account upstream."""
    found = await store.read(list_organisations)
    if found:
        return Demo(found[0].id, None)
    key = new_api_key(ids)
    row = (ids.new("org_"), ids.new("usr_"), ids.new("key_"))
    names = {"organisation": row[0], "person": row[1], "key_id": row[2]}
    seeded = await store.write(seed, **names, account=account, digest=key.digest, prefix=key.prefix, now=clock.now())
    return Demo(row[0], key.secret) if seeded else await ensure_demo(store, ids, clock, account=account)


def seed(
    connection: Connection, *, organisation: str, person: str, key_id: str, account: int | None, digest: bytes, prefix: str, now: float
) -> bool:
    """The rows, unless another process has been faster; the counter's row makes racing starters queue."""
    bump(connection, name="demo")
    if list_organisations(connection):
        return False
    mode = None if account is None else "managed"
    create_organisation(
        connection,
        id=organisation,
        name=NAME,
        tier=Tier.ENTERPRISE,
        now=now,
        mode=mode,
        account_id=account,
        service_own=True,
        simulated=account is not None,
    )
    create_person(connection, id=person, email=EMAIL, name=PERSON, now=now)
    add_member(connection, person=person, organisation=organisation, role=Role.ADMIN, now=now)
    insert_key(connection, id=key_id, digest=digest, prefix=prefix, organisation=organisation, person=person, name="demo", now=now)
    return True
