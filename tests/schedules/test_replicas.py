"""Three replicas over one database: one run for each boundary, through changes of the clock and the death of one of them."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import anyio
import orjson
import pytest

from operations.intelligence.schedule_reports import REPORT_LEASE_SECONDS, ScheduleRuns
from tests.clients.webhooks.receiver import receiver, status_answer
from tests.deliveries.post_office import read
from tests.harness.processes import ROOT, Child
from tests.schedules.bureau import Bureau, script
from tests.schedules.test_boundaries import at_minutes, at_times

QUARTER = 900


def begin(bureau: Bureau, day: str) -> None:
    noon = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() - 43_200
    bureau.clock.advance(noon - bureau.clock.now())


async def all_at_once(replicas: list[ScheduleRuns]) -> None:
    """Each begins what is due and makes what it can take, at the same moment."""

    async def turn(replica: ScheduleRuns) -> None:
        await replica.fire()
        while await replica.step():
            pass

    async with anyio.create_task_group() as tasks:
        for replica in replicas:
            tasks.start_soon(turn, replica)


@pytest.mark.long
@pytest.mark.rule("4.7.53")
@pytest.mark.parametrize(
    ("database_url", "day"),
    [("sqlite", "2027-03-28"), pytest.param("postgresql", "2027-10-31", marks=pytest.mark.postgres)],
    indirect=["database_url"],
)
async def test_each_boundary_has_one_report_and_one_delivery_though_a_replica_dies(on_both: Bureau, day: str) -> None:
    bureau, zone = on_both, "Europe/Berlin"
    begin(bureau, day)
    async with receiver(status_answer("200 OK")) as there:
        daily = await bureau.create(cron="30 2 * * *", webhook_url=there.url())
        hourly = await bureau.create(cron="0 * * * *", webhook_url=there.url())
        replicas, started, dead = [bureau.replica() for _ in range(3)], bureau.clock.now(), 0
        for quarter in range(24 * 4):
            bureau.clock.advance(QUARTER)
            if quarter % 20 == 3:  # one takes a report and is never heard of again
                doomed = replicas.pop()
                await doomed.fire()
                dead += await doomed.take(f"lse_of_the_dead_{quarter}") is not None
                replicas.append(bureau.replica())
            await all_at_once(replicas)
            await bureau.post()
        bureau.clock.advance(REPORT_LEASE_SECONDS)
        await all_at_once(replicas)
        await bureau.post()
    assert dead == 5
    ended = bureau.clock.now()
    expected = [at for at in (*at_times(day, zone, [(2, 30)]), *at_minutes(day, zone, {0})) if started < at.timestamp() <= ended]
    kept = await bureau.kept()
    assert sorted(row.fire_ms or 0 for row in kept) == sorted(int(at.timestamp() * 1000) for at in expected)
    assert {row.state for row in kept} == {"done"}
    assert len(script().calls) == len(expected)
    secrets = {schedule["id"]: schedule["secret"] for schedule in (daily, hourly)}
    told = [orjson.loads(read(request).body) for request in there.requests]
    for request, event in zip(there.requests, told, strict=True):
        post = read(request)
        assert post.verified(secrets[event["data"]["schedule"]], float(post.headers["webhook-timestamp"])) == event
    assert len({event["id"] for event in told}) == len(told) == len(expected)
    assert sorted(event["data"]["boundary"] for event in told) == sorted(f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in expected)


@pytest.mark.long
async def test_a_report_of_a_process_that_was_killed_is_made_by_another(bureau: Bureau, tmp_path: Path) -> None:
    made = await bureau.create()
    await bureau.run(made)
    command = [sys.executable, "-m", "tests.schedules.doomed", str(tmp_path), bureau.url, str(bureau.clock.now())]
    with Child(command, cwd=ROOT, stdout=subprocess.PIPE) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == b"begun\n"
        doomed.kill()
    other = bureau.replica()
    assert not await other.step()
    bureau.clock.advance(REPORT_LEASE_SECONDS + 1)
    assert await other.step()
    assert [(row.state, row.tries) for row in await bureau.kept()] == [("done", 2)]
    assert (await bureau.report(made))["state"] == "done"
