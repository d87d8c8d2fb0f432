"""Name lookups, each in a thread of its own: one that hangs delays no other, and not the end of the process."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from threading import BoundedSemaphore, Thread

BlockingLookup = Callable[[str], Sequence[str]]
"""The same, in a thread: it may take as long as it likes."""
LookupAnswer = Sequence[str] | Exception

LOOKUPS_LIMIT = 200


def ask_system_resolver(name: str) -> list[str]:
    """Ask the system's resolver for IPv4 and IPv6 addresses."""
    return [str(address[0]) for _, _, _, _, address in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]


class ThreadedLookups:
    """A `NameLookup` over a function that blocks.

    The event loop's own threads are few (uvloop has four) and a lookup cannot be interrupted, so there a silent name server would
    stop everybody's lookups. Here a caller that gives up abandons its thread, which counts until its lookup ends. The threads are
    daemons: the end of the process does not wait for them.
    """

    def __init__(self, ask: BlockingLookup = ask_system_resolver, most: int = LOOKUPS_LIMIT) -> None:
        self._ask = ask
        self._places = BoundedSemaphore(most)

    async def __call__(self, name: str) -> Sequence[str]:
        """All addresses of `name`, without a limit of time. OSError where it has none, and at once when all threads are taken."""
        if not self._places.acquire(blocking=False):
            raise socket.gaierror(socket.EAI_AGAIN, "Too many name lookups are under way")
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Sequence[str]] = loop.create_future()
        thread = Thread(target=self._look_up, args=(name, loop, found), name="name lookup", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no thread left
            self._places.release()
            raise socket.gaierror(socket.EAI_AGAIN, "No thread for the name lookup") from None
        return await found

    def _look_up(self, name: str, loop: asyncio.AbstractEventLoop, found: asyncio.Future[Sequence[str]]) -> None:
        answer = self._answer(name)
        self._places.release()
        try:
            loop.call_soon_threadsafe(_set_answer, found, answer)
        except RuntimeError:  # the loop has been closed meanwhile, and its caller with it
            return

    def _answer(self, name: str) -> LookupAnswer:
        try:
            return self._ask(name)
        except (OSError, ValueError) as error:  # ValueError: what cannot be written as a name
            return error


def _set_answer(found: asyncio.Future[Sequence[str]], answer: LookupAnswer) -> None:
    """Tell the caller, if it still waits."""
    if found.done():
        return
    if isinstance(answer, Exception):
        found.set_exception(answer)
    else:
        found.set_result(answer)
