"""The log: places in the order of commits, streams behind a cursor, and how long it is kept."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from operations.event_types.endpoint import ORGANISATION_ENDPOINT_DISABLED
from operations.event_types.esim import ESIM_FIRST_ATTACH, ESIM_ISSUED
from operations.event_types.order import ORDER_READY
from operations.ledger.event_placing import EventPlacing
from registry.caller import Restrictions, Role
from storage.engine.database_url import conninfo
from storage.engine.sql import Connection
from storage.event_log import LogEntry, log_event, log_events, place_events, sweep_event_log
from tests.events.log_office import STREAM, LogOffice, open_log_office, types_of
from tests.http.test_server import serving

KNOWN, OTHER = "8999012345678901237", "8999012345678901238"


async def test_events_have_their_places_in_the_order_of_their_commits(on_both: LogOffice) -> None:
    written = [await on_both.write(ESIM_ISSUED, intent=f"cni_{number}") for number in range(3)]
    assert types_of(await on_both.stream()) == []
    assert await on_both.place() == 3
    found = await on_both.stream()
    assert [(each["id"], each["data"]["id"]) for each in found[:3]] == [(str(place), id) for place, id in enumerate(written, 1)]
    assert found[3] == {"event": "end", "data": {"reason": "done", "cursor": "3"}}
    assert [each["data"]["id"] for each in (await on_both.stream(cursor="2"))[:1]] == written[2:]


@pytest.mark.long
@pytest.mark.postgres
async def test_what_is_committed_later_stands_behind_what_was_read(tmp_path: Path, postgres: str) -> None:
    """SQLite has one writer: nothing can be open beside it."""
    async with open_log_office(tmp_path, postgres) as office:
        columns = "(id, organisation, type, livemode, data, created)"
        insert = f"insert into event_log {columns} values ('evt_0000000000early', %s, 'esim.issued', 1, '{{}}', 1)"
        with psycopg.connect(conninfo(postgres)) as held:
            held.execute(insert, (office.organisation,))
            late = await office.write(ESIM_ISSUED)
            await office.place()
            assert [each["data"]["id"] for each in (await office.stream())[:1]] == [late]
            held.commit()
        await office.place()
        assert [each["data"]["id"] for each in await office.stream(cursor="1") if "id" in each] == ["evt_0000000000early"]


async def test_workers_that_place_at_once_count_every_event_once(on_both: LogOffice) -> None:
    others = [EventPlacing(on_both.world.pipeline.deps) for _ in range(3)]
    for number in range(60):
        await on_both.write(ESIM_ISSUED, intent=f"cni_{number}")
    await asyncio.gather(*(each.step() for each in others))
    places = [int(each["id"]) for each in await on_both.stream() if "id" in each]
    assert places == list(range(1, 61))


@asynccontextmanager
async def live_stream(office: LogOffice, secret: str, *lines: str) -> AsyncGenerator[asyncio.StreamReader]:
    """A stream over a real connection, which buffers nothing."""
    head = [f"GET {STREAM} HTTP/1.1", "Host: reseller.test", f"Authorization: Bearer {secret}", *lines, "", ""]
    async with serving(office.world.door, office.world) as server:
        reader, writer = await server.connect()
        writer.write("\r\n".join(head).encode())
        try:
            begun = await reader.readuntil(b": events\n\n")
            assert b"content-type: text/event-stream" in begun and b"x-accel-buffering: no" in begun
            yield reader
        finally:
            writer.close()


async def test_a_reader_who_waits_is_told_soon_and_goes_on_behind_the_last_event_it_got(office: LogOffice) -> None:
    await office.write(ESIM_ISSUED)
    await office.place()
    async with live_stream(office, office.office.caller.secret, "Last-Event-ID: 1") as reader, asyncio.timeout(20):
        second = await office.write(ESIM_ISSUED, intent="cni_2")
        await office.place()
        told = (await reader.readuntil(b"\n\n")).decode()
    assert "id: 2\n" in told and second in told


async def test_a_stream_has_the_types_that_are_asked_for_and_moves_on_past_the_others(office: LogOffice) -> None:
    await office.write(ESIM_ISSUED)
    await office.write(ESIM_FIRST_ATTACH)
    await office.write(ORGANISATION_ENDPOINT_DISABLED)
    await office.place()
    found = await office.stream(types="esim.first_*,organisation.*")
    assert types_of(found) == ["esim.first_attach", "organisation.endpoint_disabled"]
    only = await office.stream(types="esim.issued")
    assert types_of(only) == ["esim.issued"] and only[-2:] == [{"id": "3"}, {"event": "end", "data": {"reason": "done", "cursor": "3"}}]
    answer = await office.http.get(STREAM, params={"types": "ordre.*"})
    assert answer.status_code == 400 and "list_event_types" in answer.json()["hint"]


async def test_a_reader_of_a_rare_type_passes_over_a_thousand_others_at_once(on_both: LogOffice) -> None:
    def write(connection: Connection) -> None:
        common = [LogEntry(f"evt_{number:04}", on_both.organisation, "order.paid", 1, "{}", None, 1) for number in range(1, 1051)]
        log_events(connection, events=common)

    await on_both.world.store.write(write)
    rare = await on_both.write(ESIM_ISSUED)
    while await on_both.place():
        pass
    first, found, end = await on_both.stream(types="esim.*")
    assert (first, found["id"], found["data"]["id"]) == ({"id": "1000"}, "1051", rare)
    assert end == {"event": "end", "data": {"reason": "done", "cursor": "1051"}}
    *common, end = await on_both.stream(types="order.*")
    assert [each["id"] for each in common] == [str(place) for place in range(1, 1001)]
    assert end == {"event": "end", "data": {"reason": "more", "cursor": "1000"}}


async def test_a_reader_sees_what_it_could_read_now(office: LogOffice) -> None:
    world = office.world
    await office.write(ESIM_ISSUED, iccid=KNOWN)
    await office.write(ESIM_ISSUED, iccid=OTHER)
    await office.write(ORDER_READY, iccid=KNOWN)  # who is held to lines may not read orders
    await office.write(ORGANISATION_ENDPOINT_DISABLED)
    await office.write(ESIM_ISSUED, organisation=(await world.caller()).organisation)
    await office.place()
    member = await world.caller(role=Role.MEMBER, organisation=office.organisation)
    _, of_line = await world.key(office.office.caller.person, office.organisation, restrictions=Restrictions(iccids=(KNOWN,)))
    _, of_shops = await world.key(
        office.office.caller.person, office.organisation, restrictions=Restrictions(toolsets=("storefronts", "events"))
    )
    _, of_account = await world.key(office.office.caller.person, office.organisation, restrictions=Restrictions(account_ids=(8101,)))
    expected = {
        office.office.caller.secret: ["esim.issued", "esim.issued", "order.ready", "organisation.endpoint_disabled"],
        member.secret: ["esim.issued", "esim.issued", "order.ready"],
        of_line: ["esim.issued"],
        of_shops: ["order.ready"],
        of_account: [],
    }
    for secret, types in expected.items():
        async with world.client(secret) as http:
            assert types_of(await office.stream(http)) == types


@pytest.mark.long
async def test_a_stream_ends_when_its_credential_does(office: LogOffice) -> None:
    key, secret = await office.world.key(office.office.caller.person, office.organisation)
    async with live_stream(office, secret) as reader, asyncio.timeout(20):
        await office.write(ESIM_ISSUED)
        await office.place()
        assert b"esim.issued" in await reader.readuntil(b"\n\n")
        revoked = await office.http.delete(f"/v1/api-keys/{key}")
        assert revoked.status_code == 200, revoked.text
        office.world.clock.advance(31)
        await office.write(ESIM_ISSUED, intent="cni_9")
        await office.place()
        rest = await reader.readuntil(b"}\n\n")
    assert b"credential_ended" in rest and b"cni_9" not in rest


async def test_a_cursor_behind_what_is_kept_says_so(on_both: LogOffice) -> None:
    for number in range(3):
        await on_both.write(ESIM_ISSUED, intent=f"cni_{number}")
    await on_both.place()
    on_both.world.clock.advance(90 * 86_400 + 60)
    kept = await on_both.write(ESIM_ISSUED, intent="cni_3")
    await on_both.place()
    before = on_both.world.clock.now() - 90 * 86_400
    assert await on_both.world.store.write(sweep_event_log, before=before, most=2) == 2
    assert await on_both.world.store.write(sweep_event_log, before=before, most=2) == 1
    assert await on_both.world.store.write(sweep_event_log, before=before, most=2) == 0
    answer = await on_both.http.get(STREAM, params={"cursor": "2", "follow": "false"})
    assert (answer.status_code, answer.json()["code"]) == (409, "cursor_too_old")
    assert "go on from 3" in answer.json()["hint"]
    assert [each["data"]["id"] for each in (await on_both.stream(cursor="3"))[:1]] == [kept]
    ahead = await on_both.http.get(STREAM, params={"cursor": "9", "follow": "false"})
    assert (ahead.status_code, ahead.json()["param"]) == (400, "cursor")
    words = await on_both.http.get(STREAM, params={"follow": "false"}, headers={"last-event-id": "evt_1"})
    assert (words.status_code, words.json()["param"]) == (400, "Last-Event-ID")


async def test_what_happens_after_everything_was_swept_has_the_next_places(on_both: LogOffice) -> None:
    for number in range(4):
        await on_both.write(ESIM_ISSUED, intent=f"cni_{number}")
    await on_both.place()
    on_both.world.clock.advance(90 * 86_400 + 60)
    assert await on_both.world.store.write(sweep_event_log, before=on_both.world.clock.now() - 60, most=9) == 4
    written = [await on_both.write(ESIM_ISSUED, intent=f"cni_{number}") for number in range(4, 7)]
    assert await on_both.place() == 3
    assert [(each["id"], each["data"]["id"]) for each in (await on_both.stream(cursor="4"))[:3]] == list(zip("567", written, strict=True))


async def test_events_of_a_line_are_counted_without_gaps_in_each_organisation(on_both: LogOffice) -> None:
    ids, other = on_both.world.ids, (await on_both.world.caller()).organisation
    for number, (organisation, line) in enumerate([(on_both.organisation, KNOWN), (on_both.organisation, OTHER), (other, KNOWN)] * 2):
        event = LogEntry(ids.new("evt_"), organisation, "line.moved", 1, "{}", line, number)
        await on_both.world.store.write(log_event, event=event)
    await on_both.write(ESIM_ISSUED, iccid=KNOWN)
    placed = await on_both.world.store.write(place_events, most=4) + await on_both.world.store.write(place_events, most=10)
    mine = [(event.line, event.line_number) for event in placed if event.organisation == on_both.organisation]
    assert mine == [(KNOWN, 1), (OTHER, 1), (KNOWN, 2), (OTHER, 2), (KNOWN, None)]
    assert [event.line_number for event in placed if event.organisation == other] == [1, 2]


async def test_a_list_with_types_is_newest_first_and_goes_on_after_an_id(on_both: LogOffice) -> None:
    written = [await on_both.write(kind) for kind in [ESIM_ISSUED, ORGANISATION_ENDPOINT_DISABLED, ESIM_FIRST_ATTACH] * 10]
    await on_both.place()
    path = "/v1/connectivity/events"
    first = (await on_both.http.get(path, params={"types": "*"})).json()
    assert ([each["id"] for each in first["data"]], first["has_more"]) == (written[:9:-1], True)
    rest = (await on_both.http.get(path, params={"types": "*", "starting_after": written[10]})).json()
    assert ([each["id"] for each in rest["data"]], rest["has_more"]) == (written[9::-1], False)
    some = (await on_both.http.get(path, params={"types": "organisation.*", "limit": 3})).json()
    assert [each["id"] for each in some["data"]] == [written[28], written[25], written[22]]
    one = await on_both.http.get(f"{path}/{written[1]}")
    assert one.json()["type"] == "organisation.endpoint_disabled"
    both = await on_both.http.get(path, params={"types": "*", "intent": "cni_1"})
    assert (both.status_code, both.json()["param"]) == (400, "intent")
