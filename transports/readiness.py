"""Whether a process should be sent work, and why not: looked at beside the calls, so that who asks waits for nothing."""

from collections.abc import Callable
from typing import TypedDict

import anyio
import orjson

from operations.deps import Deps
from registry.errors import StoreUnavailable
from storage.database_state import look_at_database

HEALTH_PATH, READY_PATH = "/health", "/health/ready"
READINESS_LOOK_SECONDS = 1.0
LOOKS_PER_KEY_CHECK = 10
"""Looks from one at the keys to the next."""
READINESS_STALE_SECONDS = 6.0
"""After which a look counts for nothing: the process itself does not get on."""
DATABASE_UNREACHABLE, DATABASE_READ_ONLY, SCHEMA_UNKNOWN, KEYRING_INCOMPLETE, PROCESS_DRAINING = (
    "database_unreachable",
    "database_read_only",
    "schema_version",
    "keyring",
    "draining",
)


class ReadinessBody(TypedDict):
    """The body of an answer; `reasons` is empty where `ready` is true."""

    ready: bool
    reasons: list[str]


class Readiness:
    """Ready while the database answers and takes writes, has a schema version that this program works on, and was sealed with keys that
    it has; until the process is told to end.

    Choice: no operation. It is asked of one process, also of a worker, that does not serve the API, and says nothing to a client of it.
    """

    def __init__(self, deps: Deps, report: Callable[[str], None]) -> None:
        self._store, self._keyring, self._clock, self._build, self._report = deps.store, deps.keyring, deps.clock, deps.build, report
        self._found: tuple[str, ...] = (DATABASE_UNREACHABLE,)
        self._looked_at, self._looks = float("-inf"), 0
        self._unknown_keys = frozenset[str]()
        self._draining = False

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not ready; empty when it is."""
        stale = self._clock.monotonic() - self._looked_at > READINESS_STALE_SECONDS
        return ((DATABASE_UNREACHABLE,) if stale else self._found) + ((PROCESS_DRAINING,) if self._draining else ())

    def drain(self) -> None:
        """Marks this process as about to end: it finishes its requests and should get no new ones."""
        self._draining = True

    def answer(self) -> tuple[int, bytes]:
        """Status and JSON body of the answer to a readiness probe."""
        reasons = self.reasons
        body: ReadinessBody = {"ready": not reasons, "reasons": list(reasons)}
        return (503 if reasons else 200), orjson.dumps(body)

    def health(self) -> tuple[int, bytes]:
        """Status and JSON body of the answer to a liveness probe."""
        return 200, orjson.dumps({"ok": True, "version": self._build.version, "build_sha": self._build.sha})

    async def watch(self) -> None:
        """Look every second, until cancelled."""
        while True:
            await anyio.sleep(READINESS_LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Look at the database; what changed is reported."""
        found = await self._reasons()
        if self._looks and found != self._found:
            self._report(f"not ready: {', '.join(found)}" if found else "ready again")
        self._found, self._looked_at = found, self._clock.monotonic()
        self._looks += 1

    async def _reasons(self) -> tuple[str, ...]:
        with_keys = self._looks % LOOKS_PER_KEY_CHECK == 0
        try:
            state = await look_at_database(self._store, with_keys=with_keys)
        except StoreUnavailable:
            return (DATABASE_UNREACHABLE,)
        if state.is_read_only:
            return (DATABASE_READ_ONLY,)
        if not state.schema.is_spoken:
            return (SCHEMA_UNKNOWN,)
        if with_keys:
            self._unknown_keys = state.sealed_by - set(self._keyring.key_ids)
        return (KEYRING_INCOMPLETE,) if self._unknown_keys else ()
