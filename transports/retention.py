"""The chore that forgets what has outlived its time."""

from registry.clock import Clock
from storage.audit import sweep_audit
from storage.claims import sweep_claims
from storage.confirm import sweep_tokens
from storage.placed import sweep_placed
from storage.stock import sweep_looks
from storage.store import Store
from transports.chores import Chore

EVERY_SECONDS = 60.0
AUDIT_SECONDS = 90 * 86_400
LOOKS_SECONDS = 3600
# Twice as long as evidence is looked for before a person has to settle a draw.
PLACED_SECONDS = 48 * 3600


def retention(store: Store, clock: Clock) -> Chore:
    """Looks at stocks, placed packages, confirm tokens, claims and the audit log. Events and their deliveries are kept for ever."""

    async def run() -> None:
        now = clock.now()
        await store.write(sweep_looks, before=now - LOOKS_SECONDS)
        await store.write(sweep_placed, before=now - PLACED_SECONDS)
        await store.write(sweep_tokens, now=now)
        await store.write(sweep_claims, now=now)
        await store.write(sweep_audit, before=now - AUDIT_SECONDS)

    return Chore("retention", EVERY_SECONDS, run)
