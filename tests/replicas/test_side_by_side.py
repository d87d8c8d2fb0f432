"""Upgrades without a stop: this program's processes work on, and start again on, the schema of the release after it."""

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.databases import required_database
from tests.harness.cluster import Cluster, cluster
from tests.harness.processes import Running, environment, running, stop
from tests.replicas.next_release import NEXT, next_release
from tests.replicas.traffic import traffic

pytestmark = pytest.mark.postgres


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Cluster]:
    with required_database(cluster(tmp_path, lease_seconds=60)) as made:
        yield made


def kill(replicas: Cluster, server: Running, id: str) -> None:
    """It ends in the middle of what it does, and the time passes after which the others may take over what it had."""
    stop(server, signal.SIGKILL)
    with psycopg.connect(replicas.url, autocommit=True) as admin:
        admin.execute("update replica set expires_at = 0 where id = %s", [id])


def ready(server: Running) -> tuple[int, object]:
    answer = httpx.get(f"{server.base_url}/health/ready")
    return answer.status_code, answer.json()


@pytest.mark.long
def test_no_call_fails_while_the_next_release_takes_over_from_servers_that_are_killed_and_start_again(replicas: Cluster) -> None:
    release = next_release(replicas.place, expands=True)
    given = environment(replicas.settings)
    first, second = replicas.servers
    assert first.api_key is not None
    [(one,), (other,)] = replicas.rows("select id from replica order by id")
    with traffic(first.api_key, [first.base_url, second.base_url]) as calls:
        assert release.run("db", "upgrade", environment=given) == f"upgraded to {NEXT}"
        for server in (first, second):
            kill(replicas, server, str(one if server is first else other))
        with running(replicas.place / "again", given) as again, running(replicas.place / "new", given, program=release.program) as new:
            calls.servers[:] = [again.base_url, new.base_url]
            assert ready(again) == ready(new) == (200, {"ready": True, "reasons": []})
            before = len(calls.issued)
            calls.wait_for(before + 30)
            calls.servers[:] = [new.base_url, again.base_url]
            assert stop(again) == 0
            calls.wait_for(before + 60)
            calls.end()
        assert calls.failed == []
    assert replicas.rows("select count(*) from intent") == [(len(calls.issued),)]
    assert len(set(calls.issued.values())) == len(calls.issued)
