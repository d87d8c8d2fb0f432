"""What state machines share: a loop of their own, a folder in memory, and a database of either kind."""

import asyncio
import atexit
import tempfile
from collections.abc import Coroutine
from contextlib import AsyncExitStack, ExitStack
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from tests.databases import empty, migrated_postgres

T = TypeVar("T")
MEMORY = "/dev/shm"
Engine = Literal["sqlite", "postgresql"]


class Machine(RuleBasedStateMachine):
    """Hypothesis plays machines synchronously: each has a runner of its own."""

    engine: ClassVar[Engine] = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="machine-", dir=MEMORY if Path(MEMORY).is_dir() else None)
        self.runner, self.stack = asyncio.Runner(), AsyncExitStack()
        self.run(self.open(Path(self.folder.name), clean_postgres() if self.engine == "postgresql" else None))

    async def open(self, folder: Path, url: str | None) -> None:
        """What the machine plays with; without an address it has a new file."""
        raise AssertionError("each machine opens its own")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it now."""
        return self.runner.get_loop().run_until_complete(work)

    def together(self, *work: Coroutine[Any, Any, T]) -> list[T]:
        """Do them at once."""

        async def gathered() -> list[T]:
            return await asyncio.gather(*work)

        return self.run(gathered())

    def teardown(self) -> None:
        """Nothing stays."""
        self.run(self.stack.aclose())
        self.runner.close()
        self.folder.cleanup()


@cache
def postgres() -> str | None:
    """One database for all machines of this process."""
    made = ExitStack()
    url = made.enter_context(migrated_postgres())
    atexit.register(made.close)  # before the server's own clean-up: the last registered goes first
    return url


def clean_postgres() -> str:
    """The same, empty."""
    url = postgres()
    assert url is not None, "no PostgreSQL"
    empty(url)
    return url
