"""The worker: delivers what is due, and sweeps what has outlived its time."""

from collections.abc import Callable

import anyio

from clients.webhooks.sender import Sender
from operations.services.delivery import Claimed, Deliveries
from registry.clock import Clock
from registry.ids import Ids
from storage.audit import sweep_audit
from storage.claims import freeze_orphans, sweep_claims
from storage.confirm import sweep_tokens
from storage.outbox import Outcome
from storage.sealing import Keyring
from storage.store import Store

BATCH = 100
POLL_SECONDS = 1.0
SWEEP_SECONDS = 60.0
GRACE_SECONDS = 15.0
AUDIT_SECONDS = 90 * 86_400


class Worker:
    """One loop of one process. Any number of processes may run one: the outbox's leases keep them apart."""

    def __init__(
        self,
        *,
        store: Store,
        keyring: Keyring,
        sender: Sender,
        clock: Clock,
        ids: Ids,
        report: Callable[[str], None],
        concurrency: int = 200,
    ) -> None:
        """`report` is told about faults; `concurrency` bounds the POSTs under way."""
        self._deliveries = Deliveries(store=store, keyring=keyring, sender=sender, clock=clock, ids=ids)
        self._store, self._clock, self._report = store, clock, report
        self._concurrency = concurrency
        self._flying: dict[tuple[str, str], Claimed] = {}
        self._outcomes: list[Outcome] = []
        self._woken, self._landed = anyio.Event(), anyio.Event()
        self._stopping = False
        self._swept = float("-inf")

    def wake(self) -> None:
        """There is work: look at once. Called in the loop's thread."""
        self._woken.set()

    def stop(self) -> None:
        """End `run`: POSTs under way are finished within the time one may take, what is left is given back."""
        self._stopping = True
        self.wake()

    async def run(self) -> None:
        """Work until stopped. A round that fails is reported, and the next one comes."""
        try:
            async with anyio.create_task_group() as sends, anyio.create_task_group() as acks:
                acks.start_soon(self._acknowledge)
                while not self._stopping:
                    for claimed in await self._round():
                        sends.start_soon(self._deliver, claimed)
                with anyio.move_on_after(GRACE_SECONDS):
                    await self._landed_all()
                acks.cancel_scope.cancel()
                sends.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._leave()

    async def step(self) -> int:
        """One round that waits for nothing but the receivers: what is due is sent and acknowledged. How many attempts counted."""
        await self._keep_house()
        counted = 0
        while claimed := await self._deliveries.claim(BATCH):
            async with anyio.create_task_group() as group:
                for each in claimed:
                    group.start_soon(self._deliver, each)
            outcomes, self._outcomes = self._outcomes, []
            counted += await self._deliveries.ack(outcomes)
        return counted

    async def _round(self) -> list[Claimed]:
        """Claim what there is room for; rest when there was nothing."""
        self._woken = anyio.Event()
        claimed: list[Claimed] = []
        try:
            await self._keep_house()
            room = min(BATCH, self._concurrency - len(self._flying))
            claimed = await self._deliveries.claim(room) if room > 0 else []
        except Exception as error:
            self._fault("a round failed and is repeated", error)
        self._flying.update({(each.row.id, each.lease): each for each in claimed})
        if not claimed:
            with anyio.move_on_after(POLL_SECONDS):
                await self._woken.wait()
        return claimed

    async def _deliver(self, claimed: Claimed) -> None:
        """One attempt. Whatever the receiver does is an outcome; only a fault of ours raises."""
        try:
            outcome = await self._deliveries.send(claimed)
        except Exception as error:
            self._fault(f"{claimed.row.id} could not be sent", error)
            outcome = self._deliveries.faulted(claimed)
        self._outcomes.append(outcome)
        self._landed.set()

    async def _acknowledge(self) -> None:
        """Keep outcomes as they come: those that arrive during one commit share the next."""
        while True:
            await self._landed.wait()
            self._landed = anyio.Event()
            if not await self._ack():
                await anyio.sleep(POLL_SECONDS)
                self._landed.set()

    async def _ack(self) -> bool:
        """False when the store refused: the outcomes wait."""
        outcomes, self._outcomes = self._outcomes, []
        try:
            await self._deliveries.ack(outcomes)
        except Exception as error:
            self._fault("attempts could not be recorded yet", error)
            self._outcomes[:0] = outcomes
            return False
        for outcome in outcomes:
            self._flying.pop((outcome.delivery, outcome.lease), None)
        self.wake()
        return True

    async def _landed_all(self) -> None:
        """Until nothing is under way."""
        while self._flying:
            self._woken = anyio.Event()
            await self._woken.wait()

    async def _leave(self) -> None:
        """Record what has ended, and let go of the rest: another worker finds it at once instead of after the lease."""
        await self._ack()
        flying, self._flying = list(self._flying.values()), {}
        try:
            await self._deliveries.give_back(flying)
        except Exception as error:
            self._fault("leases could not be given back; they end by themselves", error)

    async def _keep_house(self) -> None:
        """Forget what has outlived its time."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        if monotonic - self._swept >= SWEEP_SECONDS:
            await self._store.write(freeze_orphans, now=now)
            await self._store.write(sweep_tokens, now=now)
            await self._store.write(sweep_claims, now=now)
            await self._store.write(sweep_audit, before=now - AUDIT_SECONDS)
            self._swept = monotonic

    def _fault(self, what: str, error: Exception) -> None:
        self._report(f"worker: {what}: {type(error).__name__}: {error}")
