"""The worker: delivers what is due, and does the chores beside it."""

from collections.abc import Callable, Sequence
from typing import Protocol

import anyio

from clients.webhooks.sender import WebhookSender
from operations.ledger.event_rights import ChooserRights
from operations.ledger.webhooks import ClaimedDelivery, WebhookDeliveries
from registry.clock import Clock
from registry.ids import Ids
from storage.engine.store import Store
from storage.outbox import DELIVERY_LEASE_MS, AttemptOutcome
from storage.sealing import Keyring
from transports.signals import WorkerTally
from transports.worker.chores import Chore, ChoreRunner

DELIVERY_BATCH = 100
POLL_SECONDS = 1.0
WORKER_GRACE_SECONDS = 15.0


class WorkListener(Protocol):
    """Hears of work that other processes have queued."""

    async def __call__(self, heard: Callable[[], None], /) -> None: ...


class Worker:
    """The loops of one process. Any number of processes may run them: leases in the database keep them apart."""

    def __init__(
        self,
        *,
        store: Store,
        keyring: Keyring,
        sender: WebhookSender,
        clock: Clock,
        ids: Ids,
        report: Callable[[str], None],
        rights: ChooserRights,
        chores: Sequence[Chore] = (),
        listener: WorkListener | None = None,
        concurrency: int = 200,
        lease_seconds: float = DELIVERY_LEASE_MS / 1000,
    ) -> None:
        """`report` is told about faults; `listener` wakes it between polls; `concurrency` bounds the POSTs under way."""
        self._deliveries = WebhookDeliveries(
            store=store, keyring=keyring, sender=sender, clock=clock, ids=ids, rights=rights, lease_ms=int(lease_seconds * 1000)
        )
        self.tally = WorkerTally(tuple(chore.name for chore in chores))
        self._chores = ChoreRunner(chores, store=store, clock=clock, ids=ids, tally=self.tally, fault=self._fault)
        self._listener, self._report, self._concurrency = listener, report, concurrency
        self._flying: dict[tuple[str, str], ClaimedDelivery] = {}
        self._outcomes: list[AttemptOutcome] = []
        self._woken, self._landed = anyio.Event(), anyio.Event()
        self._stopping = False

    def wake(self) -> None:
        """There is work: look at once. Called in the loop's thread."""
        self._woken.set()

    def stop(self) -> None:
        """End `run`: POSTs and chores under way are finished within the time a POST may take, what is left is given back."""
        self._stopping = True
        self._chores.stop()
        self.wake()

    async def run(self) -> None:
        """Work until stopped. A round that fails is reported, and the next one comes."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._acknowledge)
                tasks.start_soon(self._chores.run)
                if self._listener is not None:
                    tasks.start_soon(self._listener, self.wake)
                while not self._stopping:
                    for claimed in await self._round():
                        tasks.start_soon(self._deliver, claimed)
                with anyio.move_on_after(WORKER_GRACE_SECONDS):
                    await self._landed_all()
                    await self._chores.ended.wait()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._leave()

    async def step(self) -> int:
        """Runs due chores, sends and records all due deliveries, and returns how many attempts were recorded. Waits for the receivers."""
        await self._chores.step()
        counted = 0
        while claimed := await self._deliveries.claim(DELIVERY_BATCH):
            async with anyio.create_task_group() as group:
                for each in claimed:
                    group.start_soon(self._deliver, each)
            outcomes, self._outcomes = self._outcomes, []
            counted += await self._deliveries.ack(outcomes)
        return counted

    async def _round(self) -> list[ClaimedDelivery]:
        """Claims as many deliveries as there is room for; waits a second where nothing was due."""
        self._woken = anyio.Event()
        claimed: list[ClaimedDelivery] = []
        try:
            room = min(DELIVERY_BATCH, self._concurrency - len(self._flying))
            with anyio.CancelScope(shield=True):  # the database ends it in any case: nobody would give back what it takes
                claimed = await self._deliveries.claim(room) if room > 0 else []
        except Exception as error:
            self._fault("a round failed and is repeated", error)
        self._flying.update({(each.row.id, each.lease): each for each in claimed})
        if not claimed:
            with anyio.move_on_after(POLL_SECONDS):
                await self._woken.wait()
        return claimed

    async def _deliver(self, claimed: ClaimedDelivery) -> None:
        """Makes one attempt. Whatever the receiver does is an outcome; only a fault of ours is caught here."""
        try:
            outcome = await self._deliveries.send(claimed)
        except Exception as error:
            self._fault(f"{claimed.row.id} could not be sent", error)
            outcome = self._deliveries.faulted(claimed)
        self.tally.attempt(outcome.outcome, outcome.milliseconds / 1000)
        self._outcomes.append(outcome)
        self._landed.set()

    async def _acknowledge(self) -> None:
        """Records outcomes as they come; those that arrive during one commit share the next."""
        while True:
            await self._landed.wait()
            self._landed = anyio.Event()
            if not await self._ack():
                await anyio.sleep(POLL_SECONDS)
                self._landed.set()

    async def _ack(self) -> bool:
        """Records the outcomes; False where the store refused, so that they wait."""
        outcomes, self._outcomes = self._outcomes, []
        try:
            with anyio.CancelScope(shield=True):  # else its leases could be given back first, and the receiver is told twice
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
        while self._flying:
            self._woken = anyio.Event()
            await self._woken.wait()

    async def _leave(self) -> None:
        """Records what has ended and gives the other leases back, so that another worker need not wait for them to end."""
        await self._ack()
        flying, self._flying = list(self._flying.values()), {}
        try:
            await self._deliveries.give_back(flying)
        except Exception as error:
            self._fault("leases could not be given back; they end by themselves", error)

    def _fault(self, what: str, error: Exception) -> None:
        self._report(f"worker: {what}: {type(error).__name__}: {error}")
