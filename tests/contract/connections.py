"""What an organisation on the stage has at the charging system beside its account."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from storage.engine.sql import Connection
from storage.sealing import OWN_TOKEN_FIELD
from storage.upstream_connections import find_upstream, set_connection, use_own_token
from tests.contract.fleet import ALPINE_TOKEN, FJORD_TOKEN
from tests.world import Credentials, World


async def replaced_token(world: World, who: Credentials) -> dict[str, Any]:
    """A token of its own, which has replaced another one."""
    keyring, organisation = world.pipeline.deps.keyring, who.organisation
    first, second = (keyring.seal(token.value, org_id=organisation, field=OWN_TOKEN_FIELD) for token in (FJORD_TOKEN, ALPINE_TOKEN))

    def write(connection: Connection) -> None:
        set_connection(connection, organisation=organisation, mode="own", account_id=None, own_token=first)
        seen = find_upstream(connection, organisation=organisation)
        assert seen is not None
        now = world.clock.now()
        use_own_token(connection, organisation=organisation, own_token=second, simulated=False, seen=seen, now=now)

    await world.store.write(write)
    return {}


CONNECTED_ORGANISATION: Mapping[str, Callable[[World, Credentials], Awaitable[dict[str, Any]]]] = {
    "onboarding_restore_ocs_token": replaced_token
}
REPLACING = {"onboarding_connect_ocs_token", "onboarding_restore_ocs_token"}
"""Operations whose documented call replaces the live connection of everybody who has one."""
