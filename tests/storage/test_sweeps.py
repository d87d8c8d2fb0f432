"""What is swept on PostgreSQL while others write: only what has ended, as it is when its turn comes."""

import asyncio
import threading
import time

import psycopg
import pytest

from storage.claims import Claim, find_claim, sweep_claims, take_claim
from storage.engine.sql import Connection
from storage.engine.store import open_store
from storage.engine.sweep import sweep_in_steps

pytestmark = pytest.mark.postgres
NOW, DAY = 1_000_000, 86_400
NAMES = {"organisation": "org_1", "operation": "create_connectivity_intent", "key": "k"}


def answered(connection: Connection, *, now: int, body: str) -> None:
    """A key that is claimed and answered at once."""
    given = {"fingerprint": b"", "owner": "replica", "lease": "call", "state": "done", "status": 201}
    take_claim(connection, **NAMES, **given, now=now, expires_at=now + DAY, body=body)  # pyright: ignore[reportArgumentType]


def found(connection: Connection) -> Claim | None:
    return find_claim(connection, **NAMES, now=NOW + DAY + 1)


def wait_for_a_lock(url: str) -> None:
    """Until somebody waits for a row that another has written."""
    waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    ends = time.monotonic() + 60
    with psycopg.connect(url, autocommit=True) as admin:
        while admin.execute(waiting).fetchone() == (0,):
            assert time.monotonic() < ends, "nobody waits for a row"
            time.sleep(0.01)


async def test_a_key_that_is_claimed_anew_while_it_is_swept_keeps_its_answer(postgres: str) -> None:
    store = open_store(postgres)
    await store.write(answered, now=NOW, body="old")
    claimed, commit = threading.Event(), threading.Event()

    def anew(connection: Connection) -> None:
        answered(connection, now=NOW + DAY + 1, body="new")
        claimed.set()
        assert commit.wait(60)

    writing = asyncio.ensure_future(store.write(anew))
    await asyncio.to_thread(claimed.wait, 60)
    sweeping = asyncio.ensure_future(sweep_in_steps(store, sweep_claims, before=NOW + DAY + 1))
    await asyncio.to_thread(wait_for_a_lock, postgres)
    commit.set()
    await writing
    assert await sweeping == 0
    kept = await store.read(found)
    assert kept is not None and kept.body == "new"
    await store.aclose()
