"""Who stands at the door: the caller of one request, and the tools they asked to see."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from mcp.server.context import ServerRequestContext

from registry.call import Call, Reply
from registry.caller import Caller
from transports.mcp.selection import Chosen

NOTHING = Chosen()
Tell: TypeAlias = Callable[[Call, Reply], None]


def nobody(call: Call, reply: Reply) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """One authenticated caller. `request_id` is that of the HTTP request, when there is one."""

    caller: Caller
    chosen: Chosen = NOTHING
    client: str = ""
    request_id: str | None = None
    tell: Tell = nobody
    """Is told what was called, and what came of it."""


Context: TypeAlias = ServerRequestContext
Who: TypeAlias = Callable[[Context], Visitor]
