"""A replay of a great many is made in portions, so that nobody else waits for it."""

from pathlib import Path

import pytest

from storage.deliveries import REPLAY_DELIVERIES, REPLAYED_AT_ONCE, Requeued, requeue_deliveries, requeue_delivery
from storage.engine.sql import Connection, sqlite_dialect
from tests.databases import migrated_sqlite
from tests.deliveries.test_fairness import numbers
from tests.deliveries.transaction import Opened, committed_event, fetched, on_sqlite

FAILED = 10_300
NOW = 1_800_000_000_000


def failed(connection: Connection) -> None:
    """Failed ones of one endpoint, the later the higher their number, and a few of another."""
    columns = "id, event_id, endpoint_id, organisation, state, attempt, attempts, due_ms, created_ms"
    for endpoint, count in (("we_1", FAILED), ("we_2", 5)):
        values = f"'dlv_{endpoint}_' || n, 'evt_' || n, '{endpoint}', 'org_1', 2, 10, 10, 1000 + n, n"
        committed_event(connection, f"insert into delivery({columns}) select {values} from {numbers(connection, count)}")
    if connection.dialect_name == "postgresql":
        committed_event(connection, "analyze delivery")


def left(connection: Connection) -> list[int]:
    """Which have still failed, of the first endpoint."""
    return sorted(created for (created,) in fetched(connection, "select created_ms from delivery where state = 2 and endpoint_id = 'we_1'"))


@pytest.mark.long
def test_a_replay_takes_those_that_failed_first_and_the_next_one_the_rest(opened: Opened) -> None:
    with opened() as connection:
        failed(connection)
        taken = [requeue_deliveries(connection, endpoint="we_1", since_ms=0, now_ms=NOW)]
        assert left(connection) == list(range(REPLAYED_AT_ONCE + 1, FAILED + 1))
        taken += [requeue_deliveries(connection, endpoint="we_1", since_ms=0, now_ms=NOW) for _ in range(2)]
        assert taken == [Requeued(REPLAYED_AT_ONCE, 0), Requeued(FAILED - REPLAYED_AT_ONCE, 0), Requeued(0, 0)]
        again = "select count(*), min(attempts) from delivery where state = 0 and attempt = 0"
        assert fetched(connection, again) == [(FAILED, 10)]


@pytest.mark.long
def test_a_replay_since_a_moment_leaves_what_was_queued_before(opened: Opened) -> None:
    with opened() as connection:
        failed(connection)
        assert requeue_deliveries(connection, endpoint="we_1", since_ms=FAILED - 9, now_ms=NOW) == Requeued(10, 0)
        assert left(connection) == list(range(1, FAILED - 9))


def test_a_replay_brings_forward_what_waits_and_leaves_alone_what_is_due_or_under_way(opened: Opened) -> None:
    columns = "id, event_id, endpoint_id, organisation, state, attempt, attempts, due_ms, created_ms, lease"
    rows = {"later": (NOW + 1, "null"), "due": (NOW, "null"), "held": (NOW + 1, "'lse_1'"), "old": (NOW + 9, "null")}
    with opened() as connection:
        for name, (due, lease) in rows.items():
            created = 1 if name == "old" else 5
            committed_event(
                connection,
                f"insert into delivery({columns}) values ('{name}', '{name}', 'we_1', 'org_1', 0, 7, 7, {due}, {created}, {lease})",
            )
        assert requeue_deliveries(connection, endpoint="we_1", since_ms=5, now_ms=NOW) == Requeued(0, 1)
        found = fetched(connection, "select id, due_ms, attempt, attempts from delivery order by id")
        assert found == [("due", NOW, 7, 7), ("held", NOW + 1, 7, 7), ("later", NOW, 0, 7), ("old", NOW + 9, 7, 7)]
        single = [requeue_delivery(connection, endpoint="we_1", delivery=name, now_ms=NOW) for name in (*rows, "none")]
        assert single == [Requeued(0, 0), Requeued(0, 0), Requeued(0, 0), Requeued(0, 1), None]


def test_on_sqlite_a_replay_reads_no_more_than_its_portion(tmp_path: Path) -> None:
    """PostgreSQL's planner chooses by the numbers of rows, and others write meanwhile."""
    with on_sqlite(migrated_sqlite(tmp_path).removeprefix("sqlite:///")) as connection:
        failed(connection)
        text = REPLAY_DELIVERIES.text(sqlite_dialect())
        binds = {"endpoint": "we_1", "since_ms": 0, "now_ms": NOW, **text.literals}
        how = "\n".join(str(row[-1]) for row in fetched(connection, "explain query plan " + text.sql, **binds))
        assert "delivery_failed (endpoint_id=? AND due_ms>?)" in how, how
        assert "SCAN delivery" not in how and "delivery_due" not in how, how
