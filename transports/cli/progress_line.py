"""How far a long call has come: one line of a terminal that is written over, and gone when the answer is there."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from registry.call import Progress, no_progress

CLEAR = "\r\x1b[K"


@contextmanager
def progress_line() -> Generator[Progress]:
    """What a call is given to tell of its progress; in a pipe nobody reads along."""
    stream = sys.stderr
    if not stream.isatty():
        yield no_progress
        return

    told = False

    async def tell(done: float, total: float | None, message: str | None) -> None:
        nonlocal told
        told = True
        share = f"{100 * done / total:.0f} %  " if total else ""
        stream.write(f"{CLEAR}{share}{message or ''}")
        stream.flush()

    try:
        yield tell
    finally:
        if told:
            stream.write(CLEAR)
            stream.flush()
