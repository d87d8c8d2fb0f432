"""A process that stops while its log is being moved stops all the same."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from storage.confirm_tokens import insert_confirm_token
from storage.engine.sqlite import Checkpointer, SqliteStore
from tests.databases import migrated_sqlite

ROUNDS = 100
# Without a bound the log would have about twice as many bytes by then, on a quick machine more.
SECONDS, MOST_BYTES = 2.5, 200_000_000


@pytest.mark.long
def test_a_checkpointer_stops_whenever_it_is_told_to(tmp_path: Path) -> None:
    migrated_sqlite(tmp_path)
    for turn in range(ROUNDS):
        checkpointer = Checkpointer(tmp_path / "service.db", every=0.0002)
        checkpointer.notice()
        threading.Event().wait((turn % 20) / 20_000)
        closing = threading.Thread(target=checkpointer.close, daemon=True)
        closing.start()
        closing.join(5)
        assert not closing.is_alive(), f"turn {turn}: it missed that it was to stop"


@pytest.mark.long
async def test_the_log_does_not_grow_for_ever_under_a_steady_load(tmp_path: Path) -> None:
    migrated_sqlite(tmp_path)
    store = SqliteStore(tmp_path / "service.db")
    longest = turn = 0
    try:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            await asyncio.gather(*(keep(store, turn * 64 + each) for each in range(64)))
            turn += 1
            longest = max(longest, (tmp_path / "service.db-wal").stat().st_size)
    finally:
        await store.aclose()
    assert longest < MOST_BYTES


async def keep(store: SqliteStore, number: int) -> None:
    await store.write(
        insert_confirm_token,
        digest=number.to_bytes(8, "big"),
        organisation="org_1",
        principal="usr_" + "p" * 2000,
        operation="op",
        fingerprint=b"f",
        expires_at=2e9,
    )
