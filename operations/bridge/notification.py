"""What a notification is, told by its members: package usage, the state of an eSIM profile, a location."""

import re
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError, WithJsonSchema

from operations.connectivity.moment import LATEST
from operations.connectivity.observations import padded
from operations.services.network.mobile_countries import country_of
from operations.vocabulary import Iccid, Mcc, Mnc
from registry.model import CamelInput
from storage.network.observations import PackageUse, Sighting

LONGEST_WORD = 64
DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)
MOST_ID = 2**63 - 1
MOST_UNITS = 2**53 - 1  # what a JSON number holds exactly


def code(pattern: str, text: str) -> WithJsonSchema:
    """The wire writes codes as numbers, which lose their leading zeros; text is taken too."""
    kinds = [{"type": "integer", "minimum": 0, "maximum": 999}, {"type": "string", "pattern": pattern}]
    return WithJsonSchema({"anyOf": kinds, "description": text})


def utc_seconds(value: object) -> object:
    """The wire's times carry no zone and are UTC."""
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("it is not a time such as 2026-11-20T09:00:00") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


EventTime = Annotated[
    float,
    BeforeValidator(utc_seconds),
    Field(ge=0, le=LATEST, allow_inf_nan=False),
    WithJsonSchema({"type": "string", "description": "When it happened, UTC: YYYY-MM-DDTHH:MM:SS."}),
]


class LocationUpdate(BaseModel):
    """Where a line is. Members that are not named here are skipped: imsi, subsId, lac, cellId, rat."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True, json_schema_extra={"additionalProperties": True})

    iccid: Iccid
    mcc: Annotated[Mcc, padded(3), code("^[0-9]{3}$", "Mobile country code (ITU-T E.212).")]
    mnc: Annotated[Mnc, padded(2), code("^[0-9]{2,3}$", "Mobile network code (ITU-T E.212).")] | None = None
    event_time_utc: Annotated[EventTime | None, Field(alias="eventTimeUtc")] = None


def number(value: object) -> object:
    """The wire writes some numbers as text."""
    return int(value) if isinstance(value, str) and DIGITS.fullmatch(value) else value


class PackageUsage(BaseModel):
    """A package of which so much was used, in units of its kind: bytes of data. `unitsAfter` is what was used when it was told."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True)

    package_id: Annotated[int, BeforeValidator(number), Field(alias="subscriberPackageId", ge=1, le=MOST_ID)]
    used: Annotated[int, BeforeValidator(number), Field(alias="unitsAfter", ge=0, le=MOST_UNITS)]
    total: Annotated[int, BeforeValidator(number), Field(alias="totalUnits", ge=0, le=MOST_UNITS)] = 0
    kind: Annotated[str, Field(alias="usageType")]


class Notification(CamelInput):
    """One notification, told by its members. What is not known here is skipped."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})

    subscriber_prepaid_package: Annotated[JsonValue, Field(description="Package usage: a threshold was crossed.")] = None
    location_update: Annotated[LocationUpdate | None, Field(description="Location: where a line is.")] = None
    iccid: Annotated[JsonValue, Field(description="eSIM status: the profile.")] = None
    eid: Annotated[JsonValue, Field(description="eSIM status: the chip it is on.")] = None
    subs_id: Annotated[JsonValue, Field(description="eSIM status: the upstream's number of the line.")] = None
    status: Annotated[JsonValue, Field(description="eSIM status: the profile's state, such as Enable.")] = None


class Told(NamedTuple):
    """What a notification says: of which subject, and what is kept of it."""

    subject: str | None
    seen: Sighting | None
    use: PackageUse | None = None


NOTHING = Told(None, None)


def tell(params: Notification, now: float) -> Told:
    """Which kind it is, by its members (the charging system sends no type).

    A usage push holds a count, so it is its own subject: the same one again is a repetition whatever came between.
    """
    if params.subscriber_prepaid_package is not None:
        return Told(None, None, usage(params.subscriber_prepaid_package))
    if params.location_update is not None:
        return Told(None, location(params.location_update, now))
    iccid, status = params.iccid, params.status
    if params.eid is None or params.subs_id is None or not isinstance(iccid, str) or not isinstance(status, str):
        return NOTHING
    if len(iccid) > LONGEST_WORD or len(status) > LONGEST_WORD:
        return NOTHING
    return Told(iccid, Sighting("esim.status", iccid, None, None, orjson.dumps({"status": status}).decode(), now, None, None))


def usage(value: JsonValue) -> PackageUse | None:
    """What was used of a package, if it is data. Choice: a push that makes no sense is taken and skipped, since its sender cannot mend it.

    Choice: more than the whole package cannot be used of it, so more is the whole.
    """
    try:
        told = PackageUsage.model_validate(value)
    except ValidationError:
        return None
    if told.kind != "DATA":
        return None
    return PackageUse(told.package_id, min(told.used, told.total) if told.total else told.used)


def location(update: LocationUpdate, now: float) -> Sighting:
    """A place. Choice: a time that has not come yet counts as now, so that no clock that runs ahead stays the newest for ever."""
    at = now if update.event_time_utc is None else min(update.event_time_utc, now)
    kept = orjson.dumps({"mcc": update.mcc} if update.mnc is None else {"mcc": update.mcc, "mnc": update.mnc}).decode()
    return Sighting("location.update", update.iccid, update.mcc, update.mnc, kept, at, country_of(update.mcc, update.mnc), None)
