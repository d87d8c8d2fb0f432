"""`reseller keys rekey`: what an older key of the keyring sealed is sealed again with the first one."""

import asyncio
import os
import sys
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Annotated

import typer

from storage.calls.replicas import running_keys
from storage.secrets.rekey import COLUMNS, Resealed, Unopened, count_of_key, count_older, reseal
from storage.secrets.sealing import Keyring
from storage.store import Store
from transports.cli.failure import Failure
from transports.cli.local import open_local
from transports.cli.render import print_line
from transports.settings import load_settings


def rekey(data: Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")] = None) -> None:
    """Seal every stored secret with the first key of the keyring, so that the older keys can be dropped.

    1. Put a new key behind the old one (a comma, then kid:base64 of 32 bytes) in SERVICE_SECRET_KEYS or the file data/keyring, and
    restart every server and worker. 2. Move it to the front, and restart them again. 3. Run this; they may go on running, and it may be
    ended and begun again. 4. Drop the keys that it names as no longer needed. Backups made before need them still.
    """
    if not asyncio.run(run(data)):
        raise Failure("older keys are still needed, see above", exit_code=1)


async def run(data: Path | None) -> bool:
    """Column by column; whether the first key is all that is needed now."""
    service = await open_local(load_settings(os.environ, env_file=Path(".env"), data=data))
    try:
        store, keyring = service.store, service.pipeline.deps.keyring
        unopened = 0
        for column in COLUMNS:
            done = await reseal(store, keyring, column)
            tell(column.name, done)
            unopened += done.unopened
        now = service.clock.now()
        running = [each for each in await store.read(running_keys, now=now) if each.id != service.journal.replica]
        return await judge(store, keyring, unopened, {each.known[0] for each in running if each.known})
    finally:
        await service.stop()


def tell(name: str, done: Resealed) -> None:
    """What came of a column; flushed, since the next one may take long."""
    print_line(f"{name:<33} {done.resealed} sealed again" + (f", {done.unopened} cannot be opened:" if done.unopened else ""))
    for value in done.named:
        print_line(f"  {value.row}: {why(value)}")
    if done.unopened > len(done.named):
        print_line(f"  and {done.unopened - len(done.named)} more")
    sys.stdout.flush()


def why(value: Unopened) -> str:
    """Why it stays as it is, and the fix where there is one."""
    if value.missing_key is None:
        return "changed, or moved here from another row; only a backup has what it was"
    return f"sealed with key {value.missing_key}, which is not in the keyring: put that key back behind the first and run this again"


def need(count: int, fix: str | None) -> str:
    """Whether a key is needed: `count` values are sealed with it; `fix` is what ends that a process seals with it."""
    if fix is not None:
        return f"still needed, a process that runs seals with it: {fix}, and run this again"
    return f"still needed, {count} sealed with it" if count else "no longer needed by this database"


async def judge(store: Store, keyring: Keyring, unopened: int, sealing: AbstractSet[str]) -> bool:
    """Say which keys are needed from now on; `sealing`: the keys that processes which run seal with."""
    first, *older = keyring.key_ids
    for key in older:
        count = await store.read(count_of_key, key_id=key)
        print_line(f"key {key}: " + need(count, f"restart every process with key {first} in front" if key in sealing else None))
    left = await store.read(count_older, key_id=first)
    if not sealing <= {first}:
        return False
    if left == 0:
        print_line(f"every sealed value is sealed with key {first}")
    elif left > unopened:
        print_line(f"a server or worker does not seal with key {first} yet: restart it with that key in front, and run this again")
    return left == 0
