"""MCP over standard input and output: the local principal is the organisation's admin, chosen here and nowhere else."""

import anyio

from operations.catalogue import CATALOGUE
from registry.call import Call
from transports.cli.local import local_caller, open_local, to_stderr
from transports.mcp.stdio import choose, run_stdio
from transports.service import mcp_settings
from transports.settings import Settings


def report(call: Call, error: BaseException) -> None:
    """Faults go to stderr, as all that is said here does: stdout belongs to the protocol."""
    to_stderr(f"{call.request_id} {call.operation.id}: {type(error).__name__}")


async def serve_stdio(settings: Settings, *, organisation: str | None, toolsets: str, read_only: bool) -> None:
    """Serve one client until it hangs up; on the embedded database webhooks are delivered meanwhile."""
    database = (settings.data / "service.db").absolute()
    if settings.embedded and not database.exists():
        to_stderr(f"there is no database at {database} yet: making one{', with a demo organisation' if settings.with_demo else ''}")
    service = await open_local(settings, seed=True)
    try:
        caller = await local_caller(service, organisation)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(service.keep_books)
            if settings.embedded:
                tasks.start_soon(service.worker.run)
            chosen = choose(toolsets, read_only)
            await run_stdio(CATALOGUE, service.pipeline, mcp_settings(service), report, caller=caller, chosen=chosen)
            service.worker.stop()
            tasks.cancel_scope.cancel()
    finally:
        await service.stop()
