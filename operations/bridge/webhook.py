"""Inbound notifications of the charging system and the bridge."""

import hashlib
from collections.abc import Mapping

from typing_extensions import TypedDict

from operations.bridge.line_account import account_at
from operations.bridge.notification import Notification, Told, tell
from operations.bridge.sender import ID, SIGNATURE, prove_sender
from operations.deps import Ctx
from registry.errors import BadRequest
from registry.ids import Ids
from registry.limits import Scope
from registry.operation import Auth, Example, operation
from storage.connection import Connection
from storage.network.country_ring import enter_country
from storage.network.inbound import Push, take_push
from storage.network.observations import Sighting, observe, observe_package


class BridgeResult(TypedDict):
    """0: taken."""

    code: int
    msg: str


class BridgeReply(TypedDict):
    """The answer that the charging system expects."""

    result: BridgeResult


OK: BridgeReply = {"result": {"code": 0, "msg": "OK"}}
LINE = {"iccid": "8988303700000100286", "imsi": "001010123456789"}
USED = {"unitsBefore": 790_000_000, "unitsAfter": 810_000_000, "thresholdPercentage": "80", "thresholdUnits": "800000000"}
PACKAGE = {**USED, "subscriberPackageId": 5512, "totalUnits": 1_000_000_000, "subscriberId": 77120931, "usageType": "DATA"}
PLACE = {"mcc": 208, "mnc": 1, "lac": 4711, "cellId": 21, "rat": "LTE", "eventTimeUtc": "2026-11-20T09:00:00"}


@operation(
    "POST",
    "/v1/webhooks/bridge4ip",
    scope=Scope.NONE,
    auth=Auth.BRIDGE,
    proof=prove_sender,
    limited=False,
    title="Receive bridge notification",
    examples=[
        Example("A line is in France", {"locationUpdate": {**LINE, "subsId": 77120931, **PLACE}}, OK),
        Example("A profile was enabled", {**LINE, "eid": "89049032000000000000000000000123", "subsId": 77120931, "status": "Enable"}, OK),
        Example("Four fifths of a package were used", {"subscriberPrepaidPackage": {**PACKAGE, "subscriberIMSI": "001010123456789"}}, OK),
    ],
)
async def receive_bridge4ip_webhook(ctx: Ctx, params: Notification) -> BridgeReply:
    """Take a notification of package usage, eSIM status or location.

    Called by the charging system and the bridge. Unknown kinds, lines and packages are answered 200.

    A live intent's own package moves its usage up, never down, and crosses its thresholds; other packages on its line do not count.
    What is told of an eSIM that is still being drawn is kept for its intent.

    Three ways to authenticate: a Standard Webhooks signature with the bridge's secret; the internal key as bearer; or, since the
    charging system can be given nothing but an address, the bridge's secret as `?token=`. A signed notification counts once in 7 days
    by its `webhook-id`; an unsigned one that is its line's last, repeated within 60 seconds, counts once.
    """
    if not ctx.call.raw:
        raise BadRequest("The body must be a JSON object", code="invalid_json", hint="Send the notification as application/json")
    told = tell(params, ctx.now)
    push = name(ctx.call.headers, ctx.call.raw, told.subject)
    account = None if told.seen is None else await account_at(ctx, told.seen)
    await ctx.settle(OK, take, push=push, told=told, account=account, now=ctx.now, ids=ctx.deps.ids)
    if told.seen is not None or told.use is not None:
        ctx.deps.wake_worker()
    return OK


def name(headers: Mapping[str, str], body: bytes, subject: str | None) -> Push:
    """What a repetition is known by: the id where there is a signature over it, else the body."""
    signed = digest(headers[ID].encode()) if SIGNATURE in headers else None
    whole = digest(body)
    return Push(signed, whole if subject is None else digest(subject.encode()), whole)


def digest(value: bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(value).hexdigest()


def take(connection: Connection, *, push: Push, told: Told, account: int | None, now: float, ids: Ids) -> None:
    """Remember it and do what it says in one transaction: whatever is answered again has had its effect, and once."""
    if not take_push(connection, push=push, now=now):
        return
    if told.use is not None:
        observe_package(connection, use=told.use, now=now, ids=ids)
    if told.seen is not None:
        enter(connection, seen=told.seen, account=account, now=now, ids=ids)


def enter(connection: Connection, *, seen: Sighting, account: int | None, now: float, ids: Ids) -> None:
    """A place or a state of a line: its history, and its intent's."""
    if seen.country is not None and seen.mcc is not None:
        enter_country(
            connection,
            iccid=seen.iccid,
            country=seen.country,
            mcc=seen.mcc,
            mnc=seen.mnc,
            occurred_at=seen.occurred_at,
            account_id=account,
            now=now,
            ids=ids,
        )
    observe(connection, seen=seen, now=now, ids=ids, account=account)
