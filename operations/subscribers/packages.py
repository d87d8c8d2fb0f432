"""The packages of a line: what it has, and giving it one more."""

from collections.abc import Awaitable
from typing import Annotated, Protocol, TypeVar

from pydantic import Field

from clients.ocs.wire.members import keeps_unknown
from clients.ocs.wire.package import Affected, Package, PackageList, RecurringSeries
from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, NamesLine, own_line
from operations.services.network.package_state import PackageState, state_of
from operations.services.network.package_window import PackageWindow
from operations.services.network.passing import Data, PartOf, listed
from operations.services.network.templates import find_template
from operations.subscribers.own_package import packages_of
from registry.errors import EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, Once, operation
from storage.issuing.placed import keep_placed

T = TypeVar("T")
NOT_IN_THIS_STATE = 14
REASONS = (
    "The template is probably of another sponsor than the line's SIM (`sponsors` in list_package_templates, `sim` in get_subscriber), "
    "or a recurring one: assign_recurring_package takes those"
)
NO_FIT = "The charging system cannot give this line a package of this template; nothing was assigned"
# Choice: series without a package come last; no package id is as large.
BEHIND_ALL = 2**53


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


@keeps_unknown
class Assigned(Affected, total=False):
    """The new package, and what installs its eSIM."""

    packageId: int


class PackagesOfLine(PartOf, LineRef):
    """Which line, and which part of the list."""


class PackageToAssign(PackageWindow, LineRef):
    """Which package goes on which line."""


def held_packages(found: PackageList, now: float) -> list[HeldPackage]:
    """Every package with its state and series, then the series that have none."""
    packages, series = found.get("packages", []), found.get("recurring", [])
    single = found.get("callUseSingleCounter", False)
    by_id = {row.get("id"): row for row in series}
    rows = [held(package, by_id.get(package.get("recurringPackage", 0)), single, now) for package in packages]
    made = {package.get("recurringPackage") for package in packages}
    return rows + [upcoming(row, single) for row in series if row.get("id") not in made and not finished(row)]


def held(package: Package, series: RecurringSeries | None, single: bool, now: float) -> HeldPackage:
    """A package as it is shown."""
    return {
        **package,
        "packageId": package.get("subscriberprepaidpackageid"),
        "state": state_of(package, now, single_counter=single),
        "recurring": series,
        "callUseSingleCounter": single,
    }


def upcoming(series: RecurringSeries, single: bool) -> HeldPackage:
    """A series whose package is yet to be made."""
    return {"packageId": None, "state": "upcoming", "recurring": series, "callUseSingleCounter": single}


def finished(series: RecurringSeries) -> bool:
    """Choice: a series that has made all its packages, and whose packages are gone, is not upcoming and not shown."""
    most = series.get("nbOccurrence")
    return most is not None and series.get("nbCreated", 0) >= most


def place(row: HeldPackage) -> int:
    """Packages by id, then series by id."""
    id = row.get("packageId")
    return id if id is not None else BEHIND_ALL + ((row.get("recurring") or {}).get("id") or 0)


@operation(
    "GET",
    "/v1/subscribers/{iccid}/packages",
    upstream=True,
    operator=True,
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
async def list_subscriber_packages(ctx: Ctx, params: PackagesOfLine, line: Line) -> Data[list[HeldPackage]]:
    """List a line's packages with state, limits, use and dates; expired ones too.

    Bytes, seconds, UTC. packageId null: a series whose first package is not made yet.

    States: `assigned` (waits for its first use), `scheduled` (has a date ahead), `running`, `exhausted` (nothing is left of
    anything it holds), `expired`, `blocked` (paused), `upcoming` (a series that makes its package 12 hours before its start).
    """
    rows = held_packages(await packages_of(line), ctx.now)
    return listed(ctx, sorted(rows, key=place), params, place)


class NamesTemplate(NamesLine, Protocol):
    """An input with a line and a template."""

    @property
    def package_template_id(self) -> int: ...


async def line_and_template(ctx: Ctx, params: NamesTemplate) -> Line:
    """The caller's own line, and a template that its reseller has."""
    line = await own_line(ctx, params)
    await find_template(line.upstream, params.package_template_id, "packageTemplateId")
    return line


async def fitting(assigning: Awaitable[T], reasons: str) -> T:
    """What was made. Where line and template do not go together, the general words about states would mislead."""
    try:
        return await assigning
    except OcsError as refusal:
        if refusal.ocs_code != NOT_IN_THIS_STATE:
            raise
        raise refusal.retold(NO_FIT, hint=reasons) from None


@operation(
    "POST",
    "/v1/subscribers/{iccid}/packages",
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
            "Thirty days from now",
            {"iccid": "8988303700000100286", "packageTemplateId": 55010, "validityPeriod": 30},
            {
                "data": {
                    "iccid": "8988303700000100286",
                    "smdpServer": "smdp.sandbox.invalid",
                    "activationCode": "F7K2-QX9M-41TB",
                    "urlQrCode": "LPA:1$smdp.sandbox.invalid$F7K2-QX9M-41TB",
                    "subscriberId": 910045,
                    "esimId": 760112,
                    "subsPackageId": 3300871,
                    "userSimName": "Fjord_910045",
                    "packageId": 3300871,
                }
            },
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
    made = await fitting(assigning, REASONS)
    package_id = made.get("subsPackageId", 0)
    ctx.at_close(keep_placed, package_id=package_id, now=ctx.now)
    return {"data": {**made, "packageId": package_id}}
