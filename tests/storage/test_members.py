"""Memberships, invitations, keys and the audit log, on both databases, with others at the same moment."""

import anyio

from operations.setup.members import accept_invitation
from registry.clock import SystemClock
from registry.errors import NotFound
from registry.ids import SystemIds
from registry.ports import AuditRecord
from storage.api_keys import end_key, end_keys_made_with, insert_key, list_keys
from storage.audit import AuditFilter, NumberedAuditRecord, append_audit_reads, append_audit_record, list_audit
from storage.engine.sql import Connection
from storage.engine.store import Store
from storage.invitations import StoredInvitation, invitations_for, put_invitation
from storage.members import end_membership, is_member, list_people, member_with_address
from storage.organisations import add_member, create_organisation
from storage.people import create_person

ORG, NOW, ANY = "org_1", 1_800_000_000.0, AuditFilter()


def furnish(connection: Connection, *, admins: list[str]) -> None:
    create_organisation(connection, id=ORG, name="One", tier="pro", now=NOW)
    for admin in admins:
        create_person(connection, id=admin, now=NOW, email=f"{admin}@Example.com")
        add_member(connection, person=admin, organisation=ORG, role="admin", now=NOW)


def key(connection: Connection, *, id: str, made_with: str | None) -> None:
    insert_key(
        connection, id=id, digest=id.encode(), prefix="ak_", organisation=ORG, person="usr_1", name="k", now=NOW, made_with=made_with
    )


def invited(connection: Connection, *, id: str) -> StoredInvitation:
    return put_invitation(
        connection, id=id, organisation=ORG, address="a@b.se", role="member", invited_by="usr_1", now=NOW, expires_at=NOW + 9
    )


async def test_of_any_number_of_admins_removed_at_once_one_stays(store: Store) -> None:
    admins = [f"usr_{number}" for number in range(6)]
    await store.write(furnish, admins=admins)
    removed: list[bool] = []

    async def remove(person: str) -> None:
        removed.append(await store.write(end_membership, person=person, organisation=ORG, now=NOW))

    async with anyio.create_task_group() as group:
        for admin in admins:
            group.start_soon(remove, admin)
    assert sorted(removed) == [False] + [True] * 5
    left = [admin for admin in admins if await store.read(is_member, person=admin, organisation=ORG)]
    assert len(left) == 1


async def test_members_come_before_invitations_and_pages_go_on(store: Store) -> None:
    await store.write(furnish, admins=["usr_1", "usr_2"])
    for number in (1, 2):
        await store.write(
            put_invitation,
            id=f"ivt_{number}",
            organisation=ORG,
            address=f"a{number}@b.se",
            role="member",
            invited_by="usr_1",
            now=NOW,
            expires_at=NOW + number,
        )
    everybody = await store.read(list_people, organisation=ORG, now=NOW, after=None, most=9)
    assert [(row.id, row.role, row.active) for row in everybody] == [
        ("usr_2", "admin", 1),
        ("usr_1", "admin", 1),
        ("ivt_2", "member", 0),
        ("ivt_1", "member", 0),
    ]
    rest = await store.read(list_people, organisation=ORG, now=NOW + 1, after="usr_1", most=9)
    assert [row.id for row in rest] == ["ivt_2"]
    found = await store.read(member_with_address, organisation=ORG, address="usr_1@example.com")
    assert found is not None and found.id == "usr_1"
    assert await store.read(member_with_address, organisation=ORG, address="a1@b.se") is None


async def test_an_invitation_is_accepted_once(store: Store) -> None:
    await store.write(furnish, admins=["usr_1"])
    await store.write(create_person, id="usr_9", now=NOW)
    first, second = [await store.write(invited, id=id) for id in ("ivt_1", "ivt_2")]
    assert first.id == second.id == "ivt_1"
    assert [row.id for row in await store.read(invitations_for, address="a@b.se", now=NOW)] == ["ivt_1"]
    done, ids = list[str](), SystemIds(SystemClock())

    async def join() -> None:
        try:
            done.append(await store.write(accept_invitation, invitation="ivt_1", person="usr_9", address="a@b.se", ids=ids, now=NOW))
        except NotFound:
            done.append("not found")

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(join)
    assert sorted(done) == ["not found", "not found", ORG]


async def test_keys_end_with_what_they_were_made_with_to_the_last_generation(store: Store) -> None:
    await store.write(furnish, admins=["usr_1"])
    for id, maker in (("key_1", None), ("key_2", "key_1"), ("key_3", "key_2"), ("key_4", "key_3"), ("key_5", None), ("key_6", "gnt_1")):
        await store.write(key, id=id, made_with=maker)
    assert await store.write(end_key, key="key_2", now=NOW)
    assert not await store.write(end_key, key="key_2", now=NOW + 5)
    assert await store.write(end_keys_made_with, credential="gnt_1", now=NOW) == 1
    rows = await store.read(list_keys, organisation=ORG)
    assert {row.id: row.revoked_at for row in rows if row.revoked_at is not None} == dict.fromkeys(
        ("key_2", "key_3", "key_4", "key_6"), int(NOW)
    )


async def test_each_filter_of_the_audit_log_narrows_it(store: Store) -> None:
    await store.write(furnish, admins=["usr_1"])
    lines = [
        AuditRecord(NOW + 0, ORG, "http", "read", "usr_1", "key_1", "ok", 200, 1.5, "req_0"),
        AuditRecord(NOW + 1, ORG, "mcp", "write", "usr_1", "", "not_found", 404, 1.5, "req_1"),
        AuditRecord(NOW + 2, ORG, "http", "write", "usr_2", "", "ok", 200, 1.5, "req_2"),
        AuditRecord(NOW + 3, "org_2", "http", "write", "usr_1", "", "ok", 200, 1.5, "req_3"),
    ]
    # The order in which they are written does not matter, nor whether a row is whole.
    numbered = [NumberedAuditRecord(place, line) for place, line in enumerate(lines)]
    await store.write(append_audit_reads, lines=[numbered[3], numbered[1]])
    await store.write(append_audit_record, line=lines[2])
    await store.write(append_audit_reads, lines=numbered[:1])

    async def found(wanted: AuditFilter = ANY, after: int | None = None) -> list[str] | None:
        rows = await store.read(list_audit, organisation=ORG, wanted=wanted, after=after, most=9)
        return None if rows is None else [row.request_id for row in rows]

    assert await found() == ["req_2", "req_1", "req_0"]
    assert await found(AuditFilter(operation="write")) == ["req_2", "req_1"]
    assert await found(AuditFilter(operation="write", principal="usr_1", outcome="not_found", surface="mcp")) == ["req_1"]
    assert await found(AuditFilter(surface="http", principal="usr_1")) == ["req_0"]
    assert await found(AuditFilter(key_id="key_1")) == ["req_0"] and await found(AuditFilter(key_id="key_2")) == []
    assert await found(AuditFilter(since=NOW + 1, until=NOW + 2)) == ["req_1"]
    rows = await store.read(list_audit, organisation=ORG, wanted=AuditFilter(), after=None, most=2)
    assert rows is not None and await found(after=rows[-1].id) == ["req_0"]
    seen = list[str]()
    page = await store.read(list_audit, organisation=ORG, wanted=AuditFilter(), after=None, most=1)
    while page:
        seen.append(page[0].request_id)
        page = await store.read(list_audit, organisation=ORG, wanted=AuditFilter(), after=page[0].id, most=1)
    assert seen == ["req_2", "req_1", "req_0"]
    foreign = await store.read(list_audit, organisation="org_2", wanted=AuditFilter(), after=None, most=2)
    assert foreign is not None and await found(after=foreign[0].id) is None


REQUESTS = [
    "req_" + "0" * 26,
    "req_7zzzzzzzzzzzzzzzzzzzzzzzzz",
    "req_80000000000000000000000000",
    "req_1",
    "req_0ilou000000000000000000000",
    "req_0ABC0000000000000000000000",
    "req_0_1_000000000000000000000 ",
    "req_\u0660" + "0" * 25,
    "sixteen letters ",
    "né",
    "x" * 16,
    "y" * 15,
]


async def test_a_read_in_short_says_all_that_a_whole_row_says(store: Store) -> None:
    await store.write(furnish, admins=["usr_1"])
    lines = [AuditRecord(NOW + place, ORG, "mcp", "get_x", "usr_1", "key_1", "ok", 200, 12.345, id) for place, id in enumerate(REQUESTS)]
    await store.write(append_audit_reads, lines=[NumberedAuditRecord(place, line) for place, line in enumerate(lines)])
    rows = await store.read(list_audit, organisation=ORG, wanted=AuditFilter(), after=None, most=99)
    assert rows is not None
    assert [AuditRecord(row.at, ORG, *row[2:5], row.key_id, *row[7:]) for row in rows][::-1] == lines


async def test_reads_of_one_moment_keep_their_order_and_none_is_lost_or_written_twice(store: Store) -> None:
    lines = [
        NumberedAuditRecord(place, AuditRecord(NOW, ORG, "http", "get_x", "usr_1", "", "ok", 200, 1.0, f"req_{place}"))
        for place in range(40)
    ]
    for _ in range(2):
        await store.write(append_audit_reads, lines=lines)
    rows = await store.read(list_audit, organisation=ORG, wanted=AuditFilter(), after=None, most=99)
    assert rows is not None and [row.request_id for row in rows][::-1] == [each.line.request_id for each in lines]
