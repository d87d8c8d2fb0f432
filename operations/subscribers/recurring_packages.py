"""Series of packages on a line: starting one, stopping it, resuming it."""

from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AliasChoices, Field, model_validator
from typing_extensions import TypedDict

from clients.ocs.wire.members import keeps_unknown
from clients.ocs.wire.package import Affected, Package, PackageList
from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.package_window import MOST
from operations.services.network.passing import Data
from operations.services.network.utc_moment import StartMoment
from operations.subscribers.own_package import no_such_package, package_in, packages_of
from operations.subscribers.packages import fitting, line_and_template
from registry.errors import BadRequest, EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, Once, operation
from storage.issuing.placed import keep_placed

REASONS = (
    "The template is probably no recurring one: names usually say, list_package_templates cannot tell for templates made elsewhere, and "
    "assign_package takes those of one time. Or it is of another sponsor than the line's SIM"
)


class SeriesToStart(LineRef):
    """Which series goes on which line, and when it begins."""

    package_template_id: Annotated[
        int,
        Field(
            ge=1,
            le=MOST,
            validation_alias=AliasChoices("packageTemplateId", "templateId", "template_id"),
            description="Id of a recurring template.",
        ),
    ]
    start_time: Annotated[StartMoment | None, Field(description="UTC; absent: now.")] = None
    activate_at_first_use: Annotated[bool, Field(description="Start at first use instead.")] = False

    @model_validator(mode="after")
    def _one_start(self) -> Self:
        if self.start_time is not None and self.activate_at_first_use:
            raise BadRequest(
                "startTime: given together with activateAtFirstUse, and they exclude each other",
                param="startTime",
                hint="Send startTime, or activateAtFirstUse: true, or neither to start now",
            )
        return self


class SeriesSwitch(LineRef):
    """Which series, and whether it goes on."""

    package_id: Annotated[int, Field(ge=1, le=MOST, description="A package of the series, or the series' own id.")]
    action: Annotated[Literal["stop", "resume"], Field(description="What to do with further packages.")]


@keeps_unknown
class FirstPackage(Package, total=False):
    """The first package of a series."""

    packageId: int


class SeriesStarted(TypedDict):
    """The first package, unless it is made later, and what installs the eSIM."""

    packageInfo: Annotated[FirstPackage | None, Field(description="Null when the series starts more than 12 hours ahead")]
    simInfo: Affected


class SeriesSwitched(TypedDict):
    """Whether the series goes on."""

    recurringId: int
    active: bool


class OwnSeries(NamedTuple):
    """A series on a line of the caller's."""

    line: Line
    id: int


@operation(
    "POST",
    "/v1/subscribers/{iccid}/packages/recurring",
    scope=Scope.WRITE,
    once=Once(shown=True),
    upstream=True,
    moves=True,
    operator=True,
    status=201,
    access=line_and_template,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Every month from the first use on",
            {"iccid": "8988303700000100286", "packageTemplateId": 55032, "activateAtFirstUse": True},
            {
                "data": {
                    "packageInfo": {
                        "subscriberprepaidpackageid": 3300872,
                        "subscriberid": 910045,
                        "templateId": 55032,
                        "pckdatabyte": 5368709120,
                        "useddatabyte": 0,
                        "perioddays": 30,
                        "active": True,
                        "recurringPackage": 6021,
                        "packageId": 3300872,
                    },
                    "simInfo": {
                        "iccid": "8988303700000100286",
                        "smdpServer": "smdp.sandbox.invalid",
                        "activationCode": "F7K2-QX9M-41TB",
                        "urlQrCode": "LPA:1$smdp.sandbox.invalid$F7K2-QX9M-41TB",
                        "subscriberId": 910045,
                        "esimId": 760112,
                        "subsPackageId": 3300872,
                        "userSimName": "Fjord_910045",
                    },
                }
            },
        )
    ],
)
async def assign_recurring_package(ctx: Ctx, params: SeriesToStart, line: Line) -> Data[SeriesStarted]:
    """Start a series of packages on a line: now, at a time, or at first use.

    Repeated without idempotency_key, it starts a second series.

    The template says how often and how many times; the charging system refuses one that is not recurring. Packages are made
    12 hours ahead: of a series that starts later, `packageInfo` is null and list_subscriber_packages shows it as `upcoming`.
    Send an Idempotency-Key: with it a repeated call answers as the first did. The answer holds what installs the eSIM: keep it
    as you would a password. stop_resume_recurring_package ends the series.
    """
    packages = line.upstream.ocs.packages
    assigning = packages.affect_recurring(
        params.package_template_id, line.subscriber_id, start=params.start_time, at_first_use=params.activate_at_first_use
    )
    made = await fitting(assigning, REASONS)
    info = made.get("packageInfo")
    package_id = (info or {}).get("subscriberprepaidpackageid") or made.get("simInfo", {}).get("subsPackageId")
    if package_id is not None:
        ctx.at_close(keep_placed, package_id=package_id, now=ctx.now)
    first: FirstPackage | None = None if info is None else {**info, "packageId": info.get("subscriberprepaidpackageid", 0)}
    return {"data": {"packageInfo": first, "simInfo": made.get("simInfo", {})}}


async def own_series(ctx: Ctx, params: SeriesSwitch) -> OwnSeries:
    """The series of a package of the line, or the one with this id."""
    line = await own_line(ctx, params)
    return OwnSeries(line, series_in(await packages_of(line), params.package_id))


def series_in(held: PackageList, id: int) -> int:
    """Choice: a package with this id comes before a series with it."""
    package = package_in(held, id)
    if package is None:
        if any(series.get("id") == id for series in held.get("recurring", [])):
            return id
        raise no_such_package()
    series = package.get("recurringPackage")
    if series is None:
        raise BadRequest(
            f"packageId: package {id} is a one-time package, so there is no series to stop or resume",
            param="packageId",
            hint="modify_package_status pauses it; list_subscriber_packages shows which packages have `recurring`",
        )
    return series


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/packages/{packageId}/recurring-status",
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    access=own_series,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "No further packages",
            {"iccid": "8988303700000100286", "packageId": 3300872, "action": "stop"},
            {"data": {"recurringId": 6021, "active": False}},
        )
    ],
)
async def stop_resume_recurring_package(ctx: Ctx, params: SeriesSwitch, held: OwnSeries) -> Data[SeriesSwitched]:
    """Stop or resume a series of packages.

    Packages already made stay.

    delete_subscriber_package removes a package that was made, modify_package_status pauses it. packageId is a package of the
    series, or, for a series that has made no package yet, the id of the series itself.
    """
    active = params.action == "resume"
    await held.line.upstream.ocs.packages.stop_resume_recurring(active=active, recurring_id=held.id)
    return {"data": {"recurringId": held.id, "active": active}}
