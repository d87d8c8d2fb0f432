"""Whose calls the runs of a schedule are: the key's or login's that made it, for as long as that one lasts."""

from typing import Any, NamedTuple

import httpx
import pytest
import sqlalchemy as sa
from inline_snapshot import snapshot

from registry.caller import Restrictions, Role
from storage.access_grants import AccessGrant, insert_grant, revoke_grant
from storage.api_keys import end_key
from storage.engine.sql import Command, Connection
from storage.members import end_membership
from storage.schedules import IntelligenceScheduleTable
from tests.registry.ledgers import audited_of
from tests.schedules.bureau import DAILY, SCHEDULES, Body, Bureau, script

SCHEDULE = IntelligenceScheduleTable.table
FORGET = Command(sa.update(SCHEDULE).values(made_with=None))
DAY = 86_400
RESTS = "The schedule rests: the key or login that it was made with has ended, or whoever made it has left the organisation"


class Maker(NamedTuple):
    """A key, and the schedule that was made with it."""

    key: str
    secret: str
    schedule: Body


def forget(connection: Connection) -> None:
    """As the rows of an older version are: nothing says what they were made with."""
    connection.run(FORGET)


async def made_by(bureau: Bureau, *, expires_at: int | None = None, wanted: Body | None = None, **restrictions: Any) -> Maker:
    key, secret = await bureau.world.key(
        bureau.caller.person, bureau.caller.organisation, expires_at=expires_at, restrictions=Restrictions(**restrictions)
    )
    async with bureau.world.client(secret) as http:
        answer = await http.post(SCHEDULES, json={**DAILY, "cron": "0 * * * *", **(wanted or {})})
    assert answer.status_code == 201, answer.text
    return Maker(key, secret, answer.json())


async def runs(bureau: Bureau, hours: int) -> list[str]:
    replica, before = bureau.replica(), len(await bureau.kept())
    for _ in range(hours):
        bureau.clock.advance(3600)
        await replica.fire()
        while await replica.step():
            pass
    return [kept.state for kept in (await bureau.kept())[before:]]


async def listed(bureau: Bureau) -> Body:
    [one] = (await bureau.http.get(SCHEDULES)).json()["data"]
    return one


async def test_the_runs_of_a_key_s_schedule_count_for_the_key(on_both: Bureau) -> None:
    maker = await made_by(on_both, calls_per_day=3)  # one of them made the schedule
    assert await runs(on_both, 3) == ["done", "done", "failed"]
    report = await on_both.report(maker.schedule)
    assert report["error"] == snapshot(
        {
            "error": "This API key is restricted to 3 calls per UTC day, and they are used up; it works again at 2027-01-16T00:00:00Z",
            "code": "quota_exceeded",
        }
    )
    async with on_both.world.client(maker.secret) as http:
        answer = await http.get(SCHEDULES)
    assert (answer.status_code, answer.json()["code"]) == (429, "quota_exceeded")
    assert (await on_both.http.get(SCHEDULES)).status_code == 200, "another key has calls of its own"
    on_both.clock.advance(DAY)
    assert await runs(on_both, 1) == ["done"]


async def test_a_run_is_in_the_audit_log_under_the_key_that_made_the_schedule(bureau: Bureau) -> None:
    maker = await made_by(bureau)
    await runs(bureau, 1)
    await bureau.world.journal.flush()
    rows = await bureau.world.store.read(audited_of, organisation=bureau.caller.organisation)
    assert [(row.surface, row.principal, row.key_id) for row in rows][-1] == ("schedule", maker.schedule["id"], maker.key)


async def test_a_schedule_rests_once_its_key_was_revoked(on_both: Bureau) -> None:
    maker = await made_by(on_both, wanted={"share": True, "webhook_url": "https://hooks.example.com/reports"})
    assert await runs(on_both, 1) == ["done"]
    link = maker.schedule["share_url"].removeprefix("https://reseller.test")
    assert (await shared(on_both, link)).status_code == 200
    assert (await listed(on_both))["status"] == "active"
    await on_both.world.store.write(end_key, key=maker.key, now=on_both.clock.now())
    assert await runs(on_both, 2) == []
    one = await listed(on_both)
    assert (one["status"], one["made_with"], one["made_by"]) == ("resting", maker.key, on_both.caller.person)
    assert (await shared(on_both, link)).status_code == 404
    refused = await on_both.http.post(f"{SCHEDULES}/{maker.schedule['id']}/run")
    assert (refused.status_code, refused.json()["code"], refused.json()["error"]) == (409, "schedule_resting", RESTS)
    assert (await on_both.http.delete(f"{SCHEDULES}/{maker.schedule['id']}")).status_code == 200


async def shared(bureau: Bureau, link: str) -> httpx.Response:
    async with bureau.world.client() as http:
        return await http.get(link)


async def test_a_schedule_rests_once_its_key_has_expired_and_says_beforehand_when(bureau: Bureau) -> None:
    ends = int(bureau.clock.now()) + 5000
    maker = await made_by(bureau, expires_at=ends)
    assert maker.schedule["ends_at"] == (await listed(bureau))["ends_at"] == "2027-01-15T13:23:20Z"
    assert await runs(bureau, 3) == ["done"]
    assert (await listed(bureau))["status"] == "resting"


async def test_a_report_that_waits_while_its_key_ends_is_not_made(bureau: Bureau) -> None:
    maker = await made_by(bureau)
    waiting = await bureau.run(maker.schedule)
    await bureau.world.store.write(end_key, key=maker.key, now=bureau.clock.now())
    assert await bureau.replica().step()
    report = await bureau.report(maker.schedule, report=waiting["id"])
    assert (report["state"], report["error"]) == ("failed", {"error": RESTS, "code": "schedule_resting"})
    assert script().calls == []


@pytest.mark.parametrize("how", ["expired", "revoked"])
async def test_a_schedule_rests_once_the_login_that_made_it_has_ended(bureau: Bureau, how: str) -> None:
    now = bureau.clock.now()
    caller, grant = (
        bureau.caller,
        AccessGrant("gnt_1", bureau.caller.person, bureau.caller.organisation, "c", "C", "read write", "r", now, now + 9000),
    )
    await bureau.world.store.write(insert_grant, grant)
    maker = await made_by(bureau)
    await bureau.world.store.write(pretend, schedule=maker.schedule["id"], made_with="gnt_1")
    assert await runs(bureau, 1) == ["done"]
    assert (await listed(bureau))["ends_at"] == "2027-01-15T14:30:00Z"
    if how == "revoked":
        await bureau.world.store.write(revoke_grant, grant="gnt_1", now=bureau.clock.now())
    else:
        bureau.clock.advance(6000)
    assert await runs(bureau, 2) == []
    assert caller.person == (await listed(bureau))["made_by"]


def pretend(connection: Connection, *, schedule: str, made_with: str) -> None:
    """The bureau has no sessions: a schedule of a key becomes one of a login."""
    connection.run(PRETEND, named=schedule, credential=made_with)


PRETEND = Command(sa.update(SCHEDULE).where(SCHEDULE.c.id == sa.bindparam("named")).values(made_with=sa.bindparam("credential")))


async def test_a_schedule_rests_once_its_person_has_left(bureau: Bureau) -> None:
    await made_by(bureau)
    other = await bureau.world.caller(organisation=bureau.caller.organisation, role=Role.ADMIN)
    await bureau.world.store.write(
        end_membership, person=bureau.caller.person, organisation=bureau.caller.organisation, now=bureau.clock.now()
    )
    assert await runs(bureau, 2) == []
    async with bureau.world.client(other.secret) as http:
        assert [one["status"] for one in (await http.get(SCHEDULES)).json()["data"]] == ["resting"]


async def test_a_schedule_of_before_runs_for_its_person_until_they_leave(on_both: Bureau) -> None:
    maker = await made_by(on_both, calls_per_day=1)
    await on_both.world.store.write(forget)
    await on_both.world.store.write(end_key, key=maker.key, now=on_both.clock.now())
    assert await runs(on_both, 2) == ["done", "done"]
    one = await listed(on_both)
    assert (one["status"], one["made_with"], one["ends_at"]) == ("active", None, None)
    await on_both.world.caller(organisation=on_both.caller.organisation, role=Role.ADMIN)
    await on_both.world.store.write(
        end_membership, person=on_both.caller.person, organisation=on_both.caller.organisation, now=on_both.clock.now()
    )
    assert await runs(on_both, 2) == []


async def test_a_key_schedules_no_composite_that_it_may_not_call(bureau: Bureau) -> None:
    _, secret = await bureau.world.key(
        bureau.caller.person, bureau.caller.organisation, restrictions=Restrictions(toolsets=("intelligence",))
    )
    async with bureau.world.client(secret) as http:
        answer = await http.post(SCHEDULES, json=DAILY)
    assert (answer.status_code, answer.json()["code"]) == (403, "credential_restricted")
    assert (await bureau.http.get(SCHEDULES)).json()["data"] == []
