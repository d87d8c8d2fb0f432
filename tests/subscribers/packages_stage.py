"""An operator with a drawer of unused lines on the simulated network, and another one beside it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from operations.subscribers import package_assignment, packages
from registry.catalogue import Catalogue, Toolset
from simulators.network.entities import Line, Package
from tests.stage import OperatorStage, open_operator

CATALOGUE = Catalogue([Toolset("subscribers", "Lines.", (packages, package_assignment, package_assignment, packages, packages))])
ONE_TIME, MONTHLY = "Nordic 1GB 30d", "Nordic monthly 3GB"
READS = {"getSingleSubscriber", "listSubscriberPrepaidPackages", "listPrepaidPackageTemplate", "getResellerInfo", "listResellerAccount"}


NUMBERS = {"packageId", "subscriberprepaidpackageid", "subscriberid", "subscriberId", "subscriber", "esimId", "subsPackageId", "id"}
DRAWN = NUMBERS | {"iccid", "activationCode", "urlQrCode", "userSimName", "recurringPackage", "recurringId"}


def plain(value: Any) -> Any:
    """An answer without the numbers and codes that the simulated network drew."""
    if isinstance(value, list):
        return [plain(row) for row in value]
    if isinstance(value, dict):
        return {name: type(inner).__name__ if name in DRAWN and inner is not None else plain(inner) for name, inner in value.items()}
    return value


@dataclass(slots=True)
class PackagesStage(OperatorStage):
    """A client of the operator, and one of their lines."""

    line: Line = field(init=False)

    @property
    def path(self) -> str:
        return f"/v1/subscribers/{self.line.iccid}/packages"

    def foreign(self) -> Line:
        """A line of another account of the same reseller."""
        return next(iter(self.network.lines_of(8102)))

    def writes(self) -> list[tuple[str, object]]:
        return [(call.method, call.payload) for call in self.world.sandbox.calls if call.method not in READS]

    async def assign(self, name: str = ONE_TIME, **body: Any) -> Package:
        said = await self.http.post(self.path, json={"packageTemplateId": self.template(name), **body})
        assert said.status_code == 201, said.text
        return self.network.packages[said.json()["data"]["packageId"]]

    async def removed(self, path: str, key: str | None = None) -> httpx.Response:
        """A deletion whose confirm token is sent back."""
        return await self.confirmed(path, None, "DELETE", **({} if key is None else {"Idempotency-Key": key}))


@asynccontextmanager
async def open_packages_stage(folder: Path) -> AsyncGenerator[PackagesStage]:
    """The line is one that was never used."""
    async with open_operator(folder, CATALOGUE, PackagesStage) as stage:
        stage.line = next(line for line in stage.lines() if line.sim.status == "FREE")
        yield stage
