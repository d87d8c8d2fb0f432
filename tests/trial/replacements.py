"""Servers and workers are replaced one after the other under load: a restart, a new encryption key, the next release."""

import asyncio
from collections.abc import Callable

from tests.cli.reseller import environment
from tests.cli.test_key_rotation import NEW
from tests.fuzz.outage import Beside
from tests.replicas.cluster import KEYS
from tests.replicas.next_release import next_release
from tests.trial.door import RATE, Door, door_of, figures, mixed, told
from tests.trial.installation import SERVERS, WORKERS, Installation, installed
from tests.trial.plan import Plan
from tests.trial.proof import Proof

AROUND_SECONDS, LONGEST = 1.0, 3600.0
AIM = "no call fails, no answer changes"


async def replace(plan: Plan) -> list[Proof]:
    """All three on one installation."""
    async with installed(plan.place, drain=plan.drain) as made:
        door = door_of(made)
        proofs = [await drain(made, door), await keys(made, door), await upgrade(made, door)]
        door.aclose()
    return proofs


async def under_load(made: Installation, door: Door, work: Callable[[], None]) -> Beside:
    """Calls of all kinds before, while and after something is done."""
    calls, stop = Beside(door.ask, mixed(made), RATE), asyncio.Event()
    calling = asyncio.ensure_future(calls.run(LONGEST, stop))
    try:
        await asyncio.sleep(AROUND_SECONDS)
        await asyncio.to_thread(work)
        await asyncio.sleep(AROUND_SECONDS)
    finally:
        stop.set()
        await calling
    return calls


def proof_of(made: Installation, door: Door, name: str, done: str, calls: Beside, more: str = "") -> Proof:
    """Of what was done under load."""
    complaints = made.house.complaints()
    reached = f"{figures(calls)}; answers that changed: {door.changed}{more}{told(complaints)}"
    return Proof(name, done, reached, AIM, not (calls.errors() or door.changed or complaints))


async def drain(made: Installation, door: Door) -> Proof:
    """A server ends as a supervisor ends it."""
    calls = await under_load(made, door, lambda: made.replace(SERVERS[0]))
    seconds = made.settings["SERVICE_DRAIN_SECONDS"]
    return proof_of(made, door, "drain", f"SIGTERM of one server of two, with {seconds} s to drain, and its start", calls)


async def keys(made: Installation, door: Door) -> Proof:
    """In two phases, as the guide for operators says."""
    found: list[str] = []

    def rotate() -> None:
        for ring in (f"{KEYS},{NEW}", f"{NEW},{KEYS}"):
            made.settings["SERVICE_SECRET_KEYS"] = ring
            for name in (*SERVERS, *WORKERS):
                made.replace(name)
        found.extend(made.command("keys", "rekey").splitlines())

    calls = await under_load(made, door, rotate)
    gone = any(line.startswith("key k1: no longer needed") for line in found)
    done = "the new key appended, every process restarted, the new key in front, every process restarted, all sealed again"
    proof = proof_of(made, door, "new encryption key", done, calls, "" if gone else f"; the old key is still needed: {found}")
    return proof._replace(met=bool(proof.met) and gone)


async def upgrade(made: Installation, door: Door) -> Proof:
    """Its schema first, while this program serves; then its processes, one after the other."""
    release = await asyncio.to_thread(next_release, made.house.place, expands=True)

    def take_over() -> None:
        release.run("db", "upgrade", environment=environment(made.settings))
        made.replace(SERVERS[0])  # of this release, on the schema of the next
        made.program = release.program
        for name in (*SERVERS, *WORKERS):
            made.replace(name)

    calls = await under_load(made, door, take_over)
    return proof_of(made, door, "upgrade", "schema of the next release, then its processes in the place of this one's, side by side", calls)
