"""What operations of intelligence are about, and what documented inputs name of it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from operations.secret_tokens import new_secret_token, secret_digest
from registry.caller import Tier
from storage.schedule_reports import ask_report
from storage.schedules import NewSchedule, insert_schedule
from tests.world import Credentials, World

Input = dict[str, Any]


async def schedule(world: World, who: Credentials) -> Input:
    id, now = world.ids.new("sch_"), world.clock.now()
    row = NewSchedule(
        id, who.organisation, "fleet_health", "{}", "0 6 * * *", "UTC", None, None, who.person, int(now + 3600) * 1000, int(now)
    )
    await world.store.write(insert_schedule, schedule=row, endpoint=None)
    return {"id": id}


async def report(world: World, who: Credentials) -> Input:
    """The same, and a report that waits is named."""
    made, report = await schedule(world, who), world.ids.new("rep_")
    await world.store.write(ask_report, id=report, schedule=made["id"], organisation=who.organisation, now=world.clock.now())
    return {**made, "report": report}


async def shared(world: World, who: Credentials) -> Input:
    """A share link whose first report is not finished yet: of somebody who may have one, whoever opens it."""
    del who
    id, token, now = world.ids.new("sch_"), new_secret_token(world.ids), world.clock.now()
    owner, day = await world.caller(Tier.PRO), "0 6 * * *"
    row = NewSchedule(id, owner.organisation, "fleet_health", "{}", day, "UTC", None, secret_digest(token), owner.person, 2**62, int(now))
    await world.store.write(insert_schedule, schedule=row, endpoint=None)
    return {"token": token}


INTELLIGENCE: Mapping[str, Callable[[World, Credentials], Awaitable[Input]]] = {
    "delete_intelligence_schedule": schedule,
    "run_intelligence_schedule": schedule,
    "get_intelligence_schedule_report": report,
    "get_intelligence_share": shared,
}
