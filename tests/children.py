"""Programs that a test starts and waits for."""

import subprocess
from types import TracebackType
from typing import AnyStr


class Child(subprocess.Popen[AnyStr]):
    """A program whose block waits for its end, as a `Popen` does, but not when the block failed: what it waits for may never come then."""

    def __exit__(self, exc_type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        if exc_type is not None:
            self.kill()
        super().__exit__(exc_type, value, traceback)
