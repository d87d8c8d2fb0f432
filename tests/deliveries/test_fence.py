"""Acks in batches against a model that acknowledges one at a time, on both databases."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.engine.sql import Connection
from storage.events import NewEvent, emit_event
from storage.outbox import (
    DELIVERY_LEASE_MS,
    AttemptOutcome,
    AttemptVerdict,
    LeasedDelivery,
    acknowledge_attempts,
    claim_deliveries,
    return_deliveries,
)
from storage.webhook_endpoints import FAILING_SECONDS, insert_endpoint
from tests.deliveries.transaction import Opened, fetched
from tests.length import examples
from tests.world import CountingIds, SettableClock

ENDPOINTS = {"we_1": "org_a", "we_2": "org_a", "we_3": "org_b"}
START = 1_800_000_000_000


class Row(NamedTuple):
    state: int
    attempt: int
    attempts: int
    due_ms: int
    lease: str | None


@dataclass
class Model:
    """What the deliveries and endpoints should be."""

    rows: dict[str, Row]
    of_endpoint: dict[str, str]
    numbers: dict[str, list[tuple[int, str]]]
    disabled: set[str] = field(default_factory=set[str])
    failing: dict[str, int] = field(default_factory=dict[str, int])

    def acknowledge(self, outcomes: list[AttemptOutcome]) -> int:
        counted = [each for each in outcomes if self._one(each)]
        for endpoint in ENDPOINTS:
            self._judge(endpoint, [each for each in counted if each.endpoint == endpoint and each.verdict != "ours"])
        return len(counted)

    def _one(self, each: AttemptOutcome) -> bool:
        row = self.rows[each.delivery]
        if row.state != 0 or row.lease != each.lease:
            return False
        state = 1 if each.verdict == "ok" else 2 if each.next_ms is None else 0
        self.rows[each.delivery] = Row(state, row.attempt + 1, row.attempts + 1, each.next_ms or each.at_ms, None)
        self.numbers[each.delivery].append((row.attempts + 1, each.outcome))
        return True

    def _judge(self, endpoint: str, own: list[AttemptOutcome]) -> None:
        for each in own:
            if each.verdict == "ok":
                self.failing.pop(endpoint, None)
            else:
                self.failing.setdefault(endpoint, each.at_ms // 1000)
        gone = any(each.verdict == "gone" for each in own)
        if not own or (own[-1].verdict == "ok" and not gone):
            return
        since = self.failing.setdefault(endpoint, own[0].at_ms // 1000)
        if gone or own[-1].at_ms // 1000 - since >= FAILING_SECONDS:
            self.disabled.add(endpoint)
        if endpoint in self.disabled:
            self._fail(endpoint)

    def _fail(self, endpoint: str) -> None:
        for id, row in self.rows.items():
            if self.of_endpoint[id] == endpoint and row.state == 0 and row.lease is None:
                self.rows[id] = row._replace(state=2)


class Desk:
    def __init__(self, connection: Connection) -> None:
        self.connection, self.now = connection, START
        self.leases: list[tuple[str, LeasedDelivery]] = []
        ids = CountingIds(SettableClock(START / 1000))
        for endpoint, organisation in ENDPOINTS.items():
            insert_endpoint(connection, id=endpoint, organisation=organisation, url="https://x.example", secret="s", now=START / 1000)
        for number in range(6):
            organisation = "org_b" if number % 3 == 2 else "org_a"
            event = NewEvent(f"evt_{number}", organisation, "cni_1", "esim.issued", 0, "{}", f"{number}", START // 1000)
            emit_event(connection, event=event, ids=ids)
        found = fetched(self.connection, "select id, endpoint_id, state, attempt, attempts, due_ms, lease from delivery")
        of_endpoint = {id: endpoint for id, endpoint, *_ in found}
        self.model = Model({id: Row(*rest) for id, _, *rest in found}, of_endpoint, {id: [] for id in of_endpoint})

    def claim(self, most: int) -> None:
        token = f"lse_{len(self.leases)}_{self.now}"
        batch = claim_deliveries(self.connection, token=token, now_ms=self.now, most=most)
        taken = [
            id for id, _, lease in fetched(self.connection, "select id, endpoint_id, lease from delivery where state = 0") if lease == token
        ]
        for id in taken:
            row = self.model.rows[id]
            assert row.state == 0
            assert row.due_ms <= self.now
            self.model.rows[id] = row._replace(lease=token, due_ms=self.now + DELIVERY_LEASE_MS)
        for id, row in self.model.rows.items():
            if self.model.of_endpoint[id] in self.model.disabled and row.state == 0 and row.due_ms <= self.now:
                self.follow(id)
        self.leases += [(token, row) for row in batch.leased]
        assert sorted(row.id for row in batch.leased) == sorted(taken)
        flying = [
            self.model.of_endpoint[id] for id, row in self.model.rows.items() if row.lease and row.state == 0 and row.due_ms > self.now
        ]
        assert all(flying.count(endpoint) <= 2 for endpoint in ENDPOINTS)

    def follow(self, id: str) -> None:
        """A claim may have met a delivery of a disabled endpoint, which ends there."""
        ended = dict(fetched(self.connection, "select id, state from delivery"))[id] == 2
        if ended:
            self.model.rows[id] = self.model.rows[id]._replace(state=2, lease=None, due_ms=self.now + DELIVERY_LEASE_MS)

    def ack(self, choices: list[tuple[int, AttemptVerdict, bool]]) -> None:
        outcomes: list[AttemptOutcome] = []
        for place, (which, verdict, last) in enumerate(choices):
            if self.leases:
                token, row = self.leases[which % len(self.leases)]
                next_ms = None if verdict in ("ok", "gone") or last else self.now + 5000
                outcomes.append(AttemptOutcome(row.id, row.endpoint_id, token, self.now + place, f"{verdict}:{place}", 5, verdict, next_ms))
        assert acknowledge_attempts(self.connection, outcomes=outcomes) == self.model.acknowledge(outcomes)

    def let_go(self, which: int) -> None:
        if self.leases:
            token, row = self.leases[which % len(self.leases)]
            held = self.model.rows[row.id]
            if held.lease == token and held.state == 0:
                self.model.rows[row.id] = held._replace(lease=None, due_ms=self.now)
            return_deliveries(self.connection, leases=[(row.id, token)], now_ms=self.now)

    def compare(self) -> None:
        found = fetched(self.connection, "select id, state, attempt, attempts, due_ms, lease from delivery")
        assert {id: Row(*rest) for id, *rest in found} == self.model.rows
        attempts: dict[str, list[tuple[int, str]]] = {id: [] for id in self.model.rows}
        for id, number, outcome in fetched(
            self.connection, "select delivery_id, number, outcome from delivery_attempt order by delivery_id, number"
        ):
            attempts[id].append((number, outcome))
        assert attempts == self.model.numbers
        assert all([number for number, _ in rows] == list(range(1, len(rows) + 1)) for rows in attempts.values())
        endpoints = fetched(self.connection, "select id, status, failing_since from webhook_endpoint")
        assert {id for id, status, _ in endpoints if status == "disabled"} == self.model.disabled
        assert {id: since for id, _, since in endpoints if since is not None} == self.model.failing


VERDICTS = st.sampled_from(["ok", "failed", "failed", "ours", "gone"])
ACTIONS = st.one_of(
    st.tuples(st.just("claim"), st.integers(1, 9)),
    st.tuples(st.just("ack"), st.lists(st.tuples(st.integers(0, 99), VERDICTS, st.booleans()), min_size=1, max_size=6)),
    st.tuples(st.just("wait"), st.sampled_from([1, 5_001, DELIVERY_LEASE_MS, FAILING_SECONDS * 1000])),
    st.tuples(st.just("let_go"), st.integers(0, 99)),
)


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(20))
@given(actions=st.lists(ACTIONS, min_size=4, max_size=25))
def test_a_batch_of_acks_does_what_one_after_the_other_would(opened: Opened, actions: list[tuple[str, Any]]) -> None:
    with opened() as connection:
        desk = Desk(connection)
        desk.claim(9)
        for name, given_to in actions:
            if name == "wait":
                desk.now += given_to
            else:
                {"claim": desk.claim, "ack": desk.ack, "let_go": desk.let_go}[name](given_to)
            desk.compare()
