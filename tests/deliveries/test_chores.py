"""What the worker does now and then: by one replica at a time, beside the deliveries, again after a fault."""

import asyncio

import pytest

from storage.deliveries import Listener
from storage.engine.jobs import job_due_at
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.deliveries.post_office import PostOffice
from tests.deliveries.test_worker import loop_until
from transports.worker.chores import Chore
from transports.worker.worker import Worker

SOON = 0.01  # real seconds between looks; whether it is due, the test's clock says


class Work:
    """Something to do that a test can hold up, and make fail."""

    def __init__(self) -> None:
        self.begun, self.ended, self.fails = 0, 0, False
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self) -> None:
        self.begun += 1
        await self.go.wait()
        if self.fails:
            raise ConnectionError("the network is away")
        self.ended += 1

    def chore(self, every: float = SOON, limit: float = 60.0) -> Chore:
        return Chore("work", every, self, limit)


async def ended(*running: tuple[Worker, asyncio.Task[None]]) -> None:
    for worker, _ in running:
        worker.stop()
    await asyncio.gather(*(task for _, task in running))


def start(office: PostOffice, work: Work, **chore: float) -> tuple[Worker, asyncio.Task[None]]:
    worker = office.worker(chores=[work.chore(**chore)])
    return worker, asyncio.create_task(worker.run())


async def test_of_several_workers_one_does_it_each_time_it_is_due(on_both: PostOffice) -> None:
    office, work = on_both, Work()
    work.go.clear()
    running = [start(office, work) for _ in range(3)]
    await loop_until(lambda: work.begun)
    assert await office.store.read(job_due_at, name="work") > office.clock.now() * 1000
    work.go.set()
    for turn in range(1, 5):
        await loop_until(lambda turn=turn: work.ended == turn)
        while await office.store.read(job_due_at, name="work") > (office.clock.now() + SOON) * 1000 + 1:
            await asyncio.sleep(0)  # until the lease is given back
        assert work.begun == turn
        office.clock.advance(2 * SOON)
    await ended(*running)
    assert office.reports == []


async def test_a_chore_that_fails_is_reported_and_tried_again(on_both: PostOffice) -> None:
    office, work = on_both, Work()
    work.fails = True
    worker, task = start(office, work)
    await loop_until(lambda: office.reports)
    assert office.reports == ["worker: work failed and is tried again: ConnectionError: the network is away"]
    assert worker.tally.chores == {"work": 0.0}
    work.fails = False
    office.clock.advance(1)
    await loop_until(lambda: work.ended == 1)
    await ended((worker, task))
    assert worker.tally.chores == {"work": office.clock.now()}


async def test_a_chore_beyond_its_limit_is_ended_since_another_replica_may_begin_it(office: PostOffice) -> None:
    work = Work()
    work.go.clear()
    running = start(office, work, limit=0.02)
    await loop_until(lambda: office.reports)
    assert office.reports == ["worker: work failed and is tried again: TimeoutError: "]
    work.go.set()
    office.clock.advance(1)
    await loop_until(lambda: work.ended == 1)
    await ended(running)


async def test_a_long_chore_delays_no_delivery(office: PostOffice) -> None:
    work = Work()
    work.go.clear()
    running = start(office, work)
    await loop_until(lambda: work.begun)
    async with receiver(status_answer("200 OK")) as there:
        await office.endpoint(there.url())
        await office.emit()
        running[0].wake()
        await loop_until(lambda: there.requests)
    work.go.set()
    await ended(running)


async def test_a_stopping_worker_finishes_the_chore_under_way_and_begins_none(on_both: PostOffice) -> None:
    office, work = on_both, Work()
    work.go.clear()
    worker, task = start(office, work)
    await loop_until(lambda: work.begun)
    worker.stop()
    work.go.set()
    await task
    assert (work.begun, work.ended) == (1, 1)
    assert await office.store.read(job_due_at, name="work") == int((office.clock.now() + SOON) * 1000)


async def test_a_cancelled_worker_gives_its_chore_back_at_once(on_both: PostOffice) -> None:
    office, work = on_both, Work()
    work.go.clear()
    _, task = start(office, work, every=3600.0)
    await loop_until(lambda: work.begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    work.go.set()
    again = start(office, work, every=3600.0)
    await loop_until(lambda: work.ended == 1)
    await ended(again)


async def test_a_worker_that_cannot_listen_polls(office: PostOffice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transports.worker.worker.POLL_SECONDS", SOON)
    worker = office.worker(listener=Listener("postgresql://nobody@127.0.0.1:9/none", office.reports.append))
    task = asyncio.create_task(worker.run())
    await loop_until(lambda: office.reports)
    async with receiver(status_answer("200 OK")) as there:
        await office.endpoint(there.url())
        await office.emit()
        await loop_until(lambda: there.requests)
    await ended((worker, task))
    text = "worker: not listening to the database; new deliveries are found by polling meanwhile"
    assert office.reports == [text]
