"""The postman: what becomes of queued mails, whatever the server, the processes and the keys do."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

import anyio
import anyio.lowlevel
import pytest
import sqlalchemy as sa

from clients.mail.letter import Letter, MailFailed, MailTransport
from clients.mail.smtp import SmtpMail, smtp_settings
from operations.letters import queue_letter, seal_letter
from registry.errors import StoreUnavailable
from storage.engine.sql import Command, Connection, Query
from storage.engine.store import Store, open_store
from storage.mail import MAIL, drop_mail
from storage.sealing import Keyring, new_key_setting
from tests.databases import migrated_sqlite
from tests.mail.office import open_server
from tests.mail_catcher import MailCatcher
from tests.world import CountingIds, SettableClock
from tests.wrapped_store import WrappedStore
from transports.worker.mailer import MAIL_BATCH, MAIL_RETRY_SECONDS, Mailer

P = ParamSpec("P")
T = TypeVar("T")
HOUR = 3600.0


class Left(NamedTuple):
    id: str
    attempts: int


LEFT = Query(Left, sa.select(MAIL.c.id, MAIL.c.attempts).order_by(MAIL.c.id))
SPOIL = Command(sa.update(MAIL).where(MAIL.c.id == sa.bindparam("named")).values(sealed=sa.bindparam("text")))


@dataclass
class Desk:
    """A queue, and what stands around it."""

    store: Store
    clock: SettableClock
    ids: CountingIds
    keyring: Keyring
    reports: list[str] = field(default_factory=list[str])

    async def queue(self, to: str, *, seconds: float = 600, keyring: Keyring | None = None) -> str:
        letter = Letter(to, "Your code", f"The code for {to} is\n\n482913\n")
        expires_at = self.clock.now() + seconds
        sealed = seal_letter(letter, ids=self.ids, keyring=keyring or self.keyring, expires_at=expires_at)
        await self.store.write(queue_letter, sealed, self.clock)
        return sealed.id

    def postman(self, transport: MailTransport, *, store: Store | None = None) -> Mailer:
        return Mailer(
            store=store or self.store,
            keyring=self.keyring,
            clock=self.clock,
            ids=self.ids,
            transport=transport,
            report=self.reports.append,
        )

    async def left(self) -> list[Left]:
        return await self.store.read(lambda connection: connection.all(LEFT))


@asynccontextmanager
async def open_desk(url: str) -> AsyncGenerator[Desk]:
    store, clock = open_store(url), SettableClock()
    ids = CountingIds(clock)
    try:
        yield Desk(store, clock, ids, Keyring(new_key_setting(ids.bytes), ids.bytes))
    finally:
        await store.aclose()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_desk(migrated_sqlite(tmp_path)) as desk:
        yield desk
        assert [report for report in desk.reports if "@" in report or "482913" in report] == []


@pytest.fixture
async def either(tmp_path: Path, database_url: str | None) -> AsyncGenerator[Desk]:
    async with open_desk(database_url or migrated_sqlite(tmp_path)) as desk:
        yield desk


class Slow(MailCatcher):
    """Lets others go first."""

    async def send(self, letter: Letter, id: str) -> None:
        await anyio.lowlevel.checkpoint()
        await super().send(letter, id)


class Away:
    """A server that is not there."""

    def __init__(self) -> None:
        self.tried = 0

    async def send(self, letter: Letter, id: str) -> None:
        self.tried += 1
        raise MailFailed("the mail server could not be reached")

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_two_postmen_at_one_queue_send_each_mail_once(either: Desk) -> None:
    wanted = [f"a{number:02}@x.example" for number in range(45)]
    for to in wanted:
        await either.queue(to)
    one, other = Slow(), Slow()
    async with anyio.create_task_group() as tasks:
        for transport in (one, other, one, other):
            tasks.start_soon(either.postman(transport).deliver)
    assert sorted(letter.to for letter in one.letters + other.letters) == wanted
    assert await either.left() == []


async def test_mails_are_sent_in_the_order_in_which_they_were_queued(either: Desk) -> None:
    for number in range(25):
        await either.queue(f"a{number:02}@x.example")
    catcher = MailCatcher()
    assert await either.postman(catcher).deliver() == 25
    assert [letter.to for letter in catcher.letters] == [f"a{number:02}@x.example" for number in range(25)]


async def test_what_a_server_refuses_for_now_is_sent_later_and_once(desk: Desk) -> None:
    id = await desk.queue("ada@fjord.example")
    async with open_server() as office:
        office.replies["RCPT"] = ["450 ada@fjord.example is greylisted", "451 not yet"]
        smtp = SmtpMail(smtp_settings(f"smtp://127.0.0.1:{office.port}", "noreply@esim.example"), desk.clock)
        postman = desk.postman(smtp)
        sent: list[int] = []
        for pause in (0.0, 4.9, 0.2, 30.0, 900.0):
            desk.clock.advance(pause)
            sent.append(await postman.deliver())
    assert (sent, office.recipients) == ([0, 0, 0, 1, 0], ["ada@fjord.example"])
    assert desk.reports == [
        f"{id} is tried again: the mail server refused the recipient (450)",
        f"{id} is tried again: the mail server refused the recipient (451)",
    ]


async def test_what_a_server_refuses_for_good_is_given_up(desk: Desk) -> None:
    id = await desk.queue("nobody@fjord.example")
    async with open_server() as office:
        office.replies["RCPT"] = ["550 no nobody@fjord.example here"]
        smtp = SmtpMail(smtp_settings(f"smtp://127.0.0.1:{office.port}", "noreply@esim.example"), desk.clock)
        postman = desk.postman(smtp)
        refused = await postman.deliver()
        await desk.queue("ada@fjord.example")  # two at once would reach the server in any order
        assert (refused, await postman.deliver()) == (0, 1)
    assert await desk.left() == []
    assert desk.reports == [f"{id} is given up: the mail server refused the recipient (550)"]


async def test_a_mail_that_is_good_for_days_outlives_a_server_that_is_away_for_a_night(desk: Desk) -> None:
    await desk.queue("ada@fjord.example", seconds=7 * 24 * HOUR)
    away, catcher = Away(), MailCatcher()
    for _ in range(48):
        assert await desk.postman(away).deliver() == 0
        desk.clock.advance(MAIL_RETRY_SECONDS[-1])
    assert await desk.postman(catcher).deliver() == 1
    assert (away.tried, len(catcher.letters)) == (48, 1)


async def test_a_mail_is_not_sent_when_what_it_says_is_not_true_any_more(desk: Desk) -> None:
    late, id = await desk.queue("late@x.example"), await desk.queue("good@x.example", seconds=601)
    desk.clock.advance(600)
    catcher = MailCatcher()
    assert await desk.postman(catcher).deliver() == 1
    assert [letter.to for letter in catcher.letters] == ["good@x.example"]
    assert desk.reports == [f"{late} is given up: a mail was not sent in the time it was good for"] and id not in desk.reports[0]


async def test_while_the_server_is_away_only_some_mails_are_tried_each_round(desk: Desk) -> None:
    for number in range(3 * MAIL_BATCH):
        await desk.queue(f"a{number}@x.example")
    away = Away()
    await desk.postman(away).deliver()
    assert away.tried == MAIL_BATCH
    assert [mail.attempts for mail in await desk.left()].count(0) == 2 * MAIL_BATCH


async def test_changed_mails_are_given_up_those_of_an_unknown_key_wait_and_the_others_are_sent(desk: Desk) -> None:
    other = Keyring(new_key_setting(desk.ids.bytes), desk.ids.bytes)
    foreign = [await desk.queue(f"a{number}@x.example", keyring=other) for number in range(MAIL_BATCH + 1)]
    spoilt, moved, empty = [await desk.queue(f"{name}@x.example") for name in ("spoilt", "moved", "empty")]
    await desk.queue("good@x.example")
    sealed = desk.keyring.seal("{}", org_id="service", field="mail|another")
    await desk.store.write(spoil, named=spoilt, text="not sealed at all")
    await desk.store.write(spoil, named=moved, text=sealed)
    await desk.store.write(spoil, named=empty, text=desk.keyring.seal("{}", org_id="service", field=f"mail|{empty}"))
    catcher = MailCatcher()
    assert await desk.postman(catcher).deliver() == 1
    assert [letter.to for letter in catcher.letters] == ["good@x.example"]
    given_up = [f"{id} is given up: it cannot be opened: the row was changed" for id in (spoilt, moved, empty)]
    waiting = [f"{id} is tried again: the key that sealed it is not in the keyring of this process" for id in foreign]
    assert sorted(desk.reports) == sorted((*given_up, *waiting))
    assert len(await desk.left()) == len(foreign)


def spoil(connection: Connection, *, named: str, text: str) -> None:
    connection.run(SPOIL, named=named, text=text)


class Dying:
    """The process ends while it sends, here by a fault."""

    async def send(self, letter: Letter, id: str) -> None:
        raise ZeroDivisionError

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_what_a_dead_process_had_taken_is_sent_by_another_two_minutes_later(either: Desk) -> None:
    await either.queue("ada@fjord.example")
    with pytest.raises(ExceptionGroup):
        await either.postman(Dying()).deliver()
    catcher = MailCatcher()
    either.clock.advance(119)
    assert await either.postman(catcher).deliver() == 0
    either.clock.advance(1)
    assert await either.postman(catcher).deliver() == 1


async def test_a_mail_that_is_under_way_when_the_service_stops_is_finished_and_not_sent_again(desk: Desk) -> None:
    await desk.queue("ada@fjord.example")
    async with open_server() as office:
        office.hold = anyio.Event()
        smtp = SmtpMail(smtp_settings(f"smtp://127.0.0.1:{office.port}", "noreply@esim.example"), desk.clock)
        postman = desk.postman(smtp)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(postman.run)
            postman.wake()
            await office.asked.wait()
            tasks.cancel_scope.cancel()
            office.hold.set()
        desk.clock.advance(HOUR / 10)
        assert await postman.deliver() == 0
    assert office.recipients == ["ada@fjord.example"] and await desk.left() == []


class Forgetful(WrappedStore):
    """A store that is away for the first time a mail is to be dropped."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.failures = 1

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if fn is drop_mail and self.failures:
            self.failures -= 1
            raise StoreUnavailable("the database cannot be reached")
        return await self.store.write(fn, *args, **kwargs)


async def test_a_mail_whose_row_could_not_be_dropped_is_not_sent_again(desk: Desk) -> None:
    await desk.queue("ada@fjord.example")
    catcher = MailCatcher()
    postman = desk.postman(catcher, store=Forgetful(desk.store))
    await postman.deliver()
    assert desk.reports == ["the store is unavailable, mails wait: the database cannot be reached"]
    desk.clock.advance(120)
    await postman.deliver()
    assert (len(catcher.letters), await desk.left()) == (1, [])


async def test_a_ring_sends_at_once(desk: Desk) -> None:
    catcher = MailCatcher()
    postman = desk.postman(catcher)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(postman.run)
        await anyio.wait_all_tasks_blocked()
        await desk.queue("ada@fjord.example")
        postman.wake()
        with anyio.fail_after(60):
            while not catcher.letters:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert [letter.to for letter in catcher.letters] == ["ada@fjord.example"]
