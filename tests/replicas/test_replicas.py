"""Two servers and two workers on one PostgreSQL database: what one of them holds when it ends is done by the others."""

import asyncio
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.databases import required_database
from tests.harness.cluster import Cluster, cluster, shown_metrics
from tests.harness.held_receiver import receiving

pytestmark = pytest.mark.postgres

LISTENERS = "select count(*) from pg_stat_activity where application_name = 'reseller listener' and datname = current_database()"


@pytest.fixture
def replicas(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    with required_database(cluster(tmp_path, lease_seconds=request.param)) as made:
        yield made


def until(done: Callable[[], bool]) -> None:
    async def look() -> None:
        async with asyncio.timeout(60):
            while not done():
                await asyncio.sleep(0.02)

    asyncio.run(look())


@pytest.mark.long
@pytest.mark.parametrize("replicas", [5], indirect=True)
def test_a_worker_killed_while_it_holds_leases_loses_no_delivery(replicas: Cluster) -> None:
    with receiving(held=True) as held, receiving() as quick:
        secrets = [replicas.register(held.url), replicas.register(quick.url)]
        first = replicas.work()
        replicas.issue(10)
        held.wait(posts=2)  # the most that are under way for one endpoint
        second = replicas.work()
        assert shown_metrics(replicas.metrics_port)["deliveries_in_flight"] >= 2
        assert first.end(signal.SIGKILL)[0] == -signal.SIGKILL
        cut_off, under_way = {headers["webhook-id"] for headers, _ in held.posts[:2]}, set(held.ids())
        held.gate.set()
        replicas.issue(10)
        events = replicas.events()
        for receiver in (held, quick):
            receiver.wait_for_events(events)
        until(lambda: shown_metrics(replicas.metrics_port)["deliveries_pending"] == 0)
        assert replicas.rows("select state, count(*) from delivery group by state") == [(1, 40)]
        repeated = {event for event, times in held.ids().items() if times > 1}
        assert len(cut_off) == 2 and cut_off <= repeated <= under_way
        assert set(quick.ids().values()) == {1}
        for receiver, secret in zip((held, quick), secrets, strict=True):
            assert set(receiver.ids()) == events
            receiver.check(secret)
        assert second.end(signal.SIGTERM) == (0, ["stopped"])


@pytest.mark.long
@pytest.mark.parametrize("replicas", [60], indirect=True)
def test_a_worker_told_to_end_finishes_what_is_under_way_and_leaves_the_rest_to_the_other(replicas: Cluster) -> None:
    with receiving(held=True) as held:
        secret = replicas.register(held.url)
        first = replicas.work()
        replicas.issue(6)
        held.wait(posts=2)
        second = replicas.work()
        until(lambda: replicas.rows(LISTENERS) == [(2,)])
        first.process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            first.process.wait(0.3)
        held.gate.set()
        assert first.end(signal.SIGCONT) == (0, ["stopped"])
        events = replicas.events()
        held.wait_for_events(events)
        until(lambda: shown_metrics(second.metrics_port)["deliveries_pending"] == 0)
        assert set(held.ids().values()) == {1} and set(held.ids()) == events
        held.check(secret)
        assert replicas.rows(LISTENERS) == [(1,)]
        assert second.end(signal.SIGTERM) == (0, ["stopped"])
        assert replicas.rows(LISTENERS) == [(0,)]
        assert {lease for _, lease in replicas.rows("select name, lease from job")} == {None}
        assert replicas.rows("select count(*) from delivery where lease is not null") == [(0,)]
