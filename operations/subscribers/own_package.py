"""A package of the caller's own line: found among the packages of the line, so that a foreign one is not found."""

from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.package import Package, PackageList
from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, NamesLine, own_line
from operations.services.network.package_window import MOST
from registry.errors import NotFound

# Choice: one line of text without control characters.
Comment = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]


class PackageRef(LineRef):
    """Which package of which line."""

    package_id: Annotated[int, Field(ge=1, le=MOST, description="See list_subscriber_packages.")]


class NamesPackage(NamesLine, Protocol):
    """An input with a line and a package."""

    @property
    def package_id(self) -> int: ...


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


def done(held: OwnPackage) -> PackageDone:
    """What every change of a package answers with."""
    return {"ok": True, "iccid": held.line.iccid, "packageId": held.id}


async def own_package(ctx: Ctx, params: NamesPackage) -> OwnPackage:
    """The access rule of every operation on one package."""
    line = await own_line(ctx, params)
    found = package_in(await packages_of(line), params.package_id)
    if found is None:
        raise no_such_package()
    return OwnPackage(line, params.package_id, found)


async def packages_of(line: Line) -> PackageList:
    """All packages and series of a line."""
    return await line.upstream.ocs.packages.list_packages(line.subscriber_id, version="v2")


def package_in(held: PackageList, package_id: int) -> Package | None:
    """The package with this id, if the line has it."""
    return next((package for package in held.get("packages", []) if package.get("subscriberprepaidpackageid") == package_id), None)


def no_such_package() -> NotFound:
    """Unknown packages and those of other lines are answered alike."""
    return NotFound("This line has no package with this id", param="packageId", hint="list_subscriber_packages names its packages")
