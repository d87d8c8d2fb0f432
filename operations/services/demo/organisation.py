"""What an empty database gets in demo mode: one enterprise organisation, its admin, one key, and a shop."""

from typing import NamedTuple

from operations.services.demo.shop import NAME, PLANS, SLUG, seed_shop
from operations.services.people.api_key import new_api_key
from registry.clock import Clock
from registry.ids import Ids
from registry.limits import Role, Tier
from storage.calls.changes import bump
from storage.connection import Connection
from storage.money.connect import attach_account, forget_account, organisation_of_account
from storage.people.accounts import add_member, create_organisation, create_person, list_organisations
from storage.people.keys import insert_key
from storage.shop.storefronts import published
from storage.store import Store

PERSON = "Demo Admin"
EMAIL = "admin@demo.invalid"


class Demo(NamedTuple):
    """The demo organisation, and its key on the one occasion it can be shown."""

    organisation: str
    api_key: str | None
    shop: str | None
    """The slug of its shop, while everybody may see it."""


class NewDemo(NamedTuple):
    """The names of what is made. `shop`: the shop's, then its plans'."""

    organisation: str
    person: str
    key_id: str
    shop: tuple[str, ...]


async def ensure_demo(store: Store, ids: Ids, clock: Clock, *, account: int | None, payee: str | None) -> Demo | None:
    """Seed an empty database; one that has organisations already keeps them.

    `account` is its sub-account upstream, `payee` its account at the payment processor; none where that one is not simulated here.
    """
    found = await store.read(list_organisations)
    if found:
        return Demo(found[0].id, None, await store.read(shop_of, organisation=found[0].id))
    key = new_api_key(ids)
    new = NewDemo(ids.new("org_"), ids.new("usr_"), ids.new("key_"), (ids.new("sf_"), *(ids.new("sfp_") for _ in PLANS)))
    seeded = await store.write(seed, new=new, account=account, payee=payee, digest=key.digest, prefix=key.prefix, now=clock.now())
    return Demo(new.organisation, key.secret, SLUG) if seeded else await ensure_demo(store, ids, clock, account=account, payee=payee)


def shop_of(connection: Connection, *, organisation: str) -> str | None:
    """The slug of the demo's shop; its owner may have renamed it, or taken it back."""
    shop = published(connection, slug=SLUG)
    return SLUG if shop is not None and shop.organisation == organisation else None


def leave_payee(connection: Connection, *, payee: str, now: float) -> bool:
    """The demo's account was a simulated one, and the payment processor is another now: whether anybody had it still."""
    if organisation_of_account(connection, account=payee) is None:
        return False
    forget_account(connection, account=payee, as_of=now, now=now)
    return True


def seed(connection: Connection, *, new: NewDemo, account: int | None, payee: str | None, digest: bytes, prefix: str, now: float) -> bool:
    """The rows, unless another process has been faster; the counter's row makes racing starters queue."""
    bump(connection, name="demo")
    if list_organisations(connection):
        return False
    mode = None if account is None else "managed"
    create_organisation(
        connection,
        id=new.organisation,
        name=NAME,
        tier=Tier.ENTERPRISE,
        now=now,
        mode=mode,
        account_id=account,
        service_own=True,
        simulated=account is not None,
    )
    create_person(connection, id=new.person, email=EMAIL, name=PERSON, now=now)
    add_member(connection, person=new.person, organisation=new.organisation, role=Role.ADMIN, now=now)
    insert_key(
        connection, id=new.key_id, digest=digest, prefix=prefix, organisation=new.organisation, person=new.person, name="demo", now=now
    )
    seed_shop(connection, organisation=new.organisation, ids=new.shop, now=now)
    if payee is not None:
        attach_account(connection, organisation=new.organisation, account=payee, kind="express", status="active", as_of=now, now=now)
    return True
