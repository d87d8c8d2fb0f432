"""The caller of one MCP request, and the tools that they asked to see."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from registry.call import Call, Reply
from registry.caller import Caller
from transports.mcp.selection import NO_SELECTION, RequestedTools

CallListener: TypeAlias = Callable[[Call, Reply], None]
ReplyAdmission: TypeAlias = Callable[[Call, Reply], Awaitable[Reply]]


def tell_nobody(call: Call, reply: Reply) -> None:
    """Nobody wants to know."""


async def admit_every_reply(call: Call, reply: Reply) -> Reply:
    """Every reply, where nobody counts large ones."""
    del call
    return reply


@dataclass(frozen=True, slots=True)
class RequestCaller:
    """One authenticated caller. `request_id` is that of the HTTP request, when there is one."""

    caller: Caller
    chosen: RequestedTools = NO_SELECTION
    client: str = ""
    request_id: str | None = None
    tell: CallListener = tell_nobody
    """Is told what was called, and what came of it."""
    admit: ReplyAdmission = admit_every_reply
    """Counts a reply that is large, until the request has been answered; or says why it cannot be given now."""
    message_size: int = 0
    """Bytes of the request's body, which the pipeline charges where the call is refused or replayed; 0 where they are charged."""
