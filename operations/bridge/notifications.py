"""Notifications of the charging system and its bridge: what they say, who may send them, and what they change."""

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, NamedTuple
from urllib.parse import parse_qs

import anyio
import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError, WithJsonSchema
from typing_extensions import TypedDict

from clients.webhooks.signature import BadWebhookSignature, verify_webhook_signature
from operations.deps import Ctx, Deps
from operations.fleet.line_news import tell_pushed_country
from operations.times import EventTime
from operations.vocabulary import Iccid, Mcc, Mnc, network_country, zero_padded
from registry.authentication import BRIDGE_CALLER, matches_secret
from registry.call import Call
from registry.caller import Caller
from registry.errors import BadRequest, OcsError, Unauthorized
from registry.operation import Auth, CamelInput, Example, Scope, SpendKind, operation
from storage.country_entries import enter_country, find_neighbours
from storage.engine.sql import Connection
from storage.fleet_line_changes import mark_numbered_line
from storage.fleet_lines import mark_lines
from storage.inbound_pushes import InboundPush, take_push
from storage.line_owners import is_drawn_unseen
from storage.sightings import PackageUse, Sighting, observe_line, observe_package

_LONGEST_NOTIFIED_WORD = 64
_WIRE_DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)
_MOST_PACKAGE_ID = 2**63 - 1
_MOST_PACKAGE_UNITS = 2**53 - 1  # what a JSON number holds exactly


def _network_code_schema(pattern: str, text: str) -> WithJsonSchema:
    """The wire writes codes as numbers, which lose their leading zeros; text is taken too."""
    kinds = [{"type": "integer", "minimum": 0, "maximum": 999}, {"type": "string", "pattern": pattern}]
    return WithJsonSchema({"anyOf": kinds, "description": text})


class LocationUpdate(BaseModel):
    """Where a line is. Members that are not named here are skipped: imsi, subsId, lac, cellId, rat."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True, json_schema_extra={"additionalProperties": True})

    iccid: Iccid
    mcc: Annotated[Mcc, zero_padded(3), _network_code_schema("^[0-9]{3}$", "Mobile country code (ITU-T E.212).")]
    mnc: Annotated[Mnc, zero_padded(2), _network_code_schema("^[0-9]{2,3}$", "Mobile network code (ITU-T E.212).")] | None = None
    event_time_utc: Annotated[EventTime | None, Field(alias="eventTimeUtc")] = None


def _wire_number(value: object) -> object:
    return int(value) if isinstance(value, str) and _WIRE_DIGITS.fullmatch(value) else value


class PackageUsage(BaseModel):
    """A package of which so much was used, in units of its kind: bytes of data. `unitsAfter` is what was used when it was sent."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True)

    package_id: Annotated[int, BeforeValidator(_wire_number), Field(alias="subscriberPackageId", ge=1, le=_MOST_PACKAGE_ID)]
    used: Annotated[int, BeforeValidator(_wire_number), Field(alias="unitsAfter", ge=0, le=_MOST_PACKAGE_UNITS)]
    total: Annotated[int, BeforeValidator(_wire_number), Field(alias="totalUnits", ge=0, le=_MOST_PACKAGE_UNITS)] = 0
    kind: Annotated[str, Field(alias="usageType")]
    line: Annotated[int, BeforeValidator(_wire_number), Field(alias="subscriberId", ge=0, le=_MOST_PACKAGE_ID)] = 0


class Notification(CamelInput):
    """One notification. Its members say which kind it is. What is not known here is skipped."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})

    subscriber_prepaid_package: Annotated[JsonValue, Field(description="Package usage: a threshold was crossed.")] = None
    location_update: Annotated[LocationUpdate | None, Field(description="Location: where a line is.")] = None
    iccid: Annotated[JsonValue, Field(description="eSIM status: the profile.")] = None
    eid: Annotated[JsonValue, Field(description="eSIM status: the chip it is on.")] = None
    subs_id: Annotated[JsonValue, Field(description="eSIM status: the upstream's number of the line.")] = None
    status: Annotated[JsonValue, Field(description="eSIM status: the profile's state, such as Enable.")] = None


class NotificationContent(NamedTuple):
    """What a notification says: about which line (`subject`), a sighting of it, or the use of a package.

    `line`: the charging system's number of the line whose package it is; 0: it was not told.
    """

    subject: str | None
    sighting: Sighting | None
    use: PackageUse | None = None
    line: int = 0


_NO_CONTENT = NotificationContent(None, None)


def _notification_content(params: Notification, now: float) -> NotificationContent:
    """Which kind it is, by its members (the charging system sends no type).

    A usage push holds a count, so it is its own subject: the same one again is a repetition whatever came between.
    """
    if params.subscriber_prepaid_package is not None:
        return _used_package(params.subscriber_prepaid_package)
    if params.location_update is not None:
        return NotificationContent(None, _location_sighting(params.location_update, now))
    iccid, status = params.iccid, params.status
    if params.eid is None or params.subs_id is None or not isinstance(iccid, str) or not isinstance(status, str):
        return _NO_CONTENT
    if len(iccid) > _LONGEST_NOTIFIED_WORD or len(status) > _LONGEST_NOTIFIED_WORD:
        return _NO_CONTENT
    return NotificationContent(
        iccid, Sighting("esim.status", iccid, None, None, orjson.dumps({"status": status}).decode(), now, None, None)
    )


def _used_package(value: JsonValue) -> NotificationContent:
    """What was used of a package, if it is data. Choice: a push that makes no sense is taken and skipped, since its sender cannot mend it.

    Choice: more than the whole package cannot be used of it, so more is the whole.
    """
    try:
        content = PackageUsage.model_validate(value)
    except ValidationError:
        return _NO_CONTENT
    if content.kind != "DATA":
        return _NO_CONTENT
    use = PackageUse(content.package_id, min(content.used, content.total) if content.total else content.used)
    return NotificationContent(None, None, use, content.line)


def _location_sighting(update: LocationUpdate, now: float) -> Sighting:
    """A place. Choice: a time that has not come yet counts as now, so that no clock that runs ahead stays the newest for ever."""
    at = now if update.event_time_utc is None else min(update.event_time_utc, now)
    kept = orjson.dumps({"mcc": update.mcc} if update.mnc is None else {"mcc": update.mcc, "mnc": update.mnc}).decode()
    return Sighting("location.update", update.iccid, update.mcc, update.mnc, kept, at, network_country(update.mcc, update.mnc), None)


_SIGNATURE_HEADER, _NOTIFICATION_ID_HEADER, _TOKEN_PARAMETER = "webhook-signature", "webhook-id", "token"
_SENDER_HINT = (
    "Sign with SERVICE_BRIDGE_WEBHOOK_SECRET (Standard Webhooks), or send SERVICE_INTERNAL_API_KEY as Authorization: Bearer,"
    " or put ?token=<SERVICE_BRIDGE_WEBHOOK_SECRET> into the address"
)


async def _prove_sender(deps: Deps, call: Call, now: float) -> Caller:
    """The bridge, or a 401. Only a signed body is read before its sender is known, since the signature is over it.

    Choice: a signature that is there decides alone; a good key beside a bad signature is still refused.
    """
    if _SIGNATURE_HEADER in call.headers:
        await _check_sender_signature(call, deps.secrets.bridge, now)
    else:
        _check_sender_secret(call, deps)
    return BRIDGE_CALLER


async def _check_sender_signature(call: Call, secret: str, now: float) -> None:
    if not secret.strip():
        raise _sender_refused("Signed notifications are not accepted here: no secret is set")
    try:
        verify_webhook_signature([secret], call.headers, await call.body(), now)
    except BadWebhookSignature as bad:
        raise _sender_refused(bad.reason) from None
    except ValueError:  # whoever runs the service chose a secret that is no base64; it is not repeated
        raise _sender_refused(
            "Signatures cannot be verified here: SERVICE_BRIDGE_WEBHOOK_SECRET must be base64, with or without whsec_"
        ) from None


def _check_sender_secret(call: Call, deps: Deps) -> None:
    """The internal key as bearer, or the bridge's secret in the address, where the internal key never counts."""
    bearer = matches_secret(call.credential, deps.secrets.internal)
    address = matches_secret(_token_of_query(call.query), deps.secrets.bridge)
    if not (bearer or address):
        raise _sender_refused("The notification carries no credential that is accepted here", presented=call.credential is not None)


def _token_of_query(query: str) -> str | None:
    """The one token of the address; two are none, since another reader might see the other."""
    try:
        found = parse_qs(query, max_num_fields=100).get(_TOKEN_PARAMETER, [])
    except ValueError:
        return None
    return found[0] if len(found) == 1 else None


def _sender_refused(message: str, *, presented: bool = True) -> Unauthorized:
    return Unauthorized(message, presented=presented, hint=_SENDER_HINT)


LINE_OWNER_PATIENCE_SECONDS = 3.0
_BRIDGE_OWNER = "bridge"


async def _account_at_sighting(ctx: Ctx, seen: Sighting) -> int | None:
    """The account of the line at a sighting, None when nobody can say.

    The charging system is asked about a new country, and about the first one since an eSIM was drawn from another account than before.

    Choice: it knows the present owner alone. So a sighting older than one that we have is of the account that both its neighbours were
    of, and of nobody where the line changed hands between them; a repeat is of the account that was seen there before.
    """
    if seen.country is None:
        return None
    before, after = await ctx.deps.store.read(find_neighbours, iccid=seen.iccid, country=seen.country, occurred_at=seen.occurred_at)
    if after is not None:
        return after.account_id if before is None or before.account_id == after.account_id else None
    if before is not None and before.country == seen.country:
        account = before.account_id
        if not await ctx.deps.store.read(is_drawn_unseen, iccid=seen.iccid, account=account, at=seen.occurred_at):
            return account
    return await _present_line_account(ctx, seen.iccid)


async def _present_line_account(ctx: Ctx, iccid: str) -> int | None:
    """Who has the line now, as the service's own token sees it.

    Choice: the push is taken whatever comes of this. A line of a reseller's own token is unknown here, and a trouble upstream must not
    make the bridge send all its pushes again; what is of nobody is shown to no account that shares the service's token.
    """
    token = ctx.deps.ocs_token
    if not token.strip():
        return None
    with anyio.move_on_after(LINE_OWNER_PATIENCE_SECONDS):
        try:
            row = await ctx.deps.ocs.for_token(token, _BRIDGE_OWNER).subscriber.get_single_subscriber(iccid, by="iccid")
        except OcsError:  # OcsNotFound is one
            return None
        return row.get("accountId")
    return None


class BridgeResult(TypedDict):
    """0: taken."""

    code: int
    msg: str


class BridgeReply(TypedDict):
    """The answer that the charging system expects."""

    result: BridgeResult


_TAKEN_REPLY: BridgeReply = {"result": {"code": 0, "msg": "OK"}}
_LINE_EXAMPLE = {"iccid": "8988303700000100286", "imsi": "001010123456789"}
_USED_UNITS_EXAMPLE = {"unitsBefore": 790_000_000, "unitsAfter": 810_000_000, "thresholdPercentage": "80", "thresholdUnits": "800000000"}
_PACKAGE_EXAMPLE = {
    **_USED_UNITS_EXAMPLE,
    "subscriberPackageId": 5512,
    "totalUnits": 1_000_000_000,
    "subscriberId": 77120931,
    "usageType": "DATA",
}
_PLACE_EXAMPLE = {"mcc": 208, "mnc": 1, "lac": 4711, "cellId": 21, "rat": "LTE", "eventTimeUtc": "2026-11-20T09:00:00"}


@operation(
    "POST",
    "/v1/webhooks/bridge4ip",
    spends=SpendKind.NOTHING,
    scope=Scope.NONE,
    auth=Auth.BRIDGE,
    proof=_prove_sender,
    limited=False,
    title="Receive bridge notification",
    examples=[
        Example("A line is in France", {"locationUpdate": {**_LINE_EXAMPLE, "subsId": 77120931, **_PLACE_EXAMPLE}}, _TAKEN_REPLY),
        Example(
            "A profile was enabled",
            {**_LINE_EXAMPLE, "eid": "89049032000000000000000000000123", "subsId": 77120931, "status": "Enable"},
            _TAKEN_REPLY,
        ),
        Example(
            "Four fifths of a package were used",
            {"subscriberPrepaidPackage": {**_PACKAGE_EXAMPLE, "subscriberIMSI": "001010123456789"}},
            _TAKEN_REPLY,
        ),
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
    content = _notification_content(params, ctx.now)
    push = _push_identity(ctx.call.headers, ctx.call.raw, content.subject)
    account = None if content.sighting is None else await _account_at_sighting(ctx, content.sighting)

    def take(connection: Connection) -> None:
        """Stores that it came and does what it says in one transaction, so that a repeated notification has one effect."""
        seen, now, ids = content.sighting, ctx.now, ctx.deps.ids
        if not take_push(connection, push=push, now=now):
            return
        if content.use is not None:
            observe_package(connection, use=content.use, now=now, ids=ids)
            mark_numbered_line(connection, subscriber_id=content.line, now=now)
        if seen is None:
            return
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
            tell_pushed_country(connection, iccid=seen.iccid, country=seen.country, occurred_at=seen.occurred_at, now=now, ids=ids)
        observe_line(connection, seen=seen, now=now, ids=ids, account=account)
        mark_lines(connection, iccids=[seen.iccid], now=now)

    await ctx.settle(_TAKEN_REPLY, take)
    if content.sighting is not None or content.use is not None:
        ctx.deps.wake_worker()
    return _TAKEN_REPLY


def _push_identity(headers: Mapping[str, str], body: bytes, subject: str | None) -> InboundPush:
    """How a repeated notification is recognised: by its id where a signature covers the id, else by its body."""
    signed = _push_digest(headers[_NOTIFICATION_ID_HEADER].encode()) if _SIGNATURE_HEADER in headers else None
    whole = _push_digest(body)
    return InboundPush(signed, whole if subject is None else _push_digest(subject.encode()), whole)


def _push_digest(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()
