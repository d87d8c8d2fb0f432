"""More operations for the tests of the MCP door: a toolset that is only shown when asked for, one of its tools an operator's."""

from operations.deps import Ctx
from registry.operation import Nothing, Scope, operation
from tests.mcp.notes import Note, NoteRef
from tests.note_rows import add_note_row


@operation("GET", "/v1/ledger")
async def read_ledger(ctx: Ctx, params: Nothing) -> Note:
    """Read the ledger."""
    del ctx, params
    return {"name": "ledger", "writes": 0}


@operation("POST", "/v1/ledger", scope=Scope.WRITE)
async def write_ledger(ctx: Ctx, params: NoteRef) -> Note:
    """Write the ledger."""
    return await ctx.settle_result(add_note_row, name=params.name)


@operation("DELETE", "/v1/ledger", scope=Scope.ADMIN, confirm=True, operator=True)
async def purge_ledger(ctx: Ctx, params: NoteRef) -> Note:
    """Empty the ledger."""
    return await ctx.settle_result(add_note_row, name=params.name)
