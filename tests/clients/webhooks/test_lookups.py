"""Name lookups over a function that blocks: a silent name server stops nobody else's."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from threading import Event

import pytest

from clients.webhooks.name_lookup import LOOKUPS_LIMIT, ThreadedLookups
from tests.clients.webhooks.test_sender import HOOK_HOST, sender

SILENT, QUICK, ODD = "silent.example.com", "quick.example.com", "odd.example.com"
HANGING = """
import asyncio, threading
from clients.webhooks.name_lookup import ThreadedLookups

def ask(name):
    threading.Event().wait()

async def main():
    lookups = ThreadedLookups(ask)
    waiting = [asyncio.create_task(lookups("silent.example.com")) for _ in range(200)]
    await asyncio.sleep(0)
    assert threading.active_count() > 200

asyncio.run(main())
print("ended")
"""


class NameServer:
    """Never answers for one name, at once for the others; `answers` ends its silence."""

    def __init__(self) -> None:
        self.answers = Event()

    def ask(self, name: str) -> Sequence[str]:
        if name == SILENT:
            self.answers.wait()
        if name == ODD:
            raise UnicodeError("label too long")
        return ["8.8.8.8"]


@pytest.fixture
def server() -> Generator[NameServer]:
    made = NameServer()
    yield made
    made.answers.set()


async def started(lookups: ThreadedLookups, count: int) -> list[asyncio.Task[Sequence[str]]]:
    tasks = [asyncio.create_task(lookups(SILENT)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def ended(tasks: Sequence[asyncio.Task[Sequence[str]]]) -> list[Sequence[str] | BaseException]:
    return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.long
async def test_300_lookups_that_never_return_do_not_delay_another_names(server: NameServer) -> None:
    lookups = ThreadedLookups(server.ask, most=301)
    stuck = await started(lookups, 300)
    async with asyncio.timeout(60):
        assert await lookups(QUICK) == ["8.8.8.8"]
    assert not any(task.done() for task in stuck)
    server.answers.set()
    assert await ended(stuck) == [["8.8.8.8"]] * 300


async def test_beyond_200_a_lookup_is_refused_at_once_and_an_answer_frees_its_place(server: NameServer) -> None:
    lookups = ThreadedLookups(server.ask)
    tasks = await started(lookups, 300)
    await asyncio.sleep(0)
    refused = [task for task in tasks if task.done()]
    assert (LOOKUPS_LIMIT, len(refused)) == (200, 100)
    assert {getattr(error, "errno", None) for error in await ended(refused)} == {socket.EAI_AGAIN}
    server.answers.set()
    assert await ended([task for task in tasks if task not in refused]) == [["8.8.8.8"]] * 200
    assert await lookups(QUICK) == ["8.8.8.8"]


async def test_a_lookup_ends_with_its_callers_time_and_its_thread_keeps_the_place(server: NameServer) -> None:
    lookups = ThreadedLookups(server.ask, most=1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await lookups(SILENT)
    with pytest.raises(socket.gaierror, match="Too many"):
        await lookups(QUICK)
    server.answers.set()
    async with asyncio.timeout(60):
        while True:
            try:
                assert await lookups(QUICK) == ["8.8.8.8"]
                break
            except socket.gaierror:
                await asyncio.sleep(0.005)  # the abandoned thread is just ending


async def test_a_delivery_beyond_the_cap_fails_at_once_as_dns() -> None:
    silence = Event()

    def ask(name: str) -> Sequence[str]:
        silence.wait()
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async with sender(ThreadedLookups(ask, most=1)) as ours:
        outcomes = [(await ours.post(f"https://{HOOK_HOST}/", b"{}", {})).outcome for _ in range(2)]
    silence.set()
    assert outcomes == ["timeout", "dns"]


async def test_what_the_resolver_refuses_reaches_the_caller(server: NameServer) -> None:
    with pytest.raises(UnicodeError):
        await ThreadedLookups(server.ask)(ODD)


@pytest.mark.long
def test_a_process_ends_while_lookups_hang() -> None:
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")
