"""Notices become mails on either database: queued once, told once, at most twenty in an hour, in one digest a day."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import orjson

from operations.event_types.catalogue import EVENT_TYPES
from operations.ledger.event_letters import EventMails
from operations.ledger.event_placing import queue_event_mails
from operations.ledger.mail_choices import Unsubscription, default_choice, end_mails, keep_mail_choice
from registry.caller import Role
from registry.limits import Limits
from storage.engine.sql import Connection
from storage.event_log import LogEntry, log_event, place_events
from storage.mail_notices import sweep_notices
from storage.mail_subscriptions import find_mail_choice
from storage.people import claim_address
from tests.schedules.thin import THIN
from tests.stage import opened_on_both
from tests.world import World, open_world


@dataclass
class TwoMailed:
    """An organisation with two admins."""

    world: World
    organisation: str
    people: list[str]

    async def happen(self, type: str, count: int = 1) -> None:
        now, ids = self.world.clock.now(), self.world.ids
        entries = [LogEntry(ids.new("evt_"), self.organisation, type, 1, "{}", None, int(now)) for _ in range(count)]

        def write(connection: Connection) -> None:
            for entry in entries:
                log_event(connection, event=entry)

        def place(connection: Connection) -> int:
            placed = place_events(connection, most=1000)
            assert queue_event_mails(connection, placed, now=now) >= 0
            return queue_event_mails(connection, placed, now=now)

        await self.world.store.write(write)
        assert await self.world.store.write(place) == 0

    async def mailed(self) -> list[str]:
        before = len(await self.world.letters())
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(EventMails(self.world.pipeline.deps).step)
        return sorted(letter.to for letter in (await self.world.letters())[before:])


@asynccontextmanager
async def open_two_mailed(folder: Path, url: str | None = None) -> AsyncGenerator[TwoMailed]:
    async with open_world(folder, THIN, url=url, limits=Limits(burst_enabled=False)) as world:
        organisation, people = await world.organisation(), [await world.person(), await world.person()]
        for number, person in enumerate(people):
            await world.store.write(claim_address, person=person, address=f"{number}@fjord.example")
            await world.join(person, organisation, Role.ADMIN)
        yield TwoMailed(world, organisation, people)


on_both = opened_on_both(open_two_mailed)


async def test_on_both_databases_each_notice_is_one_mail_whoever_makes_it(on_both: TwoMailed) -> None:
    await on_both.happen("invoice.overdue")
    assert await on_both.mailed() == ["0@fjord.example", "1@fjord.example"]
    assert await on_both.mailed() == []


async def test_on_both_databases_an_hour_has_twenty_mails_and_a_day_one_digest(on_both: TwoMailed) -> None:
    world, (first, second) = on_both.world, on_both.people
    choice = default_choice(on_both.organisation, second)._replace(kinds='{"*":"digest"}', changed=int(world.clock.now()))
    await world.store.write(keep_mail_choice, choice=choice, now=world.clock.now())
    await on_both.happen("invoice.overdue", 25)
    assert await on_both.mailed() == ["0@fjord.example"] * 20
    world.clock.advance(86_400)
    assert await on_both.mailed() == ["1@fjord.example"]
    await on_both.happen("invoice.overdue")
    await world.store.write(end_mails, what=Unsubscription(on_both.organisation, first, "invoice.overdue"), now=world.clock.now())
    assert await on_both.mailed() == []
    world.clock.advance(86_400)
    assert await on_both.mailed() == ["1@fjord.example"]
    world.clock.advance(8 * 86_400)
    assert await world.store.write(sweep_notices, before=world.clock.now() - 7 * 86_400, most=1000) == 52


async def test_on_both_databases_links_of_several_kinds_that_are_used_at_once_all_count(on_both: TwoMailed) -> None:
    world, (first, _) = on_both.world, on_both.people
    kinds = [name for name in EVENT_TYPES if name.startswith(("esim.", "line.", "order."))]

    async def follow(kind: str) -> None:
        await world.store.write(end_mails, what=Unsubscription(on_both.organisation, first, kind), now=world.clock.now())

    async with anyio.create_task_group() as tasks:
        for kind in kinds:
            tasks.start_soon(follow, kind)
    chosen = await world.store.read(find_mail_choice, organisation=on_both.organisation, person=first)
    assert chosen is not None and orjson.loads(chosen.kinds) == dict.fromkeys(kinds, "off")
