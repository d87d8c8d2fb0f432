"""What operations on change sets are about: a set of one line, as it stands before it is applied, or behind it."""

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from storage.change_rows import ChangeRow, insert_planned_set
from storage.change_sets import PLAN_SECONDS, ChangeSet
from tests.contract.fleet import DOCUMENTED_ICCID
from tests.world import Credentials, World

Input = dict[str, Any]
DIGEST = "3b8f5a1c0d9e7b624f8a1c3d5e7f90b2a4c6d8e0f1a3b5c7d9e1f3a5b7c9d1e3"
STEPS = f'[["modify_subscriber_status",{{"iccid":"{DOCUMENTED_ICCID}","status":"SUSPENDED"}}]]'


async def planned_set(world: World, who: Credentials) -> Input:
    """A set that can be applied."""
    return await stored_set(world, who, state="planned")


async def plan_with_digest(world: World, who: Credentials) -> Input:
    return {**await planned_set(world, who), "digest": DIGEST}


async def applied_set(world: World, who: Credentials) -> Input:
    """A set that changed its line."""
    return await stored_set(world, who, state="applied")


async def stored_set(world: World, who: Credentials, *, state: str) -> Input:
    id, now, done = world.ids.new("chg_"), world.clock.now(), state == "applied"
    row = ChangeRow(
        number=1, iccid=DOCUMENTED_ICCID, subscriber_id=1, account_id=1, state="done" if done else "planned", before='{"status":"ACTIVE"}',
        after='{"status":"SUSPENDED"}', steps=STEPS, step=0, irreversible=0, cost=0, result="{}", code="", reason="",
        sent_at=now if done else 0.0, settled_at=now if done else 0.0,
    )  # fmt: skip
    found = ChangeSet(
        id=id, organisation=who.organisation, state=state, action="set_status", change='{"action":"set_status","status":"SUSPENDED"}',
        lines="", line_count=1, undo_of="", actor_kind="key", principal=who.person, credential=who.key_id, approver="",
        created=math.floor(now), position=1, digest=DIGEST, planned_at=now, expires_at=math.floor(now) + PLAN_SECONDS,
        applied_at=now if done else 0.0, finished_at=now if done else 0.0, planned=1, skipped=0, sent=int(done), done=int(done), failed=0,
        unknown=0, not_sent=0, irreversible=0, cost=0, largest_cost=0, stop="", charged="", lease="", lease_until=0.0, served=0.0, due=0.0,
    )  # fmt: skip
    await world.store.write(insert_planned_set, row=found, rows=[row])
    return {"id": id}


CHANGE_INPUTS: Mapping[str, Callable[[World, Credentials], Awaitable[Input]]] = {
    "get_change_set": planned_set,
    "apply_changes": plan_with_digest,
    "cancel_change_set": planned_set,
    "undo_changes": applied_set,
}
