"""Browser sessions, on both databases."""

from storage.browser_sessions import (
    count_browser_sessions,
    end_browser_session,
    end_browser_sessions,
    find_browser_session,
    insert_browser_session,
    sweep_browser_sessions,
    switch_browser_session,
    touch_browser_session,
)
from storage.engine.sql import Connection
from storage.engine.store import Store
from storage.people import create_person


def stage(connection: Connection) -> None:
    """Ada with two browsers, Bob with one; all begun at 1000, seen then, good until 2000."""
    for person in ("usr_ada", "usr_bob"):
        create_person(connection, id=person, now=0)
    for digest, person in ((b"1", "usr_ada"), (b"2", "usr_ada"), (b"3", "usr_bob")):
        insert_browser_session(
            connection, digest=digest, id=f"bse_{digest.decode()}", person=person, organisation=None, now=1000, expires_at=2000
        )


async def test_a_session_is_found_until_it_expires_or_was_not_seen_for_too_long(store: Store) -> None:
    await store.write(stage)
    found = await store.read(find_browser_session, digest=b"1", now=1999, idle=999)
    assert found is not None and (found.person_id, found.organisation_id, found.seen) == ("usr_ada", None, 1000)
    assert await store.read(find_browser_session, digest=b"1", now=2000, idle=999) is None
    assert await store.read(find_browser_session, digest=b"1", now=1999, idle=1000) is None
    assert await store.read(find_browser_session, digest=b"4", now=1000, idle=0) is None


async def test_a_use_is_noted_unless_that_was_done_lately_or_comes_too_late(store: Store) -> None:
    await store.write(stage)
    await store.write(touch_browser_session, digest=b"1", now=1100, noted=999, idle=0)
    await store.write(touch_browser_session, digest=b"2", now=1100, noted=1000, idle=1000)
    await store.write(touch_browser_session, digest=b"3", now=1100, noted=1000, idle=0)
    seen = [await store.read(find_browser_session, digest=digest, now=1100, idle=0) for digest in (b"1", b"2", b"3")]
    assert [one.seen for one in seen if one is not None] == [1000, 1000, 1100]


async def test_sessions_are_switched_counted_and_ended(store: Store) -> None:
    await store.write(stage)
    assert await store.write(switch_browser_session, digest=b"1", organisation="org_1")
    found = await store.read(find_browser_session, digest=b"1", now=1100, idle=0)
    assert found is not None and found.organisation_id == "org_1"
    assert await store.read(count_browser_sessions, person="usr_ada", now=1100, idle=0) == 2
    assert await store.read(count_browser_sessions, person="usr_ada", now=2000, idle=0) == 0
    assert await store.write(end_browser_session, digest=b"1")
    assert not await store.write(end_browser_session, digest=b"1")
    assert await store.write(end_browser_sessions, person="usr_ada") == 1
    assert await store.read(count_browser_sessions, person="usr_bob", now=1100, idle=0) == 1


async def test_those_that_have_ended_by_themselves_are_swept(store: Store) -> None:
    await store.write(stage)
    await store.write(touch_browser_session, digest=b"2", now=1500, noted=1400, idle=0)
    assert await store.write(sweep_browser_sessions, now=1600, idle=1400) == 2
    assert await store.read(find_browser_session, digest=b"2", now=1600, idle=1400) is not None
    assert await store.write(sweep_browser_sessions, now=2000, idle=1400) == 1
