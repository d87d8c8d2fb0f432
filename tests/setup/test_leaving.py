"""Who is being removed while a call of theirs is under way: it does nothing any more, on both databases."""

import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
import pytest
import sqlalchemy as sa

from operations.catalogue import CATALOGUE
from operations.setup.api_keys import insert_api_key
from registry.call import Call
from registry.caller import Caller, Role, Tier
from registry.errors import Refusal
from storage.directory import StoreDirectory
from storage.engine.sql import Connection, Query
from tests.stage import opened_on_both
from tests.world import Credentials, World, open_world

MEMBERS, KEYS = "/v1/members", "/v1/api-keys"


class Waiters(NamedTuple):
    waiting: int


world = opened_on_both(open_world, CATALOGUE, faultless=True)


async def caller_of(world: World, who: Credentials) -> Caller:
    """Somebody in a session, found before they leave."""
    directory = world.pipeline.directory
    assert isinstance(directory, StoreDirectory)
    return await directory.signed_in(who.person, who.organisation)


async def late(world: World, operation: str, caller: Caller, **arguments: Any) -> str:
    """What comes of a call whose caller was found before they left."""
    call = Call(CATALOGUE.operations[operation], surface="http", request_id="req_late", caller=caller, arguments=arguments)
    try:
        await world.pipeline.run(call)
    except Refusal as refusal:
        return refusal.error_code
    return "done"


@pytest.mark.cases
@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("create_api_key", {"name": "for later"}),
        ("invite_member", {"email": "me-again@example.com", "role": "admin"}),
        ("remove_member", {}),
    ],
)
async def test_a_call_of_somebody_who_has_just_left_does_nothing(world: World, operation: str, arguments: dict[str, Any]) -> None:
    admin = await world.caller(Tier.PRO)
    gone, other = await world.caller(organisation=admin.organisation), await world.caller(organisation=admin.organisation)
    caller = await caller_of(world, gone)
    async with world.client(admin.secret) as http:
        assert (await http.delete(f"{MEMBERS}/{gone.person}")).status_code == 200
    given = {"id": other.person} if operation == "remove_member" else arguments
    assert await late(world, operation, caller, **given) == "unauthorized"
    await world.join(gone.person, admin.organisation, Role.MEMBER)
    async with world.client(admin.secret) as http:
        members, keys = (await http.get(MEMBERS)).json()["data"], (await http.get(KEYS)).json()["data"]
    assert {row["id"] for row in members} == {admin.person, gone.person, other.person}
    assert {row["status"] for row in keys if row["made_by"]["id"] == gone.person} == {"revoked"}
    assert await world.letters() == []


WAITERS = Query(
    Waiters, sa.select(sa.func.count().label("waiting")).select_from(sa.table("pg_locks")).where(sa.not_(sa.column("granted", sa.Boolean)))
)


@pytest.mark.postgres
async def test_a_key_that_is_being_made_ends_with_the_membership(tmp_path: Path, postgres: str) -> None:
    """The removal begins while the key's row is written and not yet committed."""
    async with open_world(tmp_path, CATALOGUE, url=postgres) as world:
        admin = await world.caller(Tier.PRO)
        gone = await world.caller(organisation=admin.organisation)
        written = threading.Event()
        made = await being_made(world, gone, written)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(made)
            await anyio.to_thread.run_sync(written.wait)
            async with world.client(admin.secret) as http:
                assert (await http.delete(f"{MEMBERS}/{gone.person}")).status_code == 200
        async with world.client(admin.secret) as http:
            keys = (await http.get(KEYS)).json()["data"]
        assert [(row["id"], row["status"]) for row in keys if row["made_by"]["id"] == gone.person] == [
            ("key_zz_new", "revoked"),
            (gone.key_id, "revoked"),
        ]


async def being_made(world: World, who: Credentials, written: threading.Event) -> Callable[[], Coroutine[None, None, None]]:
    """A key whose transaction stays open until somebody waits for it."""

    def keep(connection: Connection, **row: Any) -> None:
        insert_api_key(connection, **row)
        written.set()
        for _ in range(20_000):
            found = connection.first(WAITERS)
            if found is not None and found.waiting:
                return
        raise AssertionError("nobody waits for the key that is being made")

    row = {"digest": b"new", "prefix": "ak_new", "name": "new", "description": None, "expires_at": None, "restrictions": None}
    of = {"organisation": who.organisation, "person": who.person, "made_with": who.key_id, "ids": world.ids, "now": world.clock.now()}

    async def run() -> None:
        await world.store.write(keep, id="key_zz_new", **row, **of)

    return run
