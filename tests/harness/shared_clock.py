"""A clock that the suite moves while the service runs: the machine's own, and beside it seconds that stand in a shared file."""

import mmap
import struct
import time
from pathlib import Path

SECONDS = struct.Struct("d")


class SharedClock:
    """Every process that opens the file sees the same time, those that are started later too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(bytes(SECONDS.size))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), SECONDS.size)

    @property
    def ahead(self) -> float:
        """How far it has been moved."""
        return float(SECONDS.unpack(self._shared[:])[0])

    def now(self) -> float:
        return time.time() + self.ahead

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def advance(self, seconds: float) -> None:
        """So much time has passed for everybody."""
        self._shared[:] = SECONDS.pack(self.ahead + seconds)

    def close(self) -> None:
        self._shared.close()
