"""Whether the keyring fits the database and the processes that run on it: `doctor` asks."""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence

from registry.clock import SystemClock
from registry.errors import Refusal
from registry.ids import SystemIds
from storage.calls.replicas import ReplicaKeys, running_keys
from storage.connection import Connection
from storage.migrate import SchemaMismatch, current_schema
from storage.secrets.rekey import count_of_key, count_sealed
from storage.store import open_store
from transports.cli.finding import Finding, Note
from transports.keyring_check import checked_keyring, refuse_lost
from transports.keyring_file import is_open_to_others, keyring_path
from transports.settings import BadSettings, Settings

PUT_BACK = "put back the keyring that sealed this database; every replica needs the same one"


def keyring(settings: Settings) -> Iterator[Finding]:
    """A keyring there must be, the one that sealed this database; and all processes must know the key that seals."""
    path, ids = keyring_path(settings), SystemIds(SystemClock())
    try:
        if path is not None and not path.exists():
            refuse_lost(settings)
            yield Finding("keyring", "none yet, made at the first start")
            return
        if path is not None and is_open_to_others(path):
            yield Finding("keyring", f"{path} can be read by others", f"chmod 600 {path}")
            return
        _, ring = checked_keyring(settings, ids)
        if current_schema(settings.store_url).is_spoken:
            yield from against_database(settings.store_url, ring.key_ids)
    except BadSettings as wrong:
        yield Finding("keyring", str(wrong), PUT_BACK)
        return
    except (Refusal, SchemaMismatch, sqlite3.Error):
        yield Finding("keyring", "not compared with the database, which cannot be read")
        return
    yield Finding("keyring", "from SERVICE_SECRET_KEYS" if path is None else str(path))


def against_database(url: str, key_ids: Sequence[str]) -> Iterator[Finding]:
    """What the database tells: values that no key here opens, and processes that know other keys."""
    running, unopened = asyncio.run(look(url, key_ids))
    if unopened:
        yield Finding("keyring", f"{unopened} stored values are sealed with a key that is not in the keyring", PUT_BACK)
    for process in running:
        if process.known:
            yield from difference(process, key_ids)


async def look(url: str, key_ids: Sequence[str]) -> tuple[list[ReplicaKeys], int]:
    """The processes that run, and how many values no key of these opens."""
    store = open_store(url)
    try:
        running = await store.read(running_keys, now=SystemClock().now())
        return running, await store.read(count_unopened, key_ids=key_ids)
    finally:
        await store.aclose()


def count_unopened(connection: Connection, *, key_ids: Sequence[str]) -> int:
    """How many values were sealed with no key of these."""
    return count_sealed(connection) - sum(count_of_key(connection, key_id=key_id) for key_id in key_ids)


def difference(process: ReplicaKeys, key_ids: Sequence[str]) -> Iterator[Finding]:
    """How a process's keys differ from these."""
    seals, missing = process.known[0], [key_id for key_id in key_ids if key_id not in process.known]
    if seals not in key_ids:
        yield Finding("keyring", f"process {process.id} seals with key {seals}, which is not in the keyring", PUT_BACK)
    elif key_ids[0] in missing:
        fix = f"put key {key_ids[0]} behind the others, restart every process, and move it to the front when all know it"
        yield Finding("keyring", f"process {process.id} does not know key {key_ids[0]}, which stands first here", fix)
    elif missing:
        yield Note("keyring", f"process {process.id} does not know key {', '.join(missing)}; key {seals} seals: restart it")
    elif seals != key_ids[0]:
        yield Note("keyring", f"process {process.id} knows all keys and seals with key {seals}: restart it, so that key {key_ids[0]} seals")
