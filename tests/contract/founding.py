"""An organisation with an admin, a key and what it made in the network, in one commit: stages are many."""

from typing import NamedTuple

from operations.secret_tokens import new_api_key
from registry.caller import Role, Tier
from storage.api_keys import insert_key
from storage.engine.sql import Connection
from storage.onboarding import save_onboarding_details
from storage.organisations import add_member, create_organisation
from storage.people import create_person
from storage.sealing import OWN_TOKEN_FIELD
from storage.upstream_connections import set_connection
from storage.upstream_objects import UpstreamObjectKind, add_upstream_object
from tests.contract.fleet import Own
from tests.network_facts import ACCOUNT
from tests.world import Credentials, World

OPERATOR = {"name": "Reseller", "country": "NO", "operator_type": "mvno"}
"""What an organisation has said of itself, so that its onboarding may end."""


class Founding(NamedTuple):
    tier: Tier
    role: Role
    mode: str | None
    sealed: str | None
    made: tuple[tuple[UpstreamObjectKind, int], ...]
    digest: bytes
    prefix: str
    now: float


async def found_organisation(world: World, own: Own, *, tier: Tier, role: Role, token: str | None, connected: bool) -> Credentials:
    """Found it: in managed mode with the stage's account, with a token of its own, or unconnected."""
    ids, key = world.ids, new_api_key(world.ids)
    who = Credentials(ids.new("org_"), ids.new("usr_"), ids.new("key_"), key.secret)
    sealed = None
    if token is not None:
        sealed = world.pipeline.deps.keyring.seal(token, org_id=who.organisation, field=OWN_TOKEN_FIELD)
    mode = "managed" if connected and token is None else None
    made: tuple[tuple[UpstreamObjectKind, int], ...] = (("zone", own.zone), ("template", own.template))
    wanted = Founding(tier, role, mode, sealed, made, key.digest, key.prefix, world.clock.now())
    await world.store.write(write, who=who, wanted=wanted)
    return who


def write(connection: Connection, *, who: Credentials, wanted: Founding) -> None:
    organisation, person, now = who.organisation, who.person, wanted.now
    account = ACCOUNT if wanted.mode else None
    create_organisation(
        connection, id=organisation, name="Reseller", tier=wanted.tier, now=now, mode=wanted.mode, account_id=account, service_own=True
    )
    if wanted.sealed is not None:
        set_connection(connection, organisation=organisation, mode="own", account_id=None, own_token=wanted.sealed)
    save_onboarding_details(connection, organisation=organisation, website=None, now=now, **OPERATOR)
    create_person(connection, id=person, now=now, subject=person)
    add_member(connection, person=person, organisation=organisation, role=wanted.role, now=now)
    insert_key(
        connection,
        id=who.key_id,
        digest=wanted.digest,
        prefix=wanted.prefix,
        organisation=organisation,
        person=person,
        name="test",
        now=now,
        expires_at=None,
    )
    for kind, id in wanted.made:
        add_upstream_object(connection, kind=kind, id=id, organisation=organisation, now=now)
