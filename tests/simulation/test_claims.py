"""Idempotency claims of processes that are slow, refuse, crash and come back: one key, at most one dispatch, one answer."""

import hashlib
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from registry.errors import Conflict, OcsError, QuotaExceeded
from registry.policy import quota_period
from registry.ports import AlreadyAnswered, CallRecord, StoredAnswer
from storage.claims import release_orphaned_claims
from storage.journal import StoreJournal
from storage.quota import QuotaBlocks
from storage.replicas import REPLICA_LEASE_SECONDS, renew_replica
from tests.harness.machine_runner import MachineStore
from tests.length import examples

pytestmark = pytest.mark.long

KEYS, INPUTS, REPLICAS = st.sampled_from("kl"), st.sampled_from("xy"), st.sampled_from([0, 1, 2])


@dataclass
class Key:
    """What a key's history must look like."""

    dispatches: int = 0
    input: str = ""
    runs_at: int | None = None
    call: str = ""
    abandoned: bool = False
    unknown: bool = False
    answers: set[bytes] = field(default_factory=set[bytes])


def no_limit(used: int) -> QuotaExceeded:
    return QuotaExceeded("used up", limit=1, used=used, reset_at="", retry_after=1, upgrade_url="")


class ClaimMachine(RuleBasedStateMachine):
    """Three processes answer calls with two keys and two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.seat = MachineStore()
        self.journals: list[StoreJournal] = [self.born() for _ in range(3)]
        self.keys = {"k": Key(), "l": Key()}

    def teardown(self) -> None:
        self.seat.close()

    def born(self) -> StoreJournal:
        seat = self.seat
        name = seat.ids.new("rpl_")
        seat.run(seat.store.write(renew_replica, replica=name, now=seat.clock.now()))
        return StoreJournal(seat.store, keyring=seat.keyring, blocks=QuotaBlocks(seat.store, 20), clock=seat.clock, replica=name)

    def entry(self, key: str, given: str, call: str) -> CallRecord:
        now = self.seat.clock.now()
        return CallRecord(
            surface="http",
            operation="order",
            request_id=call,
            organisation="org_1",
            principal="usr_1",
            key_id="",
            scope=0,
            recheck=False,
            now=now,
            started=0,
            idempotency_key=key,
            fingerprint=hashlib.sha256(given.encode()).digest(),
            expires_at=None,
            confirm=None,
            cost=0,
            period=quota_period(now),
            limit=1,
            over_quota=no_limit,
        )

    @rule(replica=REPLICAS, key=KEYS, given=INPUTS)
    def call(self, replica: int, key: str, given: str) -> None:
        """A call looks for a stored answer, then claims."""
        journal, entry, model = self.journals[replica], self.entry(key, given, self.seat.ids.new("req_")), self.keys[key]
        try:
            stored = self.seat.run(journal.stored(entry))
            if stored is None:
                self.seat.run(journal.open(entry))
        except AlreadyAnswered as won:
            stored = won.stored
        except Conflict as conflict:
            reused = conflict.error_code == "idempotency_key_reused"
            assert reused == (model.input != given)
            assert reused or model.runs_at is not None
            return
        except OcsError as error:
            assert error.outcome_unknown and model.input == given and not model.answers
            assert model.abandoned
            model.unknown = True
            return
        if stored is None:
            assert model.dispatches == 0
            model.dispatches, model.input, model.runs_at, model.call = 1, given, replica, entry.request_id
        else:
            assert model.input == given
            model.answers.add(stored.body)

    @rule(key=KEYS, unknown=st.booleans())
    def finish(self, key: str, unknown: bool) -> None:
        """The provider has answered, or nobody knows."""
        model = self.keys[key]
        if model.runs_at is None:
            return
        journal, body = self.journals[model.runs_at], f"answer {len(model.answers)}".encode()
        entry = self.entry(key, model.input, model.call)
        self.seat.run(journal.close(entry, StoredAnswer(502 if unknown else 201, body), outcome="ok", unknown=unknown, writes=[], lost=[]))
        model.runs_at, model.abandoned = None, False
        model.answers.add(body)

    @rule(key=KEYS)
    def refuse(self, key: str) -> None:
        """The provider was never asked: the key is free, unless somebody has called its outcome unknown meanwhile."""
        model = self.keys[key]
        if model.runs_at is None or model.abandoned:
            return
        self.seat.run(self.journals[model.runs_at].release(self.entry(key, model.input, model.call), [], refund=True))
        self.keys[key] = Key()

    @rule(replica=REPLICAS)
    def crash(self, replica: int) -> None:
        """A process ends; its calls are never finished."""
        for model in self.keys.values():
            if model.runs_at == replica:
                model.runs_at, model.abandoned = None, True
        self.journals[replica] = self.born()
        self.pass_time(REPLICA_LEASE_SECONDS + 1)

    @precondition(lambda self: any(model.runs_at is not None for model in self.keys.values()))
    @rule(replica=REPLICAS)
    def stall(self, replica: int) -> None:
        """A process misses its lease and goes on: its calls may be called unknown before it finishes them."""
        self.pass_time(REPLICA_LEASE_SECONDS + 1, without=replica)
        for model in self.keys.values():
            model.abandoned = model.abandoned or model.runs_at == replica
        self.seat.run(self.seat.store.write(release_orphaned_claims, now=self.seat.clock.now()))

    @rule()
    def sweep(self) -> None:
        self.seat.run(self.seat.store.write(release_orphaned_claims, now=self.seat.clock.now()))

    def pass_time(self, seconds: float, without: int | None = None) -> None:
        self.seat.clock.advance(seconds)
        for number, journal in enumerate(self.journals):
            if number != without:
                self.seat.run(self.seat.store.write(renew_replica, replica=journal.replica, now=self.seat.clock.now()))

    @invariant()
    def one_dispatch_and_one_answer(self) -> None:
        for model in self.keys.values():
            assert model.dispatches <= 1
            assert len(model.answers) <= 1


TestClaims = ClaimMachine.TestCase
TestClaims.settings = settings(max_examples=examples(15), stateful_step_count=50, deadline=None)
