"""Removing packages from a line for good."""

from typing import Literal, NamedTuple

from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from operations.subscribers.own_package import PackageRef, no_such_package, package_in, packages_of
from registry.errors import EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation


class PackagesRemoved(TypedDict):
    """The line has no package and no series any more."""

    removed: Literal["all"]


class PackageDeleted(TypedDict):
    """The package is gone."""

    deleted: Literal[True]
    packageId: int


class Doomed(NamedTuple):
    """A package that is to go; `there` is false when the line does not have it."""

    line: Line
    there: bool


async def doomed_package(ctx: Ctx, params: PackageRef) -> Doomed:
    """The package, if the line has it.

    Choice: with an idempotency key a package that is not there is refused after the look at stored answers, since a replay of
    its own deletion must be answered; nothing is sent upstream for it either way.
    """
    line = await own_line(ctx, params)
    there = package_in(await packages_of(line), params.package_id) is not None
    if not there and ctx.call.idempotency_key is None:
        raise no_such_package()
    return Doomed(line, there)


@operation(
    "DELETE",
    "/v1/subscribers/{iccid}/packages",
    scope=Scope.ADMIN,
    confirm=True,
    upstream=True,
    operator=True,
    access=own_line,
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
    scope=Scope.ADMIN,
    confirm=True,
    upstream=True,
    operator=True,
    access=doomed_package,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Take a package away",
            {"iccid": "8988303700000100286", "packageId": 3300871},
            {"data": {"deleted": True, "packageId": 3300871}},
        )
    ],
)
async def delete_subscriber_package(ctx: Ctx, params: PackageRef, doomed: Doomed) -> Data[PackageDeleted]:
    """Delete one package of a line.

    Cannot be undone; what is unused is lost. modify_package_status only pauses it.

    Its series goes on: stop_resume_recurring_package stops further packages.
    """
    if not doomed.there:
        raise no_such_package()
    await doomed.line.upstream.ocs.packages.delete(params.package_id)
    return {"data": {"deleted": True, "packageId": params.package_id}}
