"""Delivering events: claim a batch, sign and send each, acknowledge in batches. No transaction is open while a POST is under way."""

from collections.abc import Sequence
from typing import NamedTuple

from clients.webhooks.schedule import next_delay
from clients.webhooks.sender import Attempt, Sender
from clients.webhooks.signature import sign
from clients.webhooks.url import bounded_host
from operations.services.webhooks.event_body import Event, ReportEvent, body_of, sent_of
from registry.clock import Clock
from registry.ids import Ids
from storage.secrets.sealed_fields import webhook_secret_field
from storage.secrets.sealing import Keyring
from storage.store import Store
from storage.webhooks import outbox
from storage.webhooks.outbox import Leased, Outcome, Verdict

USER_AGENT = "connectivity-webhooks/1"


class Claimed(NamedTuple):
    """A delivery and the lease it is held under."""

    lease: str
    row: Leased


class Deliveries:
    """The outbox of a process."""

    def __init__(self, *, store: Store, keyring: Keyring, sender: Sender, clock: Clock, ids: Ids, lease_ms: int = outbox.LEASE_MS) -> None:
        self._store, self._keyring, self._sender, self._clock, self._ids = store, keyring, sender, clock, ids
        self._lease_ms, self._busy, self._walked = lease_ms, False, ""

    async def claim(self, most: int) -> list[Claimed]:
        """Take what is due; empty when nothing is, or when every endpoint with something due has its two under way."""
        while self._busy or await self._anything_due():
            lease, now_ms = self._ids.new("lse_"), self._now_ms()
            batch = await self._store.write(
                outbox.claim,
                token=lease,
                now_ms=now_ms,
                most=most,
                lease_ms=self._lease_ms,
                host_of=bounded_host,
                after=self._walked,
            )
            self._busy, self._walked = batch.taken > 0, batch.walked
            if batch.leased or not batch.taken:  # a batch of nothing but disabled endpoints hides what comes after it
                return [Claimed(lease, row) for row in batch.leased]
        return []

    async def _anything_due(self) -> bool:
        """Asked before the write lock is taken, unless the claim before this one found something."""
        due = await self._store.read(outbox.next_due)
        return due is not None and due <= self._now_ms()

    async def send(self, claimed: Claimed) -> Outcome:
        """One signed POST, and what follows from it."""
        row, body = claimed.row, body_of(self._event(claimed.row))
        started = self._clock.now()
        headers = sign(self._secrets(row, started), row.event_id, int(started), body)
        headers |= {"content-type": "application/json", "user-agent": USER_AGENT}
        return self._judge(claimed, started, await self._sender.post(row.url or "", body, headers, private=bool(row.private_receivers)))

    def faulted(self, claimed: Claimed) -> Outcome:
        """A fault of ours took the attempt's place: it counts in the schedule, not against the endpoint."""
        return self._outcome(claimed, self._clock.now(), "internal", 0, "ours", self._next(claimed, None))

    async def ack(self, outcomes: Sequence[Outcome]) -> int:
        """Keep how attempts went; how many still held their lease."""
        return await self._store.write(outbox.ack, outcomes=outcomes) if outcomes else 0

    async def give_back(self, claimed: Sequence[Claimed]) -> None:
        """Let go of what was not finished: it is due at once."""
        if claimed:
            leases = [(each.row.id, each.lease) for each in claimed]
            await self._store.write(outbox.give_back, leases=leases, now_ms=self._now_ms())

    def _event(self, row: Leased) -> Event | ReportEvent:
        return sent_of(id=row.event_id, type=row.type, livemode=row.livemode, created=row.created, data=row.data)

    def _secrets(self, row: Leased, now: float) -> list[str]:
        """The current secret, and for a day after a rotation the one before."""
        sealed = [row.secret or ""]
        if row.previous_secret is not None and (row.previous_until or 0) > now:
            sealed.append(row.previous_secret)
        return [self._keyring.open(each, org_id=row.organisation, field=webhook_secret_field(row.endpoint_id)) for each in sealed]

    def _judge(self, claimed: Claimed, started: float, attempt: Attempt) -> Outcome:
        if attempt.ok:
            return self._outcome(claimed, started, "ok", attempt.milliseconds, "ok", None)
        if attempt.gone:
            return self._outcome(claimed, started, attempt.outcome, attempt.milliseconds, "gone", None)
        return self._outcome(claimed, started, attempt.outcome, attempt.milliseconds, "failed", self._next(claimed, attempt.retry_after))

    def _outcome(self, claimed: Claimed, at: float, outcome: str, milliseconds: int, verdict: Verdict, next_ms: int | None) -> Outcome:
        row = claimed.row
        return Outcome(
            row.id, row.endpoint_id, claimed.lease, int(at * 1000), outcome, milliseconds, verdict, next_ms, bounded_host(row.url or "")
        )

    def _next(self, claimed: Claimed, retry_after: float | None) -> int | None:
        """When the attempt after this one is due, counted from the end of this one."""
        delay = next_delay(claimed.row.attempt + 1, self._ids.fraction, retry_after)
        return None if delay is None else int((self._clock.now() + delay) * 1000)

    def _now_ms(self) -> int:
        return int(self._clock.now() * 1000)
