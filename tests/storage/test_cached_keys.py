"""Keys that a process has seen before: the change counter tells whether they are as they were."""

from asyncio import gather
from pathlib import Path

from anyio.lowlevel import checkpoint

from registry.caller import Tier
from storage.api_keys import revoke_key
from storage.directory import StoreDirectory
from storage.engine.store import Store, open_store
from tests.databases import migrated_sqlite
from tests.http.conftest import HTTP_OPERATIONS
from tests.world import open_world


def reads_of(store: Store) -> int:
    return store.signals.calls.series[("read",)].count


async def test_lookups_of_one_tick_read_the_change_counter_once_and_a_revocation_ends_in_the_next(tmp_path: Path) -> None:
    url = migrated_sqlite(tmp_path)
    async with open_world(tmp_path, HTTP_OPERATIONS, url=url) as world:
        revoked, kept = await world.caller(Tier.PRO), await world.caller(Tier.PRO)
        directory, now = StoreDirectory(world.store), world.clock.now()
        secrets = (revoked.secret, kept.secret)
        assert None not in [await directory.by_key(secret, now) for secret in secrets]
        await checkpoint()
        before = reads_of(world.store)
        assert None not in await gather(*(directory.by_key(secret, now) for secret in secrets * 4))
        assert reads_of(world.store) == before + 1
        other = open_store(url)
        assert await other.write(revoke_key, key=revoked.key_id, organisation=revoked.organisation, now=now)
        await other.aclose()
        found = await gather(*(directory.by_key(secret, now) for secret in secrets * 4))
        assert [caller is None for caller in found] == [True, False] * 4
