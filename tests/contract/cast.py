"""Everybody who may call: one of each identity, beside an organisation that is on the stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from operations.catalogue import CATALOGUE
from operations.secret_tokens import new_api_key
from registry.caller import UNRESTRICTED, Restrictions, Role, Tier
from registry.catalogue import AnyOperation
from storage.access_grants import AccessGrant, insert_grant
from storage.api_keys import insert_key, write_restrictions
from storage.engine.sql import Connection
from storage.onboarding import save_onboarding_details
from storage.organisations import add_member, create_organisation
from storage.people import create_person
from storage.sealing import OWN_TOKEN_FIELD
from storage.upstream_connections import set_connection
from tests.contract.fleet import ALPINE_TOKEN, UNKNOWN_ICCID
from tests.contract.founding import OPERATOR
from tests.contract.stage import ID, SHOP_KEY, ContractStage, Input, ServiceHouse
from tests.network_facts import ACCOUNT, INTERNAL, SIBLING
from tests.world import World

OTHER_ACCOUNT = 8999
UNKNOWN_KEY = "ak_" + "0" * 46


class Place(StrEnum):
    HERE = "in the organisation on the stage"
    ALONE = "in none"
    SIBLING = "in one of another account of the same reseller"
    ABROAD = "in one of another reseller"


class By(StrEnum):
    NOTHING = "no credential"
    UNKNOWN = "a key nobody made"
    SHARED = "the internal key"
    SHOP = "the storefront key"
    KEY = "an API key"
    SESSION = "a token of the deployment's identity provider"
    LOGIN = "a token of a login at the built-in identity provider"


class Narrow(StrEnum):
    """In what respect a key is restricted."""

    READ_ONLY = "read_only"
    TOOLSET = "toolsets: its own"
    OTHER_TOOLSET = "toolsets: another"
    LINE = "iccids: its own"
    OTHER_LINE = "iccids: another"
    ACCOUNT = "account_ids: its own"
    OTHER_ACCOUNT = "account_ids: another"
    USED_UP = "calls_per_day: used up"


@dataclass(frozen=True, slots=True)
class Identity:
    name: str
    by: By = By.KEY
    tier: Tier = Tier.ENTERPRISE
    role: Role = Role.ADMIN
    place: Place = Place.HERE
    narrow: Narrow | None = None
    granted: str | None = None
    """The scopes of a login."""


IDENTITIES = (
    Identity("nobody", By.NOTHING),
    Identity("unknown key", By.UNKNOWN),
    Identity("internal key", By.SHARED),
    Identity("storefront key", By.SHOP),
    Identity("no organisation", place=Place.ALONE),
    Identity("foreign organisation, same reseller", place=Place.SIBLING),
    Identity("foreign organisation, other reseller", place=Place.ABROAD),
    *(Identity(f"{tier} {role}", tier=tier, role=role) for tier in Tier for role in (Role.MEMBER, Role.ADMIN)),
    Identity("session", By.SESSION),
    Identity("login: read", By.LOGIN, granted="read"),
    Identity("login: read write", By.LOGIN, granted="read write"),
    *(Identity(f"key: {narrow}", narrow=narrow) for narrow in Narrow),
)


@dataclass(slots=True)
class Actor:
    """An identity with its credential, and whose calls they are."""

    identity: Identity
    secret: str | None
    owner: str = ""


class Rows(NamedTuple):
    """What an identity is in the database."""

    person: str
    subject: str
    organisation: str | None
    role: Role
    grant: AccessGrant | None
    key_id: str
    digest: bytes
    prefix: str
    restrictions: str | None
    founded: "Founded | None"


class Founded(NamedTuple):
    """An organisation that comes into being with somebody."""

    account: int | None
    sealed: str | None


@dataclass(slots=True)
class Company:
    house: ServiceHouse
    stage: ContractStage
    given: Input
    """The documented input with the stage's ids."""
    actors: dict[str, Actor] = field(default_factory=dict[str, Actor])


async def company(house: ServiceHouse, operation: AnyOperation, identities: Sequence[Identity]) -> Company:
    example = operation.examples[0].input
    named = "iccid" in example or any(isinstance(value, str) and ID.fullmatch(value) for value in example.values())
    stage = await house.stage(operation, furnished=named)
    given = stage.fitted(operation, operation.examples[0].input)
    made, rows = Company(house, stage, given), list[Rows]()
    for identity in identities:
        actor = made.actors[identity.name] = Actor(
            identity, {By.SHARED: INTERNAL, By.SHOP: SHOP_KEY, By.UNKNOWN: UNKNOWN_KEY}.get(identity.by)
        )
        if identity.by in (By.KEY, By.SESSION, By.LOGIN):
            rows.append(enlisted(house.world, operation, made, actor))
    await house.world.store.write(enlist, rows=rows, now=house.world.clock.now())
    for actor in made.actors.values():
        if actor.identity.narrow is Narrow.USED_UP:
            spent = await house.http(CATALOGUE.operations["list_connectivity_products"], actor.secret, {})
            assert spent.status == 200, spent.body
    return made


def enlisted(world: World, operation: AnyOperation, company: Company, actor: Actor) -> Rows:
    """The rows of one identity; their credential and whose quota they use, too."""
    identity, ids, here = actor.identity, world.ids, company.stage.who.organisation
    person, subject, key = ids.new("usr_"), ids.new("sub_"), new_api_key(ids)
    organisation = {Place.HERE: here, Place.ALONE: None}.get(identity.place, ids.new("org_"))
    grant, founded, secret = None, None, key.secret
    if identity.by is By.LOGIN:
        now = world.clock.now()
        grant = AccessGrant(ids.new("gnt_"), person, organisation, "client", "A program", identity.granted or "", "", now, now + 3600)
        secret = f"login.{grant.person_id}.{grant.id}"
    elif identity.by is By.SESSION:
        secret = f"session.{subject}.{organisation}"
    if identity.place is Place.SIBLING:
        founded = Founded(SIBLING, None)
    elif identity.place is Place.ABROAD:
        founded = Founded(None, world.pipeline.deps.keyring.seal(ALPINE_TOKEN.value, org_id=organisation or "", field=OWN_TOKEN_FIELD))
    actor.secret, actor.owner = secret, organisation or person
    narrowed = write_restrictions(restrictions(operation, company, identity.narrow))
    return Rows(person, subject, organisation, identity.role, grant, ids.new("key_"), key.digest, key.prefix, narrowed, founded)


def restrictions(operation: AnyOperation, company: Company, narrow: Narrow | None) -> Restrictions:
    """What a key is restricted to: what the documented call is about, or something else."""
    toolset, given = CATALOGUE.toolset_of[operation.id], company.given
    accounts = tuple(value for name, value in given.items() if "account" in name.lower() and isinstance(value, int)) or (ACCOUNT,)
    made: Mapping[Narrow | None, Restrictions] = {
        None: UNRESTRICTED,
        Narrow.READ_ONLY: Restrictions(read_only=True),
        Narrow.TOOLSET: Restrictions(toolsets=(toolset,)),
        Narrow.OTHER_TOOLSET: Restrictions(toolsets=("connectivity" if toolset == "system" else "system",)),
        Narrow.LINE: Restrictions(iccids=(str(given.get("iccid", company.stage.own.iccid)),)),
        Narrow.OTHER_LINE: Restrictions(iccids=(UNKNOWN_ICCID,)),
        Narrow.ACCOUNT: Restrictions(account_ids=accounts),
        Narrow.OTHER_ACCOUNT: Restrictions(account_ids=(OTHER_ACCOUNT,)),
        Narrow.USED_UP: Restrictions(calls_per_day=1),
    }
    return made[narrow]


def enlist(connection: Connection, *, rows: Sequence[Rows], now: float) -> None:
    for each in rows:
        create_person(connection, id=each.person, now=now, subject=each.subject)
        if each.founded is not None and each.organisation is not None:
            found_abroad(connection, each.organisation, each.founded, now)
        if each.organisation is not None:
            add_member(connection, person=each.person, organisation=each.organisation, role=each.role, now=now)
        if each.grant is not None:
            insert_grant(connection, each.grant)
        insert_key(
            connection,
            id=each.key_id,
            digest=each.digest,
            prefix=each.prefix,
            organisation=each.organisation,
            person=each.person,
            name="cast",
            now=now,
            restrictions=each.restrictions,
        )


def found_abroad(connection: Connection, organisation: str, founded: Founded, now: float) -> None:
    """Another organisation, connected in managed mode or with a token of its own."""
    mode = "managed" if founded.account is not None else None
    create_organisation(
        connection,
        id=organisation,
        name="Elsewhere",
        tier=Tier.ENTERPRISE,
        now=now,
        mode=mode,
        account_id=founded.account,
        service_own=True,
    )
    save_onboarding_details(connection, organisation=organisation, website=None, now=now, **OPERATOR)
    if founded.sealed is not None:
        set_connection(connection, organisation=organisation, mode="own", account_id=None, own_token=founded.sealed)
