"""PostgreSQL stands still at each commit of a draw in turn: the key draws one eSIM, or nobody knows and it draws no more."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import psycopg
import pytest

from registry.errors import StoreUnavailable
from tests.harness.postgres_processes import PostgresProcesses, stoppable
from tests.issuance.stage import IssuanceStage, open_issuance_stage

pytestmark = pytest.mark.postgres

SECONDS = 3.0


class Commits:
    """The commits of writes since a moment; at one of them the server stops before it hears of it."""

    def __init__(self, processes: PostgresProcesses) -> None:
        self._processes, self.count, self.stops_at = processes, 0, 0

    def next_stops_at(self, number: int) -> None:
        """Begin to count; 0 never stops."""
        self.count, self.stops_at = 0, number

    def pass_by(self) -> None:
        self.count += 1
        if self.count == self.stops_at:
            self._processes.stop()


@contextmanager
def watched(processes: PostgresProcesses) -> Generator[Commits]:
    """The driver's commits, seen on their way: its own, and those that travel with writes before them as a statement."""
    commits, send, execute = Commits(processes), psycopg.Connection.commit, psycopg.Connection.execute

    def commit(connection: psycopg.Connection[tuple[object, ...]]) -> None:
        if not connection.read_only:
            commits.pass_by()
        send(connection)

    def statement(connection: psycopg.Connection[tuple[object, ...]], query: object, *given: object, **named: object) -> object:
        if query == "COMMIT":
            commits.pass_by()
        return execute(connection, query, *given, **named)  # pyright: ignore[reportCallIssue, reportArgumentType]  # as it was called

    with patch.object(psycopg.Connection, "commit", commit), patch.object(psycopg.Connection, "execute", statement):
        yield commits


async def until_back(stage: IssuanceStage) -> dict[str, str]:
    """The state of every key, as soon as the database says it; what was owed to it is paid."""
    async with asyncio.timeout(30):
        while True:
            try:
                await stage.world.journal.flush()
                return await stage.states()
            except StoreUnavailable:
                await asyncio.sleep(0.02)


@pytest.mark.long
async def test_at_whichever_commit_of_a_draw_the_database_stands_still_its_key_draws_at_most_one_esim(
    tmp_path: Path, postgres: str
) -> None:
    with stoppable(postgres) as processes, watched(processes) as commits:
        async with open_issuance_stage(tmp_path, postgres) as stage:
            await stage.issue("warm")  # what is leased and read once is there
            commits.next_stops_at(0)
            assert (await stage.issue("plain")).status_code == 201
            found: list[tuple[int, str | None, int, str]] = []
            for number in range(1, commits.count + 1):
                before, key = stage.dispatches(), f"key-{number}"
                commits.next_stops_at(number)
                began = asyncio.get_running_loop().time()
                first = await stage.issue(key)
                assert asyncio.get_running_loop().time() - began < SECONDS
                processes.go_on()
                state = (await until_back(stage)).get(key)
                commits.next_stops_at(0)
                again = await stage.issue(key)
                assert stage.dispatches() - before == 1
                found.append((first.status_code, state, again.status_code, again.json().get("code", "")))
    # Claimed, sent, answered: nothing was sent at the first two, and at the third nobody could say whether the answer was kept.
    assert [each[0] for each in found] == [503, 503, 502]
    assert [each[1] for each in found[:2]] == [None, None]
    assert [each[2] for each in found[:2]] == [201, 201]
    assert found[2][1:] in (("outcome_unknown", 502, "OUTCOME_UNKNOWN"), ("issued", 201, ""))
