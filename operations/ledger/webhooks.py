"""Webhooks: an event as the API and endpoints show it, its deliveries, and which addresses may receive them.

A delivery is claimed in a batch, signed, sent, and acknowledged in a batch. No transaction is open while a POST is under way.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, cast

import orjson
from typing_extensions import TypedDict

from clients.webhooks.receiver_url import BadReceiverUrl, check_receiver_url, rate_limited_host
from clients.webhooks.sender import DeliveryAttempt, WebhookSender, next_retry_delay
from clients.webhooks.signature import sign_delivery
from operations.deps import Ctx
from registry.clock import Clock
from registry.errors import BadRequest
from registry.ids import Ids
from storage import outbox
from storage.engine.store import Store
from storage.organisations import may_receive_privately
from storage.outbox import AttemptOutcome, AttemptVerdict, LeasedDelivery
from storage.sealing import Keyring, webhook_secret_field

EventType = Literal["esim.issued", "esim.first_attach", "usage.threshold_reached"]
EventData: TypeAlias = dict[str, object]


class Event(TypedDict):
    """Something that happened to an intent. `created` is Unix seconds; `data` never holds an activation code."""

    id: str
    object: Literal["connectivity.event"]
    type: EventType
    livemode: bool
    created: int
    data: EventData


class ReportEvent(TypedDict):
    """A schedule's report has ended. `data` names it and says its headline and first figures; it never names a line."""

    id: str
    object: Literal["intelligence.event"]
    type: Literal["intelligence.report"]
    livemode: bool
    created: int
    data: EventData


def event_of_row(*, id: str, type: str, livemode: int, created: int, data: str) -> Event:
    """The event that a row stores; `created` is Unix seconds, `data` JSON."""
    return {
        "id": id,
        "object": "connectivity.event",
        "type": cast(EventType, type),
        "livemode": bool(livemode),
        "created": created,
        "data": cast(EventData, orjson.loads(data)),
    }


def outgoing_event(*, id: str, type: str, livemode: int, created: int, data: str) -> Event | ReportEvent:
    """What is delivered of a row: an event of connectivity, or a report's."""
    event = event_of_row(id=id, type=type, livemode=livemode, created=created, data=data)
    if type != "intelligence.report":
        return event
    return {**event, "object": "intelligence.event", "type": "intelligence.report"}


def event_bytes(event: Event | ReportEvent) -> bytes:
    """The bytes of every delivery of an event: the same ones each time, since keys keep the order in which they were stored."""
    return orjson.dumps(event)


WEBHOOK_USER_AGENT = "connectivity-webhooks/1"


class ClaimedDelivery(NamedTuple):
    """A delivery and the lease it is held under."""

    lease: str
    row: LeasedDelivery


class WebhookDeliveries:
    """The outbox of a process."""

    def __init__(
        self, *, store: Store, keyring: Keyring, sender: WebhookSender, clock: Clock, ids: Ids, lease_ms: int = outbox.DELIVERY_LEASE_MS
    ) -> None:
        self._store, self._keyring, self._sender, self._clock, self._ids = store, keyring, sender, clock, ids
        self._lease_ms, self._busy, self._walked = lease_ms, False, ""

    async def claim(self, most: int) -> list[ClaimedDelivery]:
        """Take what is due; empty when nothing is, or when every endpoint with something due has its two under way."""
        while self._busy or await self._anything_due():
            lease, now_ms = self._ids.new("lse_"), self._now_ms()
            batch = await self._store.write(
                outbox.claim_deliveries,
                token=lease,
                now_ms=now_ms,
                most=most,
                lease_ms=self._lease_ms,
                host_of=rate_limited_host,
                after=self._walked,
            )
            self._busy, self._walked = batch.taken > 0, batch.walked
            if batch.leased or not batch.taken:  # a batch of nothing but disabled endpoints hides what comes after it
                return [ClaimedDelivery(lease, row) for row in batch.leased]
        return []

    async def _anything_due(self) -> bool:
        """Asked before the write lock is taken, unless the claim before this one found something."""
        due = await self._store.read(outbox.next_delivery_due)
        return due is not None and due <= self._now_ms()

    async def send(self, claimed: ClaimedDelivery) -> AttemptOutcome:
        """One signed POST, and what follows from it."""
        row, body = claimed.row, event_bytes(self._event(claimed.row))
        started = self._clock.now()
        headers = sign_delivery(self._secrets(row, started), row.event_id, int(started), body)
        headers |= {"content-type": "application/json", "user-agent": WEBHOOK_USER_AGENT}
        return self._judge(claimed, started, await self._sender.post(row.url or "", body, headers, private=bool(row.private_receivers)))

    def faulted(self, claimed: ClaimedDelivery) -> AttemptOutcome:
        """A fault of ours took the attempt's place: it counts in the schedule, not against the endpoint."""
        return self._outcome(claimed, self._clock.now(), "internal", 0, "ours", self._next(claimed, None))

    async def ack(self, outcomes: Sequence[AttemptOutcome]) -> int:
        """Keep how attempts went; how many still held their lease."""
        return await self._store.write(outbox.acknowledge_attempts, outcomes=outcomes) if outcomes else 0

    async def give_back(self, claimed: Sequence[ClaimedDelivery]) -> None:
        """Let go of what was not finished: it is due at once."""
        if claimed:
            leases = [(each.row.id, each.lease) for each in claimed]
            await self._store.write(outbox.return_deliveries, leases=leases, now_ms=self._now_ms())

    def _event(self, row: LeasedDelivery) -> Event | ReportEvent:
        return outgoing_event(id=row.event_id, type=row.type, livemode=row.livemode, created=row.created, data=row.data)

    def _secrets(self, row: LeasedDelivery, now: float) -> list[str]:
        """The current secret, and for a day after a rotation the one before."""
        sealed = [row.secret or ""]
        if row.previous_secret is not None and (row.previous_until or 0) > now:
            sealed.append(row.previous_secret)
        return [self._keyring.open(each, org_id=row.organisation, field=webhook_secret_field(row.endpoint_id)) for each in sealed]

    def _judge(self, claimed: ClaimedDelivery, started: float, attempt: DeliveryAttempt) -> AttemptOutcome:
        if attempt.ok:
            return self._outcome(claimed, started, "ok", attempt.milliseconds, "ok", None)
        if attempt.gone:
            return self._outcome(claimed, started, attempt.outcome, attempt.milliseconds, "gone", None)
        return self._outcome(claimed, started, attempt.outcome, attempt.milliseconds, "failed", self._next(claimed, attempt.retry_after))

    def _outcome(
        self, claimed: ClaimedDelivery, at: float, outcome: str, milliseconds: int, verdict: AttemptVerdict, next_ms: int | None
    ) -> AttemptOutcome:
        row = claimed.row
        return AttemptOutcome(
            row.id,
            row.endpoint_id,
            claimed.lease,
            int(at * 1000),
            outcome,
            milliseconds,
            verdict,
            next_ms,
            rate_limited_host(row.url or ""),
        )

    def _next(self, claimed: ClaimedDelivery, retry_after: float | None) -> int | None:
        """When the attempt after this one is due, counted from the end of this one."""
        delay = next_retry_delay(claimed.row.attempt + 1, self._ids.fraction, retry_after)
        return None if delay is None else int((self._clock.now() + delay) * 1000)

    def _now_ms(self) -> int:
        return int(self._clock.now() * 1000)


WEBHOOK_ADDRESS_HINT = (
    "Give an https address that the internet can reach. Receivers in the operator's own network are opened by whoever runs the service, "
    "with SERVICE_WEBHOOK_PRIVATE and `reseller org allow-private`; outside production SERVICE_WEBHOOK_ALLOW_NETS=127.0.0.0/8 opens "
    "this machine"
)


async def check_webhook_address(ctx: Ctx, url: str, *, param: str = "url") -> None:
    """Refuse what deliveries of the caller's organisation could not or must not reach; the refusal never repeats path or query."""
    deps = ctx.deps
    try:
        check_receiver_url(url, deps.webhook_exempt)
    except BadReceiverUrl as error:
        if not (deps.webhook_private and await deps.store.read(may_receive_privately, organisation=ctx.organisation)):
            raise bad_webhook_address(error, param) from None
        try:
            check_receiver_url(url, deps.webhook_exempt, deps.webhook_private)
        except BadReceiverUrl as still:
            raise bad_webhook_address(still, param) from None


def bad_webhook_address(error: BadReceiverUrl, param: str) -> BadRequest:
    return BadRequest(f"{param}: {error.reason}", param=param, hint=WEBHOOK_ADDRESS_HINT)
