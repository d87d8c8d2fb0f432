"""A client that hangs up: what runs for it is cancelled."""

import asyncio
from collections.abc import Awaitable

import anyio

from transports.http.asgi import Receive

MOMENT = 0.1
"""Seconds after which a call is one that somebody may have given up waiting for."""


async def while_there(receive: Receive, serving: Awaitable[None]) -> None:
    """Serve until the client hangs up. Watching takes a task, so it begins when a call lasts longer than a moment."""
    watching: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        served.cancel()

    with anyio.CancelScope() as served:
        timer = loop.call_later(MOMENT, lambda: watching.append(loop.create_task(watch())))
        try:
            await serving
        finally:
            timer.cancel()
            for task in watching:
                task.cancel()
