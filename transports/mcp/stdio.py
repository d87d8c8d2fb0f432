"""MCP over standard input and output, for a client that starts the service as its child."""

from operations.deps import Deps
from registry.answer import Report
from registry.caller import Caller
from registry.catalogue import Catalogue
from registry.pipeline import Pipeline
from transports.mcp.selection import Chosen, names
from transports.mcp.settings import McpSettings


def choose(toolsets: str, read_only: bool) -> Chosen:
    """The selection of the command line."""
    return Chosen(query=names(toolsets), read_only=read_only)


async def run_stdio(
    catalogue: Catalogue, pipeline: Pipeline[Deps], settings: McpSettings, report: Report, *, caller: Caller, chosen: Chosen
) -> None:
    """Serve one client of either protocol era until it closes its end. There is no credential here: the principal is given."""
    from mcp.server.stdio import stdio_server  # the SDK costs more than a second, which only this door pays

    from transports.mcp.server import make_server
    from transports.mcp.visitor import Visitor

    visitor = Visitor(caller, chosen)
    server = make_server(catalogue, pipeline, lambda _: visitor, settings, report)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
