"""Every command of the page on several processes, with PostgreSQL."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.databases import NO_POSTGRES, migrated_postgres
from tests.docs.blocks import blocks
from tests.docs.reader import done, find, shell
from tests.replicas.cluster import KEYS, free_port
from tests.replicas.test_replicas import until

PAGE = "operations.md"
STARTS = ("SERVICE_METRICS_PORT=9101 reseller serve", "curl -s http://127.0.0.1:9102/metrics")


@pytest.fixture
def database() -> Iterator[str]:
    with migrated_postgres() as url:
        if url is None:
            pytest.skip(NO_POSTGRES)
        yield url


def shown(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/metrics").status_code == 200
    except httpx.ConnectError:
        return False


@pytest.mark.postgres
def test_a_server_and_a_worker_run_beside_each_other_and_show_their_metrics(place: Path, database: str) -> None:
    ports = {"9101": free_port(), "9102": free_port()}
    start, look = (find(block, PAGE) for block in STARTS)
    for written, port in ports.items():
        start, look = start.replace(written, str(port)), look.replace(written, str(port))
    with shell(place, f"{start}wait", SERVICE_DATABASE_URL=database, SERVICE_SECRET_KEYS=KEYS) as both:
        try:
            until(lambda: all(map(shown, ports.values())))
            said = done(place, look)
        finally:
            os.killpg(both.pid, signal.SIGTERM)
            both.communicate(timeout=30)
    names = {line.split("{")[0].split(" ")[0] for line in said.splitlines()}
    assert {"reseller_deliveries_pending", "reseller_deliveries_in_flight", "reseller_delivery_lag_seconds"} <= names


def test_every_command_of_the_page_is_run() -> None:
    assert [block.text for block in blocks("sh", document=PAGE) if not block.text.startswith(STARTS)] == []
