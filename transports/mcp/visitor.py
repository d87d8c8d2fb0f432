"""Who stands at the door: the caller of one request, and the tools they asked to see."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from mcp.server.context import ServerRequestContext

from registry.call import Call, Reply
from registry.caller import Caller
from transports.mcp.selection import Chosen

NOTHING = Chosen()
Tell: TypeAlias = Callable[[Call, Reply], None]


Admit: TypeAlias = Callable[[Call, Reply], Awaitable[Reply]]


def nobody(call: Call, reply: Reply) -> None:
    """Nobody wants to know."""


async def uncounted(call: Call, reply: Reply) -> Reply:
    """Every reply, where nobody counts large ones."""
    del call
    return reply


@dataclass(frozen=True, slots=True)
class Visitor:
    """One authenticated caller. `request_id` is that of the HTTP request, when there is one."""

    caller: Caller
    chosen: Chosen = NOTHING
    client: str = ""
    request_id: str | None = None
    tell: Tell = nobody
    """Is told what was called, and what came of it."""
    admit: Admit = uncounted
    """Counts a reply that is large, until the request has been answered; or says why it cannot be given now."""
    message_size: int = 0
    """Bytes of the request's body, which the pipeline charges where the call is refused or replayed; 0 where they are charged."""


Context: TypeAlias = ServerRequestContext
Who: TypeAlias = Callable[[Context], Visitor]
