"""Webhooks: an event as the API and endpoints show it, its deliveries, and which addresses may receive them.

A delivery is claimed in a batch, signed, sent, and acknowledged in a batch. No transaction is open while a POST is under way.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, NotRequired, TypeAlias, cast

import orjson
from typing_extensions import TypedDict

from clients.webhooks.receiver_url import BadReceiverUrl, check_receiver_url, rate_limited_host
from clients.webhooks.sender import DeliveryAttempt, WebhookSender, next_retry_delay
from clients.webhooks.signature import sign_delivery
from operations.deps import Ctx
from operations.event_types.catalogue import PROMISED_TYPES
from operations.event_types.declaration import new_event
from operations.event_types.endpoint import ORGANISATION_ENDPOINT_DISABLED, DisabledEndpointData, DisablingReason
from operations.ledger.event_rights import ChooserRights
from registry.clock import Clock, rfc3339_utc
from registry.errors import BadRequest
from registry.ids import Ids
from storage import outbox
from storage.endpoint_selections import EndpointSelection
from storage.engine.sql import Connection
from storage.engine.store import Store
from storage.event_log import TEST_POSITION, PlacedEvent, log_event
from storage.organisations import may_receive_privately
from storage.outbox import AttemptOutcome, AttemptVerdict, LeasedDelivery
from storage.sealing import Keyring, webhook_secret_field
from storage.webhook_endpoints import DisabledEndpoint, disable_endpoint

EventData: TypeAlias = dict[str, object]


class Event(TypedDict):
    """Something that happened. `type` is one of list_event_types, which shows what `data` says; it never holds an activation code.

    `created` is Unix seconds. `line_seq` counts the `line.*` events of one line: 1, 2, 3 and so on. `test`: somebody tries an endpoint.
    """

    id: str
    object: Literal["connectivity.event"]
    type: str
    livemode: bool
    created: int
    data: EventData
    line_seq: NotRequired[int]
    test: NotRequired[Literal[True]]


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
        "type": type,
        "livemode": bool(livemode),
        "created": created,
        "data": cast(EventData, orjson.loads(data)),
    }


def outgoing_event(*, id: str, type: str, livemode: int, created: int, data: str) -> Event | ReportEvent:
    """What is delivered of a row: an event of connectivity, or a report's."""
    event = event_of_row(id=id, type=type, livemode=livemode, created=created, data=data)
    if type != "intelligence.report":
        return event
    return {
        "id": id,
        "object": "intelligence.event",
        "type": "intelligence.report",
        "livemode": event["livemode"],
        "created": created,
        "data": event["data"],
    }


def event_of_log(event: PlacedEvent) -> Event:
    """The event that the log keeps."""
    shown = event_of_row(id=event.id, type=event.type, livemode=event.livemode, created=event.created, data=event.data)
    return shown if event.line_number is None else {**shown, "line_seq": event.line_number}


def event_bytes(event: Event | ReportEvent) -> bytes:
    """The bytes of every delivery of an event: the same ones each time, since keys keep the order in which they were stored."""
    return orjson.dumps(event)


class Occurrence(TypedDict):
    """An event in the words of the MCP Events draft. `cursor` stands in deliveries: all up to there was delivered or given up."""

    eventId: str
    name: str
    timestamp: str
    data: EventData
    cursor: NotRequired[str]
    _meta: dict[str, object]


def occurrence_of(event: Event | ReportEvent) -> Occurrence:
    """An event as MCP clients get it. What the draft has no word for stands in `_meta`."""
    meta: dict[str, object] = {"connectivity/livemode": event["livemode"]}
    if "line_seq" in event:
        meta["connectivity/line_seq"] = event["line_seq"]
    return {
        "eventId": event["id"],
        "name": event["type"],
        "timestamp": rfc3339_utc(event["created"]),
        "data": event["data"],
        "_meta": meta,
    }


def safe_position(position: int, undelivered: int | None) -> int:
    """The cursor that a receiver may keep at `position`: up to there all has arrived or was given up but what begins at `undelivered`."""
    return position if undelivered is None else min(position, undelivered - 1)


def tell_disabled(connection: Connection, endpoint: str, organisation: str, reason: DisablingReason, ids: Ids, now: float) -> None:
    """Write the event of an endpoint that this transaction has disabled."""
    data: DisabledEndpointData = {"endpoint": endpoint, "reason": reason}
    log_event(connection, event=new_event(ORGANISATION_ENDPOINT_DISABLED, data, organisation=organisation, ids=ids, now=now))


def end_endpoint(connection: Connection, *, endpoint: str, organisation: str, reason: DisablingReason, ids: Ids, now: float) -> None:
    """Disable an endpoint, unless it is, and tell the organisation."""
    if disable_endpoint(connection, endpoint=endpoint):
        tell_disabled(connection, endpoint, organisation, reason, ids, now)


NOT_READABLE = "not_readable"
"""The outcome of a delivery that was not made: whoever chose the endpoint's types may not read the event now."""

SUBSCRIPTION_ENDED = "subscription_ended"
"""The outcome of a delivery that was not made: the MCP subscription that the endpoint sent for has reached its end."""

SUBSCRIPTION_HEADER = "x-mcp-subscription-id"

UNWANTED_STATUSES = (410, 413)
"""In the draft MCP Events: this one event is not wanted, or too large, and is not sent again; the subscription goes on."""

WEBHOOK_USER_AGENT = "connectivity-webhooks/1"


class ClaimedDelivery(NamedTuple):
    """A delivery and the lease it is held under."""

    lease: str
    row: LeasedDelivery


class WebhookDeliveries:
    """The outbox of a process."""

    def __init__(
        self,
        *,
        store: Store,
        keyring: Keyring,
        sender: WebhookSender,
        clock: Clock,
        ids: Ids,
        rights: ChooserRights,
        lease_ms: int = outbox.DELIVERY_LEASE_MS,
    ) -> None:
        """`rights`: of those who chose which events endpoints get."""
        self._store, self._keyring, self._sender, self._clock, self._ids = store, keyring, sender, clock, ids
        self._rights = rights
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
        row, started = claimed.row, self._clock.now()
        if row.expires is not None and row.expires <= started:
            return self._outcome(claimed, started, SUBSCRIPTION_ENDED, 0, "ours", None)
        if not await self._may_get(row, started):
            return self._outcome(claimed, started, NOT_READABLE, 0, "ours", None)
        body = event_bytes(self._event(row)) if row.subscription is None else await self._occurrence_bytes(row)
        headers = sign_delivery(self._secrets(row, started), row.event_id, int(started), body)
        headers |= {"content-type": "application/json", "user-agent": WEBHOOK_USER_AGENT}
        if row.subscription is not None:
            headers[SUBSCRIPTION_HEADER] = row.subscription
        return self._judge(claimed, started, await self._sender.post(row.url or "", body, headers, private=bool(row.private_receivers)))

    async def _may_get(self, row: LeasedDelivery, now: float) -> bool:
        """Whether the endpoint may be told of the event now; one whose chooser has ended is disabled. `now`: Unix seconds.

        One that has chosen no types has nobody's rights: what waits for it from a time when it had chosen is not sent.
        """
        if row.types is None or row.position == TEST_POSITION:
            return row.position in (None, TEST_POSITION) or row.type in PROMISED_TYPES
        may = await self._store.read(self._is_readable, row=row, now=now)
        if may is None:
            endpoint, organisation = row.endpoint_id, row.organisation
            await self._store.write(
                end_endpoint, endpoint=endpoint, organisation=organisation, reason="chooser_ended", ids=self._ids, now=now
            )
        return bool(may)

    def _is_readable(self, connection: Connection, *, row: LeasedDelivery, now: float) -> bool | None:
        """Whether whoever chose may read the event; None when they have ended."""
        chosen = EndpointSelection(
            row.endpoint_id, row.organisation, row.types, row.tags, "", row.kind or "", row.principal or "", row.credential or "", 0
        )
        caller = self._rights.chooser(connection, chosen, now)
        return None if caller is None else self._rights.readable(connection, caller, [row])[0]

    async def _occurrence_bytes(self, row: LeasedDelivery) -> bytes:
        """What is sent for an MCP subscription. Its cursor may have moved on when it is sent again."""
        undelivered, position = await self._store.read(outbox.first_undelivered, endpoint=row.endpoint_id), row.position or 0
        cursor = str(safe_position(position, None if undelivered == position else undelivered))
        return orjson.dumps({**occurrence_of(self._event(row)), "cursor": cursor})

    def faulted(self, claimed: ClaimedDelivery) -> AttemptOutcome:
        """A fault of ours took the attempt's place: it counts in the schedule, not against the endpoint."""
        return self._outcome(claimed, self._clock.now(), "internal", 0, "ours", self._next(claimed, None))

    async def ack(self, outcomes: Sequence[AttemptOutcome]) -> int:
        """Keep how attempts went; how many still held their lease."""
        return await self._store.write(self._acknowledge, outcomes=outcomes, now=self._clock.now()) if outcomes else 0

    def _acknowledge(self, connection: Connection, *, outcomes: Sequence[AttemptOutcome], now: float) -> int:
        """Records attempts; an endpoint that they disable is an event."""
        disabled = list[DisabledEndpoint]()
        counted = outbox.acknowledge_attempts(connection, outcomes=outcomes, disabled=disabled)
        for each in disabled:
            tell_disabled(connection, each.endpoint, each.organisation, "gone" if each.gone else "failing", self._ids, now)
        return counted

    async def give_back(self, claimed: Sequence[ClaimedDelivery]) -> None:
        """Let go of what was not finished: it is due at once."""
        if claimed:
            leases = [(each.row.id, each.lease) for each in claimed]
            await self._store.write(outbox.return_deliveries, leases=leases, now_ms=self._now_ms())

    def _event(self, row: LeasedDelivery) -> Event | ReportEvent:
        event = outgoing_event(id=row.event_id, type=row.type, livemode=row.livemode, created=row.created, data=row.data)
        if event["object"] == "intelligence.event":
            return event
        if row.line_number is not None:
            event["line_seq"] = row.line_number
        if row.position == TEST_POSITION:
            event["test"] = True
        return event

    def _secrets(self, row: LeasedDelivery, now: float) -> list[str]:
        """The current secret, and for a day after a rotation the one before."""
        sealed = [row.secret or ""]
        if row.previous_secret is not None and (row.previous_until or 0) > now:
            sealed.append(row.previous_secret)
        return [self._keyring.open(each, org_id=row.organisation, field=webhook_secret_field(row.endpoint_id)) for each in sealed]

    def _judge(self, claimed: ClaimedDelivery, started: float, attempt: DeliveryAttempt) -> AttemptOutcome:
        if attempt.ok:
            return self._outcome(claimed, started, "ok", attempt.milliseconds, "ok", None)
        if claimed.row.position == TEST_POSITION:  # tried once, and no mark against the endpoint
            return self._outcome(claimed, started, attempt.outcome, attempt.milliseconds, "ours", None)
        if claimed.row.subscription is not None and attempt.status in UNWANTED_STATUSES:
            return self._outcome(claimed, started, attempt.outcome, attempt.milliseconds, "failed", None)
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
