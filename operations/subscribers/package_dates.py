"""When a package of a line begins and ends."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple, NotRequired, Self

from pydantic import Field, model_validator

from clients.ocs.wire.package import Package
from operations.deps import Ctx
from operations.services.network.package_state import days_of, ends_at, starts_at
from operations.services.network.package_window import MOST_DAYS
from operations.services.network.passing import Data
from operations.services.network.utc_moment import EndMoment, StartMoment, shown
from operations.subscribers.own_package import Comment, OwnPackage, PackageDone, PackageRef, done, own_package
from registry.errors import BadRequest, Conflict, EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation

# Choice: the wire wants a text with every change of dates.
UNSAID = "Changed by the operator"


class PeriodChange(PackageRef):
    """New dates of a package that waits for its first use."""

    start: Annotated[StartMoment | None, Field(description="UTC; absent: end minus the package's days.")] = None
    end: Annotated[EndMoment | None, Field(description="UTC; absent: start plus the package's days.")] = None
    comment: Annotated[Comment | None, Field(description="Kept in its history.")] = None

    @model_validator(mode="after")
    def _dated(self) -> Self:
        if self.start is None and self.end is None:
            raise BadRequest("start: missing, and so is end", param="start", hint="Send start, end or both, ISO 8601 in UTC")
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise BadRequest(
                f"end: {shown(self.end)} is not after start, {shown(self.start)}",
                param="end",
                hint="Send an end that is later than the start",
            )
        return self


class ExpiryChange(PackageRef):
    """A new end of a package."""

    expires: Annotated[EndMoment | None, Field(description="UTC; a date alone is its last second.")] = None
    validity_days: Annotated[int | None, Field(ge=1, le=MOST_DAYS, description="Days from now, 1-3650.")] = None

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
    comment: NotRequired[str]


class ExpiryChanged(PackageDone):
    """The end it has now, or how long it will run from its first use."""

    expires: NotRequired[Annotated[str, Field(description="UTC")]]
    validityDays: NotRequired[Annotated[int, Field(description="Days from the first use")]]


class NewPeriod(NamedTuple):
    """Both dates, as the wire wants them."""

    held: OwnPackage
    start: datetime
    end: datetime


class NewExpiry(NamedTuple):
    """The new end; nothing for a package that waits for its first use and only learns how long it will run."""

    held: OwnPackage
    expires: datetime | None


async def own_period(ctx: Ctx, params: PeriodChange) -> NewPeriod:
    """The package, and the date that was not given."""
    held = await own_package(ctx, params)
    if params.start is not None and params.end is not None:
        return NewPeriod(held, params.start, params.end)
    days = days_of(held.package)
    if days is None:
        missing = "end" if params.end is None else "start"
        raise BadRequest(
            f"{missing}: missing, and this package does not say how many days it runs", param=missing, hint="Send start and end"
        )
    if params.end is None:
        start = params.start or datetime.fromtimestamp(ctx.now, UTC)
        return NewPeriod(held, start, start + timedelta(days=days))
    return NewPeriod(held, params.end - timedelta(days=days), params.end)


async def own_expiry(ctx: Ctx, params: ExpiryChange) -> NewExpiry:
    """The package, and its new end when it has one already."""
    held = await own_package(ctx, params)
    if starts_at(held.package) is None and ends_at(held.package) is None:
        if params.expires is not None:
            raise BadRequest(
                "expires: this package waits for its first use, so it has no end to move",
                param="expires",
                hint="Send validityDays: so many days from its first use; modify_subscriber_package_active_period gives it two dates",
            )
        return NewExpiry(held, None)
    return NewExpiry(held, after_start(held.package, params, ctx.now))


def after_start(package: Package, params: ExpiryChange, now: float) -> datetime:
    """The end that was asked for. The charging system counts days from the start, callers count them from now."""
    end = params.expires or datetime.fromtimestamp(int(now), UTC) + timedelta(days=params.validity_days or 0)
    start = starts_at(package)
    if start is not None and end <= start:
        param = "expires" if params.expires is not None else "validityDays"
        raise BadRequest(
            f"{param}: {shown(end)} is not after the start of this package, {shown(start)}", param=param, hint="Send an end after its start"
        )
    return end


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/packages/{packageId}/active-period",
    scope=Scope.WRITE,
    upstream=True,
    access=own_period,
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
async def modify_subscriber_package_active_period(ctx: Ctx, params: PeriodChange, new: NewPeriod) -> Data[PeriodChanged]:
    """Give two dates to a package that waits for its first use.

    A package that has dates is refused: modify_package_expiry moves its end.
    """
    held = new.held
    if starts_at(held.package) is not None or ends_at(held.package) is not None:  # not in access: a replay must not meet it
        raise Conflict("This package has its dates already", param="packageId", hint="modify_package_expiry moves its end")
    comment = params.comment or UNSAID
    await held.line.upstream.ocs.packages.modify_active_period(held.id, start=new.start, end=new.end, comment=comment)
    changed: PeriodChanged = {**done(held), "start": shown(new.start), "end": shown(new.end)}
    if params.comment is not None:
        changed["comment"] = params.comment
    return {"data": changed}


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/packages/{packageId}/expiry",
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    access=own_expiry,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Another thirty days from now",
            {"iccid": "8988303700000100286", "packageId": 3300871, "validityDays": 30},
            {"data": {"ok": True, "iccid": "8988303700000100286", "packageId": 3300871, "expires": "2027-02-14T12:00:00Z"}},
        )
    ],
)
async def modify_package_expiry(ctx: Ctx, params: ExpiryChange, new: NewExpiry) -> Data[ExpiryChanged]:
    """Move the end of a package: to a time, or so many days from now.

    A package that waits for its first use takes validityDays only; they count from that use.

    An end in the past ends the package. The answer says which of the two applies now: `expires` or `validityDays`.
    """
    held, packages = new.held, new.held.line.upstream.ocs.packages
    if new.expires is not None:
        await packages.modify_exp_date(held.id, new_expiration=new.expires)
        return {"data": {**done(held), "expires": shown(new.expires)}}
    days = params.validity_days or 0
    await packages.modify_exp_date(held.id, validity_days=days)
    return {"data": {**done(held), "validityDays": days}}
