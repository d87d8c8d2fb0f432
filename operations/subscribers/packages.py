"""The packages of a line: what it has, and changing limits, status and dates of one."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, NamedTuple, NotRequired, Self, TypeAlias, cast

from pydantic import AliasChoices, BeforeValidator, Field, model_validator
from typing_extensions import TypedDict

from clients.ocs.packages import Package, PackageLimits, PackageList, RecurringSeries
from clients.ocs.wire_schema import keeps_unknown
from operations.deps import Ctx
from operations.times import EndTime, StartTime, utc_text
from operations.upstream.lines import Line, LineRef, PackageState, own_line, package_days, package_end, package_start, package_state
from operations.upstream.paging import Data, FieldsQuery, paged_data
from operations.vocabulary import LARGEST_ID, UpstreamId
from registry.errors import BadRequest, Conflict, EndOfLife, NotFound, OcsError
from registry.free_text import FreeText
from registry.operation import Example, Scope, SpendKind, operation

# Choice: one line of text without control characters.
PackageComment = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]


class PackageRef(LineRef):
    """Which package of which line."""

    package_id: Annotated[UpstreamId, Field(description="See list_subscriber_packages.")]


class OwnPackage(NamedTuple):
    """A package of a line of the caller's."""

    line: Line
    id: int
    package: Package


class PackageDone(TypedDict):
    """A change of one package that was made."""

    ok: Literal[True]
    iccid: str
    packageId: int


def package_done(own: OwnPackage) -> PackageDone:
    return {"ok": True, "iccid": own.line.iccid, "packageId": own.id}


async def own_package(ctx: Ctx, params: PackageRef) -> OwnPackage:
    """The access rule of operations on one package. Raises NotFound unless the line has it."""
    line = await own_line(ctx, params)
    found = find_package(await read_packages(line), params.package_id)
    if found is None:
        raise package_not_found()
    return OwnPackage(line, params.package_id, found)


async def read_packages(line: Line) -> PackageList:
    """All packages and series of a line. Waits for the network."""
    return await line.upstream.ocs.packages.list_packages(line.subscriber_id, version="v2")


def find_package(packages: PackageList, package_id: int) -> Package | None:
    """The package with this id; None if the line has none."""
    return next((package for package in packages.get("packages", []) if package.get("subscriberprepaidpackageid") == package_id), None)


def package_not_found() -> NotFound:
    """The same answer for unknown packages and those of other lines."""
    return NotFound("This line has no package with this id", param="packageId", hint="list_subscriber_packages names its packages")


PACKAGE_DAYS_LIMIT = 3650  # Choice: ten years; more is a mistake


# Choice: series without a package come last; no package id is as large.
SERIES_ORDER_OFFSET = 2**53


@keeps_unknown
class HeldPackage(Package, total=False):
    """A package of a line, or a series that has made none yet."""

    packageId: Annotated[int | None, Field(description="Null: the series has made no package yet")]
    state: Annotated[
        PackageState,
        Field(description="assigned waits for its first use, scheduled for its date; blocked is paused; upcoming has no package"),
    ]
    recurring: Annotated[RecurringSeries | None, Field(description="The series that made it or will")]
    callUseSingleCounter: Annotated[bool, Field(description="Received calls count as calls made")]


class PackageListQuery(FieldsQuery, LineRef):
    """Which line, and which part of the list."""


def line_packages(found: PackageList, now: float) -> list[HeldPackage]:
    """Every package with its state and series, then the series without a package."""
    packages, series = found.get("packages", []), found.get("recurring", [])
    single = found.get("callUseSingleCounter", False)
    by_id = {row.get("id"): row for row in series}
    rows: list[HeldPackage] = [
        {
            **package,
            "packageId": package.get("subscriberprepaidpackageid"),
            "state": package_state(package, now, single_counter=single),
            "recurring": by_id.get(package.get("recurringPackage", 0)),
            "callUseSingleCounter": single,
        }
        for package in packages
    ]
    made = {package.get("recurringPackage") for package in packages}
    return rows + [
        {"packageId": None, "state": "upcoming", "recurring": row, "callUseSingleCounter": single}
        for row in series
        if row.get("id") not in made and not is_series_finished(row)
    ]


def is_series_finished(series: RecurringSeries) -> bool:
    """Choice: a series that made all its packages, of which none is left, is neither upcoming nor shown."""
    most = series.get("nbOccurrence")
    return most is not None and series.get("nbCreated", 0) >= most


def package_order(row: HeldPackage) -> int:
    """Sort key: packages by id, then series by id."""
    id = row.get("packageId")
    return id if id is not None else SERIES_ORDER_OFFSET + ((row.get("recurring") or {}).get("id") or 0)


@operation(
    "GET",
    "/v1/subscribers/{iccid}/packages",
    upstream=True,
    operator=True,
    card="line",
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "What has this line left?",
            {"iccid": "8988303700000100286", "fields": ["packageId", "state", "pckdatabyte", "useddatabyte", "tsexpirationutc"]},
            {
                "data": [
                    {
                        "packageId": 3300871,
                        "state": "running",
                        "pckdatabyte": 1073741824,
                        "useddatabyte": 402653184,
                        "tsexpirationutc": "2027-02-09T08:30:00",
                    }
                ]
            },
        )
    ],
    tool_defaults={
        "limit": 20,
        "fields": ["packageId", "state", "packageTemplate", "pckdatabyte", "useddatabyte", "tsexpirationutc", "recurring"],
    },
)
async def list_subscriber_packages(ctx: Ctx, params: PackageListQuery, line: Line) -> Data[list[HeldPackage]]:
    """List a line's packages with state, limits, use and dates; expired ones too.

    Bytes, seconds, UTC. packageId null: a series whose first package is not made yet.

    States: `assigned` (waits for its first use), `scheduled` (has a date ahead), `running`, `exhausted` (nothing is left of
    anything it holds), `expired`, `blocked` (paused), `upcoming` (a series that makes its package 12 hours before its start).
    """
    return paged_data(ctx, line_packages(await read_packages(line), ctx.now), params, package_order)


PackageUnits: TypeAlias = Annotated[int, Field(ge=0, le=LARGEST_ID)]
LIMITS_HINT = "Send at least one of dataLimit, mocLimit, mtcLimit, moSmsLimit, mtSmsLimit"


def unwrap_limits(values: object) -> object:
    """`values` with the members of `limits` moved up. The schema does not show `limits`, since it adds nothing."""
    if not isinstance(values, dict) or "limits" not in values:
        return cast(object, values)
    given = dict(cast(dict[str, object], values))
    inner = given.pop("limits")
    if not isinstance(inner, dict):
        raise BadRequest("limits: it must be an object", param="limits", hint=LIMITS_HINT)
    limits = cast(dict[str, object], inner)
    twice = sorted(limits.keys() & given.keys())
    if twice:
        raise BadRequest(f"limits.{twice[0][:40]}: given twice, it stands beside limits too", param="limits", hint="Send it once")
    return given | limits


class PackageLimitsChange(PackageRef):
    """What a package holds from now on; what is absent stays."""

    data_limit: Annotated[
        PackageUnits | None,
        Field(validation_alias=AliasChoices("dataLimit", "dataByte", "data_byte"), description="Bytes, used ones included."),
    ] = None
    moc_limit: Annotated[
        PackageUnits | None, Field(validation_alias=AliasChoices("mocLimit", "mocSecond", "moc_second"), description="Calls made, seconds.")
    ] = None
    mtc_limit: Annotated[
        PackageUnits | None,
        Field(validation_alias=AliasChoices("mtcLimit", "mtcSecond", "mtc_second"), description="Calls received, seconds."),
    ] = None
    mo_sms_limit: Annotated[
        PackageUnits | None, Field(validation_alias=AliasChoices("moSmsLimit", "moSms", "mo_sms"), description="SMS sent.")
    ] = None
    mt_sms_limit: Annotated[
        PackageUnits | None, Field(validation_alias=AliasChoices("mtSmsLimit", "mtSms", "mt_sms"), description="SMS received.")
    ] = None
    comment: Annotated[PackageComment | None, Field(description="Kept in its history.")] = None

    @model_validator(mode="before")
    @classmethod
    def _unwrapped(cls, values: object) -> object:
        return unwrap_limits(values)

    @model_validator(mode="after")
    def _something(self) -> Self:
        if all(limit is None for limit in self.limits.values()):
            raise BadRequest("dataLimit: missing, and so is every other limit", param="dataLimit", hint=LIMITS_HINT)
        return self

    @property
    def limits(self) -> PackageLimits:
        """The limits by the wire's names; None leaves a limit as it is."""
        return {
            "dataByte": self.data_limit,
            "mocSecond": self.moc_limit,
            "mtcSecond": self.mtc_limit,
            "moSms": self.mo_sms_limit,
            "mtSms": self.mt_sms_limit,
        }


class LimitsChanged(PackageDone):
    """The limits that were changed."""

    dataLimit: NotRequired[Annotated[int, Field(description="Bytes")]]
    mocLimit: NotRequired[Annotated[int, Field(description="Calls made, seconds")]]
    mtcLimit: NotRequired[Annotated[int, Field(description="Calls received, seconds")]]
    moSmsLimit: NotRequired[Annotated[int, Field(description="SMS sent")]]
    mtSmsLimit: NotRequired[Annotated[int, Field(description="SMS received")]]
    comment: NotRequired[FreeText]


def canonical_package_status(value: object) -> object:
    """`resume` and `pause` are synonyms of ACTIVE and INACTIVE."""
    return {"resume": "ACTIVE", "pause": "INACTIVE"}.get(value, value) if isinstance(value, str) else value


class PackageStatusChange(PackageRef):
    """Whether a package may be used."""

    status: Annotated[
        Literal["ACTIVE", "INACTIVE"],
        BeforeValidator(canonical_package_status),
        Field(validation_alias=AliasChoices("status", "action"), description="INACTIVE pauses, ACTIVE resumes."),
    ]


class PackageSwitched(PackageDone):
    """Whether it may be used now."""

    status: Literal["ACTIVE", "INACTIVE"]


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/packages/{packageId}/limits",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    access=own_package,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Two gibibytes in all",
            {"iccid": "8988303700000100286", "packageId": 3300871, "dataLimit": 2147483648},
            {"data": {"ok": True, "iccid": "8988303700000100286", "packageId": 3300871, "dataLimit": 2147483648}},
        )
    ],
)
async def modify_package_limits(ctx: Ctx, params: PackageLimitsChange, own: OwnPackage) -> Data[LimitsChanged]:
    """Set how much a package holds in all; limits not named stay as they are.

    New totals, not additions.

    list_subscriber_packages shows the present ones (pckdatabyte and others); the template stays as it is.
    The limits may also stand in an object `limits`, under these names or the charging system's (dataByte, mocSecond, mtcSecond,
    moSms, mtSms). null means the same as absent. A limit below what is used already ends that use.
    """
    await own.line.upstream.ocs.packages.modify_limits(own.id, params.limits, comment=params.comment)
    given = params.model_dump(by_alias=True, exclude_none=True, exclude={"iccid", "package_id"})
    return {"data": cast(LimitsChanged, {**package_done(own), **given})}


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/packages/{packageId}/status",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    access=own_package,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Pause a package",
            {"iccid": "8988303700000100286", "packageId": 3300871, "status": "INACTIVE"},
            {"data": {"ok": True, "iccid": "8988303700000100286", "packageId": 3300871, "status": "INACTIVE"}},
        )
    ],
)
async def modify_package_status(ctx: Ctx, params: PackageStatusChange, own: OwnPackage) -> Data[PackageSwitched]:
    """Pause or resume one package.

    Paused, it keeps its data and its end date. modify_subscriber_status pauses the whole line.

    `action` with resume or pause is taken as well.
    """
    await own.line.upstream.ocs.packages.modify_status(own.id, active=params.status == "ACTIVE")
    return {"data": {**package_done(own), "status": params.status}}


# Choice: the wire wants a text with every change of dates.
DEFAULT_PERIOD_COMMENT = "Changed by the operator"


class PackagePeriodChange(PackageRef):
    """New dates of a package that waits for its first use."""

    start: Annotated[StartTime | None, Field(description="UTC; absent: end minus the package's days.")] = None
    end: Annotated[EndTime | None, Field(description="UTC; absent: start plus the package's days.")] = None
    comment: Annotated[PackageComment | None, Field(description="Kept in its history.")] = None

    @model_validator(mode="after")
    def _dated(self) -> Self:
        if self.start is None and self.end is None:
            raise BadRequest("start: missing, and so is end", param="start", hint="Send start, end or both, ISO 8601 in UTC")
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise BadRequest(
                f"end: {utc_text(self.end)} is not after start, {utc_text(self.start)}",
                param="end",
                hint="Send an end that is later than the start",
            )
        return self


class PackageExpiryChange(PackageRef):
    """A new end of a package."""

    expires: Annotated[EndTime | None, Field(description="UTC; a date alone is its last second.")] = None
    validity_days: Annotated[int | None, Field(ge=1, le=PACKAGE_DAYS_LIMIT, description="Days from now, 1-3650.")] = None

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.expires is None) == (self.validity_days is None):
            seen = (
                "missing, and so is validityDays"
                if self.expires is None
                else "given together with validityDays, and they exclude each other"
            )
            raise BadRequest(f"expires: {seen}", param="expires", hint="Send expires (a UTC time) or validityDays (days from now)")
        return self


class PeriodChanged(PackageDone):
    """The dates it has now."""

    start: Annotated[str, Field(description="UTC")]
    end: Annotated[str, Field(description="UTC")]
    comment: NotRequired[FreeText]


class ExpiryChanged(PackageDone):
    """The end it has now, or how long it will run from its first use."""

    expires: NotRequired[Annotated[str, Field(description="UTC")]]
    validityDays: NotRequired[Annotated[int, Field(description="Days from the first use")]]


class PackagePeriod(NamedTuple):
    """Both dates, as the wire wants them."""

    own: OwnPackage
    start: datetime
    end: datetime


class PackageExpiry(NamedTuple):
    """The new end; nothing for a package that waits for its first use and only learns how long it will run."""

    own: OwnPackage
    expires: datetime | None


async def own_package_period(ctx: Ctx, params: PackagePeriodChange) -> PackagePeriod:
    """The package and both dates; a date that was not given follows from the package's days."""
    own = await own_package(ctx, params)
    if params.start is not None and params.end is not None:
        return PackagePeriod(own, params.start, params.end)
    days = package_days(own.package)
    if days is None:
        missing = "end" if params.end is None else "start"
        raise BadRequest(
            f"{missing}: missing, and this package does not say how many days it runs", param=missing, hint="Send start and end"
        )
    if params.end is None:
        start = params.start or datetime.fromtimestamp(ctx.now, UTC)
        return PackagePeriod(own, start, start + timedelta(days=days))
    return PackagePeriod(own, params.end - timedelta(days=days), params.end)


async def own_package_expiry(ctx: Ctx, params: PackageExpiryChange) -> PackageExpiry:
    """The package, and its new end if it already has dates."""
    own = await own_package(ctx, params)
    if package_start(own.package) is None and package_end(own.package) is None:
        if params.expires is not None:
            raise BadRequest(
                "expires: this package waits for its first use, so it has no end to move",
                param="expires",
                hint="Send validityDays: so many days from its first use; modify_subscriber_package_active_period gives it two dates",
            )
        return PackageExpiry(own, None)
    return PackageExpiry(own, end_after_start(own.package, params, ctx.now))


def end_after_start(package: Package, params: PackageExpiryChange, now: float) -> datetime:
    """The requested end. The charging system counts days from the start of a package, callers count them from now."""
    end = params.expires or datetime.fromtimestamp(int(now), UTC) + timedelta(days=params.validity_days or 0)
    start = package_start(package)
    if start is not None and end <= start:
        param = "expires" if params.expires is not None else "validityDays"
        raise BadRequest(
            f"{param}: {utc_text(end)} is not after the start of this package, {utc_text(start)}",
            param=param,
            hint="Send an end after its start",
        )
    return end


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/packages/{packageId}/active-period",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    upstream=True,
    access=own_package_period,
    raises=[NotFound, Conflict, EndOfLife, OcsError],
    examples=[
        Example(
            "The trip is in March",
            {"iccid": "8988303700000100286", "packageId": 3300871, "start": "2027-03-01T00:00:00Z", "end": "2027-03-31T00:00:00Z"},
            {
                "data": {
                    "ok": True,
                    "iccid": "8988303700000100286",
                    "packageId": 3300871,
                    "start": "2027-03-01T00:00:00Z",
                    "end": "2027-03-31T00:00:00Z",
                }
            },
        )
    ],
)
async def modify_subscriber_package_active_period(ctx: Ctx, params: PackagePeriodChange, new: PackagePeriod) -> Data[PeriodChanged]:
    """Give two dates to a package that waits for its first use.

    A package that has dates is refused: modify_package_expiry moves its end.
    """
    own = new.own
    if package_start(own.package) is not None or package_end(own.package) is not None:  # not in access: a replay must not meet it
        raise Conflict("This package has its dates already", param="packageId", hint="modify_package_expiry moves its end")
    comment = params.comment or DEFAULT_PERIOD_COMMENT
    await own.line.upstream.ocs.packages.modify_active_period(own.id, start=new.start, end=new.end, comment=comment)
    changed: PeriodChanged = {**package_done(own), "start": utc_text(new.start), "end": utc_text(new.end)}
    if params.comment is not None:
        changed["comment"] = params.comment
    return {"data": changed}


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/packages/{packageId}/expiry",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    access=own_package_expiry,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Another thirty days from now",
            {"iccid": "8988303700000100286", "packageId": 3300871, "validityDays": 30},
            {"data": {"ok": True, "iccid": "8988303700000100286", "packageId": 3300871, "expires": "2027-02-14T12:00:00Z"}},
        )
    ],
)
async def modify_package_expiry(ctx: Ctx, params: PackageExpiryChange, new: PackageExpiry) -> Data[ExpiryChanged]:
    """Move the end of a package: to a time, or so many days from now.

    A package that waits for its first use takes validityDays only; they count from that use.

    An end in the past ends the package. The answer says which of the two applies now: `expires` or `validityDays`.
    """
    own, packages = new.own, new.own.line.upstream.ocs.packages
    if new.expires is not None:
        await packages.modify_exp_date(own.id, new_expiration=new.expires)
        return {"data": {**package_done(own), "expires": utc_text(new.expires)}}
    days = params.validity_days or 0
    await packages.modify_exp_date(own.id, validity_days=days)
    return {"data": {**package_done(own), "validityDays": days}}
