"""What Prometheus reads: every number moves with what it counts, whichever replica is asked."""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families

from clients.outside_system import OutsideSystem
from operations.deps import Build
from registry.clock import ActiveRequest
from storage.engine.sql import Command, Connection
from storage.engine.store import open_store
from storage.issuance import IssuanceTable
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.deliveries.post_office import PostOffice
from tests.deliveries.test_worker import loop_until, to_the_next
from transports.http.concurrency import AnswerReader, LargeAnswers, RequestTurns
from transports.http.connections import Connections
from transports.http.server import bind_socket, socket_port
from transports.metrics import HttpServerState, Metrics, listen_for_scrapes
from transports.readiness import Readiness
from transports.signals import HttpSignals, WorkerTally


async def values(metrics: Metrics) -> dict[str, float]:
    found = dict[str, float]()
    for family in text_string_to_metric_families((await metrics.text()).decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sample.labels.items())
            found[sample.name.removeprefix("reseller_") + (f"{{{labels}}}" if labels else "")] = sample.value
    return found


async def waiting(metrics: Metrics) -> tuple[float, ...]:
    """Pending, due, in flight, failed, and the lag."""
    found = await values(metrics)
    return (*(found[f"deliveries_{name}"] for name in ("pending", "due", "in_flight", "failed")), found["delivery_lag_seconds"])


@pytest.mark.long
async def test_depth_and_lag_follow_the_deliveries_and_any_replica_knows_them(on_both: PostOffice) -> None:
    office, release = on_both, asyncio.Event()
    idle = Metrics(office.store, office.clock, WorkerTally())

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await status_answer("500 Oops")(reader, writer)

    assert await waiting(idle) == (0, 0, 0, 0, 0)
    async with receiver(slow) as there:
        await office.endpoint(there.url())
        for number in range(3):
            await office.emit(f"{number}")
        office.clock.advance(7)
        assert await waiting(idle) == (3, 3, 0, 0, 7)
        worker = office.worker()
        step = asyncio.create_task(worker.step())
        await loop_until(lambda: len(there.requests) == 2)  # at most two of an endpoint
        assert await waiting(idle) == (3, 1, 2, 0, 7)
        release.set()
        assert await step == 3
        assert await waiting(idle) == (3, 0, 0, 0, 0)  # each waits for its second attempt
        while await to_the_next(office):
            await worker.step()
        assert await waiting(idle) == (0, 0, 0, 3, 0)
    own, others = await values(Metrics(office.store, office.clock, worker.tally)), await values(idle)
    assert own["delivery_attempts_total{outcome=status:5xx}"] == 30
    assert own["delivery_attempt_seconds_bucket{le=+Inf}"] == own["delivery_attempt_seconds_count"] == 30
    assert "delivery_attempts_total{outcome=status:5xx}" not in others and others["delivery_attempt_seconds_count"] == 0


async def test_attempts_are_counted_by_class_and_by_seconds_and_chores_by_their_last_success(office: PostOffice) -> None:
    worker = office.worker()
    metrics = Metrics(office.store, office.clock, worker.tally)
    assert (await values(metrics))["chore_last_success_timestamp_seconds{chore=retention}"] == 0
    for outcome, seconds in (("ok", 0.02), ("ok", 0.05), ("status:404", 0.3), ("status:410", 16.0), ("timeout", 15.0)):
        worker.tally.attempt(outcome, seconds)
    await worker.step()
    found = await values(metrics)
    attempts = {name: value for name, value in found.items() if name.startswith("delivery_attempts_total")}
    assert attempts == {f"delivery_attempts_total{{outcome={name}}}": n for name, n in (("ok", 2), ("status:4xx", 2), ("timeout", 1))}
    buckets = {name: value for name, value in found.items() if name.startswith("delivery_attempt_seconds_bucket")}
    counts = {"0.05": 2, "0.1": 2, "0.25": 2, "0.5": 3, "1.0": 3, "2.5": 3, "5.0": 3, "10.0": 3, "15.0": 4, "+Inf": 5}
    assert buckets == {f"delivery_attempt_seconds_bucket{{le={bound}}}": count for bound, count in counts.items()}
    assert found["delivery_attempt_seconds_sum"] == pytest.approx(31.37)
    assert found["chore_last_success_timestamp_seconds{chore=retention}"] == office.clock.now()


BINDS = {name: sa.bindparam(name) for name in ("key", "state", "dispatched", "updated")}
OTHERS = {"organisation": "org_1", "operation": "issue", "principal": "key_1", "owner": "rpl_1", "stock": "", "account_id": 1}
ISSUE = Command(lambda dialect: dialect.insert(IssuanceTable.table).values({**OTHERS, "template_id": 1, "due_ms": 0, **BINDS}))


def issue(connection: Connection, *, rows: Sequence[Mapping[str, str | float]]) -> None:
    connection.run_many(ISSUE, rows)


async def test_unresolved_issuances_are_counted_by_state_and_the_oldest_has_an_age(on_both: PostOffice) -> None:
    office, now = on_both, on_both.clock.now()
    given = [
        ("issued", 9000, 9000),
        ("failed", 9000, 9000),
        ("dispatching", 1, 1),
        ("outcome_unknown", 50, 5),
        ("outcome_unknown", 60, 6),
        ("manual_reconciliation_required", 40, 4),
        ("rollback_unknown", 8000, 70),
    ]
    rows = [{"key": f"k{i}", "state": state, "dispatched": now - a, "updated": now - b} for i, (state, a, b) in enumerate(given)]
    await office.store.write(issue, rows=rows)
    found = await values(Metrics(office.store, office.clock, WorkerTally()))
    assert {name: value for name, value in found.items() if name.startswith("issuance") and (value or "unresolved" in name)} == {
        "issuances_unsettled{reason=not_looked_into}": 3,
        "issuances_unresolved{state=dispatching}": 1,
        "issuances_unresolved{state=outcome_unknown}": 2,
        "issuances_unresolved{state=manual_reconciliation_required}": 1,
        "issuances_unresolved{state=rollback_pending}": 0,
        "issuances_unresolved{state=rollback_unknown}": 1,
        "issuance_unresolved_age_seconds": 70,
    }


async def test_no_tenant_is_named(office: PostOffice) -> None:
    async with receiver(status_answer("500 Oops")) as there:
        endpoint, _ = await office.endpoint(there.url())
        event = await office.emit()
        worker = office.worker()
        await worker.step()
    text = (await Metrics(office.store, office.clock, worker.tally).text()).decode()
    assert [word for word in (endpoint, event, office.caller.organisation, "127.0.0.1", "org_", "whe_") if word in text] == []


async def test_without_the_database_the_process_still_tells_of_itself(office: PostOffice) -> None:
    nowhere = open_store("postgresql://nobody@127.0.0.1:9/none", pool=1)
    found = await values(Metrics(nowhere, office.clock, WorkerTally(("retention",))))
    await nowhere.aclose()
    assert found["store_up"] == 0 and "deliveries_pending" not in found
    assert found["chore_last_success_timestamp_seconds{chore=retention}"] == 0


async def test_a_server_tells_what_it_holds_and_whom_it_turned_away(office: PostOffice) -> None:
    large, connections = LargeAnswers(), Connections(512, 64)
    metrics = Metrics(
        office.store, office.clock, WorkerTally(), HttpServerState(large, connections, HttpSignals(), RequestTurns(office.clock.monotonic))
    )
    with large.one_more(AnswerReader("key_1", "org_1"), 3_000_000):
        assert large.refusal(AnswerReader("key_1", "org_1"), 2_000_000, 0.0, "") is not None
        assert large.refusal(AnswerReader("key_2", "org_2"), 100_000_000, 0.0, "") is not None
        found = await values(metrics)
    assert {name: value for name, value in found.items() if name.startswith(("large", "connections"))} == {
        "connections": 0,
        "connections_ended_total{reason=idle}": 0,
        "connections_ended_total{reason=network}": 0,
        "connections_ended_total{reason=slow}": 0,
        "large_answers": 1,
        "large_answer_bytes": 3_000_000,
        "large_answers_refused_total{reason=credential}": 1,
        "large_answers_refused_total{reason=memory}": 1,
        "large_answers_refused_total{reason=organisation}": 0,
    }


async def test_a_process_tells_which_outside_system_it_does_not_ask_and_who_waits(office: PostOffice) -> None:
    system, idle = OutsideSystem("charging_system", office.clock, most_waiting=1), OutsideSystem("model", office.clock)
    request = ActiveRequest(office.clock)
    assert (system.enter(request, "org_1"), system.enter(ActiveRequest(office.clock), "org_2")) == (None, "crowded")
    for _ in range(3):
        system.ended("org_1", failed=True)
    system.breaker.begin_probe("org_1")
    assert system.enter(ActiveRequest(office.clock), "org_1") == "open"
    found = await values(Metrics(office.store, office.clock, WorkerTally(), None, (system, idle)))
    told = {name.removeprefix("upstream_"): value for name, value in found.items() if name.startswith("upstream") and value}
    assert told == {
        "waiting{system=charging_system}": 1,
        "open{system=charging_system}": 1,
        "open_organisations{system=charging_system}": 1,
        "opened_total{of=all,system=charging_system}": 1,
        "opened_total{of=organisation,system=charging_system}": 1,
        "refused_total{reason=crowded,system=charging_system}": 1,
        "refused_total{reason=open,system=charging_system}": 1,
    }


async def ask(bound: socket.socket, request: bytes) -> tuple[str, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", socket_port(bound))
    writer.write(request)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return head.split(b"\r\n")[0].decode(), body


def readiness_of(office: PostOffice) -> Readiness:
    return Readiness(replace(office.world.pipeline.deps, build=Build("1", "abc")), print)


async def test_its_address_has_metrics_and_probes_and_nothing_else(office: PostOffice) -> None:
    metrics = Metrics(office.store, office.clock, WorkerTally())
    rest = b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with bind_socket("127.0.0.1", 0) as bound:
        readiness = readiness_of(office)
        async with listen_for_scrapes(metrics, readiness, bound):
            not_ready = b'{"ready":false,"reasons":["database_unreachable"]}'
            assert await ask(bound, b"GET /health/ready" + rest) == ("HTTP/1.1 503 Service Unavailable", not_ready)
            await readiness.look()
            assert await ask(bound, b"GET /health/ready" + rest) == ("HTTP/1.1 200 OK", b'{"ready":true,"reasons":[]}')
            assert await ask(bound, b"GET /health" + rest) == ("HTTP/1.1 200 OK", b'{"ok":true,"version":"1","build_sha":"abc"}')
            status_line, text = await ask(bound, b"GET /metrics" + rest)
            assert status_line == "HTTP/1.1 200 OK" and text.startswith(b"# HELP reseller_store_up ")
            assert await ask(bound, b"HEAD /metrics" + rest) == ("HTTP/1.1 200 OK", b"")
            assert (await ask(bound, b"GET /" + rest))[0] == "HTTP/1.1 404 Not Found"
            assert (await ask(bound, b"GET /v1/connectivity/plans" + rest))[0] == "HTTP/1.1 404 Not Found"
            assert (await ask(bound, b"POST /metrics" + rest))[0] == "HTTP/1.1 405 Method Not Allowed"
            assert (await ask(bound, b"nonsense\r\n\r\n"))[0] == "HTTP/1.1 400 Bad Request"
            assert await ask(bound, b"GET /" + b"x" * 20_000 + rest) == ("", b"")


async def test_whoever_is_still_asking_when_it_closes_is_let_go_without_a_word(office: PostOffice) -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    with bind_socket("127.0.0.1", 0) as bound:
        async with listen_for_scrapes(Metrics(office.store, office.clock, WorkerTally()), readiness_of(office), bound):
            asking = [await asyncio.open_connection("127.0.0.1", socket_port(bound)) for _ in range(5)]
            for _, writer in asking:
                writer.write(b"GET /met")
            await ask(bound, b"GET / HTTP/1.1\r\n\r\n")  # by now the others are being read
        for reader, writer in asking:
            assert await reader.read() == b""
            writer.close()
    assert faults == []
