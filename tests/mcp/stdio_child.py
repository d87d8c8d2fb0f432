"""The service on standard input and output, as a child of a test: `python -m tests.mcp.stdio_child FOLDER`."""

import sys
from pathlib import Path

import anyio

from registry.caller import Caller, Role, Tier
from registry.policy import scopes_of
from tests.mcp.house import CATALOGUE, SETTINGS
from tests.world import open_world
from transports.mcp.request_caller import RequestCaller, select_tools
from transports.mcp.server import run_stdio


async def main(folder: str) -> None:
    async with open_world(Path(folder), CATALOGUE) as world:
        organisation = await world.organisation(Tier.ENTERPRISE)
        local = Caller(
            kind="local",
            principal="local",
            organisation=organisation,
            tier=Tier.ENTERPRISE,
            role=Role.ADMIN,
            scopes=int(scopes_of(Tier.ENTERPRISE, Role.ADMIN)),
        )
        requester = RequestCaller(local, select_tools("", False))
        await run_stdio(world.pipeline, SETTINGS, lambda call, error: None, requester)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
