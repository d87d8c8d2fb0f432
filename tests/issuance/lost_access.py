"""How a caller loses access between a call and its repetition, and what the repetition answers then."""

from collections.abc import Awaitable, Callable

from registry.caller import Tier
from storage.upstream_connections import set_connection
from tests.world import Credentials, World

Change = Callable[[World, Credentials], Awaitable[object]]


async def disconnect(world: World, caller: Credentials) -> None:
    await world.store.write(set_connection, organisation=caller.organisation, mode=None, account_id=None, own_token=None)


async def move(world: World, caller: Credentials) -> None:
    await world.store.write(set_connection, organisation=caller.organisation, mode="managed", account_id=8102, own_token=None)


LOST_ACCESS: dict[str, tuple[Change, int, str]] = {
    "disconnected": (disconnect, 409, "org_not_connected"),
    "moved to another account": (move, 404, "not_found"),
    "downgraded": (lambda world, caller: world.move_to(Tier.FREE, caller.organisation), 402, "upgrade_required"),
    "removed": (lambda world, caller: world.leave(caller.person, caller.organisation), 401, "unauthorized"),
    "revoked": (lambda world, caller: world.revoke(caller), 401, "unauthorized"),
}
