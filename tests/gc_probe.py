"""What only the collector can free: objects that keep each other alive."""

import gc
from collections.abc import Awaitable, Callable


async def left_by(call: Callable[[], Awaitable[object]], times: int = 20) -> list[object]:
    """What so many calls leave behind, once caches and pools are warm."""
    await call()
    gc.freeze()  # what is there is not looked through once more
    enabled, flags = gc.isenabled(), gc.get_debug()
    gc.disable()
    try:
        for _ in range(times):
            await call()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return gc.garbage[:]
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
        if enabled:
            gc.enable()
