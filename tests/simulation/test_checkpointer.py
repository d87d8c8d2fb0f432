"""A process that stops while its log is being moved stops all the same."""

import threading
from pathlib import Path

from storage.checkpointer import Checkpointer
from tests.databases import migrated_sqlite

ROUNDS = 400


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
