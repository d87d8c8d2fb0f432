"""Putting packages on a line, one or a series of them, and removing them for good."""

from collections.abc import Awaitable
from typing import Annotated, Literal, NamedTuple, Self, TypeVar

from pydantic import AliasChoices, Field, model_validator
from typing_extensions import TypedDict

from clients.ocs.packages import Affected, Package, PackageList, Period
from clients.ocs.times import wire_time
from clients.ocs.wire_schema import keeps_unknown
from operations.deps import Ctx
from operations.subscribers.packages import PACKAGE_DAYS_LIMIT, PackageRef, find_package, package_not_found, read_packages
from operations.times import EndTime, StartTime, utc_text
from operations.upstream.lines import Line, LineRef, own_line
from operations.upstream.package_losses import line_package_losses, losses_challenge, package_loss
from operations.upstream.paging import Data
from operations.upstream.resellers import find_template
from operations.upstream.template_costs import due_of_series, due_of_template
from operations.vocabulary import UpstreamId
from registry.challenge import Challenge, name_losses
from registry.errors import BadRequest, EndOfLife, NotFound, OcsError
from registry.operation import NOTHING_DUE, CamelInput, Due, Example, Once, Scope, SpendKind, operation
from storage.placed_packages import insert_placed_package


class ActivePeriod(CamelInput):
    """Two dates."""

    start: Annotated[StartTime, Field(description="UTC.")]
    end: Annotated[EndTime, Field(description="UTC, after start.")]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end <= self.start:
            raise BadRequest(
                f"activePeriod.end: {utc_text(self.end)} is not after start, {utc_text(self.start)}",
                param="activePeriod.end",
                hint="Send an end that is later than the start, both in UTC",
            )
        return self


PackageTemplateId = Annotated[UpstreamId, Field(validation_alias=AliasChoices("packageTemplateId", "templateId", "template_id"))]


class PackageWindow(CamelInput):
    """A template, and one way to say when its package runs."""

    package_template_id: Annotated[PackageTemplateId, Field(description="Id of list_package_templates.")]
    validity_period: Annotated[int | None, Field(ge=1, le=PACKAGE_DAYS_LIMIT, description="Days from now, 1-3650.")] = None
    active_period: Annotated[ActivePeriod | None, Field(description="Exact dates instead.")] = None

    @model_validator(mode="after")
    def _one_window(self) -> Self:
        if self.validity_period is not None and self.active_period is not None:
            raise BadRequest(
                "activePeriod: given together with validityPeriod, and they exclude each other",
                param="activePeriod",
                hint="Send validityPeriod (days from now) or activePeriod (two dates); neither means from the first use",
            )
        return self

    @property
    def period(self) -> Period | None:
        """The dates as the wire writes them; None without dates."""
        dates = self.active_period
        return None if dates is None else {"start": wire_time(dates.start), "end": wire_time(dates.end)}


AssignedT = TypeVar("AssignedT")
WRONG_STATE_CODE = 14
ASSIGNMENT_HINT = (
    "The template is probably of another sponsor than the line's SIM (`sponsors` in list_package_templates, `sim` in get_subscriber), "
    "or a recurring one: assign_recurring_package takes those"
)
TEMPLATE_MISMATCH = "The charging system cannot give this line a package of this template; nothing was assigned"
INSTALLED_EXAMPLE: Affected = {
    "iccid": "8988303700000100286",
    "smdpServer": "smdp.sandbox.invalid",
    "activationCode": "F7K2-QX9M-41TB",
    "urlQrCode": "LPA:1$smdp.sandbox.invalid$F7K2-QX9M-41TB",
    "subscriberId": 910045,
    "esimId": 760112,
    "subsPackageId": 3300871,
    "userSimName": "Fjord_910045",
}


@keeps_unknown
class Assigned(Affected, total=False):
    """The new package, and what installs its eSIM."""

    packageId: int


class PackageToAssign(PackageWindow, LineRef):
    """Which package goes on which line."""


class SeriesToStart(LineRef):
    """Which series goes on which line, and when it begins."""

    package_template_id: Annotated[PackageTemplateId, Field(description="Id of a recurring template.")]
    start_time: Annotated[StartTime | None, Field(description="UTC; absent: now.")] = None
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


async def own_line_and_template(ctx: Ctx, params: PackageToAssign | SeriesToStart) -> Line:
    """The caller's own line. Raises NotFound unless its reseller has the template."""
    line = await own_line(ctx, params)
    await find_template(line.upstream, params.package_template_id, "packageTemplateId")
    return line


async def explain_mismatch(assigning: Awaitable[AssignedT], reasons: str) -> AssignedT:
    """The result of `assigning`. When line and template do not match, the refusal gives `reasons` in place of the general text about
    states."""
    try:
        return await assigning
    except OcsError as refusal:
        if refusal.ocs_code != WRONG_STATE_CODE:
            raise
        raise refusal.retold(TEMPLATE_MISMATCH, hint=reasons) from None


async def due_of_package(_ctx: Ctx, params: PackageToAssign, line: Line) -> Due | SpendKind:
    """The cost of the template. Waits for the network."""
    return await due_of_template(line.upstream, params.package_template_id, "packageTemplateId")


@operation(
    "POST",
    "/v1/subscribers/{iccid}/packages",
    spends=due_of_package,
    draws=True,
    scope=Scope.WRITE,
    once=Once(shown=True),
    upstream=True,
    moves=True,
    operator=True,
    card="install",
    status=201,
    access=own_line_and_template,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Thirty days from now",
            {"iccid": "8988303700000100286", "packageTemplateId": 55010, "validityPeriod": 30},
            {"data": {**INSTALLED_EXAMPLE, "packageId": 3300871}},
        )
    ],
)
async def assign_package(ctx: Ctx, params: PackageToAssign, line: Line) -> Data[Assigned]:
    """Put a one-time package on a line, which becomes active.

    Runs from first use unless dated. Repeated without idempotency_key, it adds a second package.

    Send an Idempotency-Key: with it a repeated call answers as the first did and adds nothing. From the first use, a package
    runs for its template's days. The answer holds what installs the eSIM: keep it as you would a password. Lines come
    from the account's stock at the charging system: esim_status_per_account counts the free ones.
    """
    packages = line.upstream.ocs.packages
    assigning = packages.affect_to_subscriber(
        params.package_template_id, line.subscriber_id, active_period=params.period, validity_days=params.validity_period
    )
    made = await explain_mismatch(assigning, ASSIGNMENT_HINT)
    package_id = made.get("subsPackageId", 0)
    ctx.at_close(insert_placed_package, package_id=package_id, now=ctx.now)
    return {"data": {**made, "packageId": package_id}}


SERIES_HINT = (
    "The template is probably no recurring one: names usually say, list_package_templates cannot tell for templates made elsewhere, and "
    "assign_package takes those of one time. Or it is of another sponsor than the line's SIM"
)


class SeriesStatusChange(LineRef):
    """Which series, and whether it goes on."""

    package_id: Annotated[UpstreamId, Field(description="A package of the series, or the series' own id.")]
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


async def due_of_series_start(_ctx: Ctx, params: SeriesToStart, line: Line) -> Due | SpendKind:
    """Twelve months of packages at the cost of the template. Waits for the network."""
    return await due_of_series(line.upstream, params.package_template_id, "packageTemplateId")


@operation(
    "POST",
    "/v1/subscribers/{iccid}/packages/recurring",
    spends=due_of_series_start,
    draws=True,
    scope=Scope.WRITE,
    once=Once(shown=True),
    upstream=True,
    moves=True,
    operator=True,
    status=201,
    access=own_line_and_template,
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
                    "simInfo": {**INSTALLED_EXAMPLE, "subsPackageId": 3300872},
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
    made = await explain_mismatch(assigning, SERIES_HINT)
    info = made.get("packageInfo")
    package_id = (info or {}).get("subscriberprepaidpackageid") or made.get("simInfo", {}).get("subsPackageId")
    if package_id is not None:
        ctx.at_close(insert_placed_package, package_id=package_id, now=ctx.now)
    first: FirstPackage | None = None if info is None else {**info, "packageId": info.get("subscriberprepaidpackageid", 0)}
    return {"data": {"packageInfo": first, "simInfo": made.get("simInfo", {})}}


async def own_series(ctx: Ctx, params: SeriesStatusChange) -> OwnSeries:
    """The series of a package of the line, or the series with this id. Raises NotFound."""
    line = await own_line(ctx, params)
    return OwnSeries(line, find_series(await read_packages(line), params.package_id))


def find_series(packages: PackageList, id: int) -> int:
    """The id of the series. Choice: a package with this id takes precedence over a series with it."""
    package = find_package(packages, id)
    if package is None:
        if any(series.get("id") == id for series in packages.get("recurring", [])):
            return id
        raise package_not_found()
    series = package.get("recurringPackage")
    if series is None:
        raise BadRequest(
            f"packageId: package {id} is a one-time package, so there is no series to stop or resume",
            param="packageId",
            hint="modify_package_status pauses it; list_subscriber_packages shows which packages have `recurring`",
        )
    return series


async def due_of_resumed_series(_ctx: Ctx, params: SeriesStatusChange, _series: OwnSeries) -> Due | SpendKind:
    """Nothing for a series that is stopped; of one that goes on nobody can say, so a key with a limit of money needs an approval."""
    return NOTHING_DUE if params.action == "stop" else SpendKind.OPEN


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/packages/{packageId}/recurring-status",
    spends=due_of_resumed_series,
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
async def stop_resume_recurring_package(ctx: Ctx, params: SeriesStatusChange, series: OwnSeries) -> Data[SeriesSwitched]:
    """Stop or resume a series of packages.

    Packages already made stay.

    delete_subscriber_package removes a package that was made, modify_package_status pauses it. packageId is a package of the
    series, or, for a series that has made no package yet, the id of the series itself.
    """
    active = params.action == "resume"
    await series.line.upstream.ocs.packages.stop_resume_recurring(active=active, recurring_id=series.id)
    return {"data": {"recurringId": series.id, "active": active}}


class PackagesRemoved(TypedDict):
    """The line has no package and no series any more."""

    removed: Literal["all"]


class PackageDeleted(TypedDict):
    """The package is gone."""

    deleted: Literal[True]
    packageId: int


class PackageToDelete(NamedTuple):
    """A package to delete; None where the line does not have it."""

    line: Line
    package: Package | None
    single_counter: bool = False


async def package_to_delete(ctx: Ctx, params: PackageRef) -> PackageToDelete:
    """The package, if the line has it.

    Choice: with an idempotency key a package that is not there is refused after the look at stored answers, since a replay of
    its own deletion must be answered; nothing is sent upstream for it either way.
    """
    line = await own_line(ctx, params)
    held = await read_packages(line)
    package = find_package(held, params.package_id)
    if package is None and ctx.call.idempotency_key is None:
        raise package_not_found()
    return PackageToDelete(line, package, held.get("callUseSingleCounter", False))


async def name_all_packages(ctx: Ctx, params: LineRef, line: Line) -> Challenge:
    """Every package and series of the line. Waits for the network."""
    losses = await line_package_losses(line, ctx.now)
    return losses_challenge(
        f"This will remove all packages and series of the line {params.iccid}", losses, "It cannot be undone; what is unused is lost."
    )


async def name_package(ctx: Ctx, params: PackageRef, found: PackageToDelete) -> Challenge:
    """The package, as access has read it."""
    if found.package is None:
        return Challenge(f"The line {params.iccid} has no package {params.package_id} any more, so there is nothing to delete.")
    loss = package_loss(found.package, ctx.now, single_counter=found.single_counter)
    series = " Its series goes on." if found.package.get("recurringPackage") else ""
    begin = f"This will delete a package of the line {params.iccid}: {name_losses((loss,))}."
    return Challenge(f"{begin} It cannot be undone; what is unused is lost.{series}", (loss,))


@operation(
    "DELETE",
    "/v1/subscribers/{iccid}/packages",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.ADMIN,
    confirm=True,
    upstream=True,
    operator=True,
    access=own_line,
    challenge=name_all_packages,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[Example("Strip a returned SIM", {"iccid": "8988303700000100286"}, {"data": {"removed": "all"}})],
)
async def clean_all_packages(ctx: Ctx, params: LineRef, line: Line) -> Data[PackagesRemoved]:
    """Remove every package and series from a line.

    Cannot be undone; what is unused is lost. delete_subscriber_package removes one.
    """
    await line.upstream.ocs.subscriber.clean_all_packages(line.subscriber_id)
    return {"data": {"removed": "all"}}


@operation(
    "DELETE",
    "/v1/subscribers/{iccid}/packages/{packageId}",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.ADMIN,
    confirm=True,
    upstream=True,
    operator=True,
    access=package_to_delete,
    challenge=name_package,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Take a package away",
            {"iccid": "8988303700000100286", "packageId": 3300871},
            {"data": {"deleted": True, "packageId": 3300871}},
        )
    ],
)
async def delete_subscriber_package(ctx: Ctx, params: PackageRef, found: PackageToDelete) -> Data[PackageDeleted]:
    """Delete one package of a line.

    Cannot be undone; what is unused is lost. modify_package_status only pauses it.

    Its series goes on: stop_resume_recurring_package stops further packages.
    """
    if found.package is None:
        raise package_not_found()
    await found.line.upstream.ocs.packages.delete(params.package_id)
    return {"data": {"deleted": True, "packageId": params.package_id}}
