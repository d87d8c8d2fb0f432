"""A process that has imported everything: what tests start as `reseller` is a fork of it, which saves a second of imports each.

`reseller()` is a program that takes the place of the real one: it hands its words, its directory, its environment and its streams to
the fork server, hands on the signals it gets, and ends as the fork ends. That a real process starts and ends well is what
tests/cli/test_serve.py and others prove with the real command.
"""

import asyncio
import atexit
import faulthandler
import gc
import importlib
import marshal
import os
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from tests.databases import migrated_file

if TYPE_CHECKING:  # those who only want the program do without
    from operations.demo import Demo
    from tests.harness.network_cache import NetworkCache

ROOT = Path(__file__).resolve().parents[2]
# What commands import only when they need it.
LATER = (
    *("aiohttp", "aiosmtplib", "alembic.command", "httptools", "httpx", "jinja2", "jwt", "mcp.server", "psycopg", "rich.console"),
    *(
        "sqlalchemy.dialects.postgresql",
        "sqlalchemy.dialects.sqlite",
        "uvicorn",
        "uvloop",
        "storage.engine.postgres",
        "storage.engine.sqlite",
    ),
    *("babel.dates", "babel.numbers", "simulators.network.restored_esims", "simulators.transport", "transports.web.shop.app"),
    *("transports.app", "transports.http.protocol", "transports.http.server", "transports.service", "transports.mcp.door"),
)
THREAD_END_SECONDS = 30
CLIENT = """#!{python} -IS
import _socket, marshal, os, signal, sys
forks = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
try:
    forks.connect({address!r})
except OSError as error:
    sys.exit(f"the fork server does not answer ({{error}}): {{open({log!r}).read()}}")
def hand_on(number, frame):
    forks.send(bytes([number]))
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, hand_on)
order = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ)))
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
forks.sendmsg([len(order).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
forks.sendall(order)
status = int.from_bytes(forks.recv(4), "big")
if os.WIFSIGNALED(status):
    signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
    os.kill(os.getpid(), os.WTERMSIG(status))
os._exit(os.waitstatus_to_exitcode(status))
"""


@cache
def reseller() -> Path:
    """The program; its fork server starts on first use, and ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="forks-"))
    program = folder / "reseller"
    if not hasattr(os, "pidfd_open"):  # not Linux: the real command
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m transports.cli "$@"\n')
        program.chmod(0o755)
        return program
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / "socket"))
    listening.listen(64)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SERVICE_", "RESELLER_"))}
    words = [sys.executable, "-P", "-m", "tests.harness.fork_server", str(listening.fileno()), str(folder), str(migrated_file())]
    given = {**environment, "PYTHONPATH": str(ROOT)}
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, cwd=ROOT, env=given, stdin=pipe, stdout=none, stderr=log, pass_fds=[listening.fileno()])
    listening.close()
    program.write_text(CLIENT.format(python=sys.executable, address=str(folder / "socket"), log=str(folder / "log")))
    program.chmod(0o755)

    def end() -> None:
        process.communicate()  # closes its input, which ends it
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return program


class Order(NamedTuple):
    """What a caller wants, and the streams it has."""

    words: list[str]
    folder: str
    environment: dict[str, str]
    streams: list[int]


def ordered(caller: socket.socket) -> Order:
    head, streams, _, _ = socket.recv_fds(caller, 4, 3)
    text = bytearray()
    while len(text) < int.from_bytes(head, "big"):
        text += caller.recv(65_536)
    words, folder, environment = cast(tuple[list[str], str, dict[str, str]], marshal.loads(bytes(text)))
    return Order(words, folder, environment, streams)


def perform(order: Order) -> NoReturn:
    """What a fork does: the command as `python -m transports.cli` begins it, to its end."""
    from transports.cli.main import main

    code: object = 1
    try:
        for number, stream in enumerate(order.streams):
            os.dup2(stream, number)
        os.closerange(3, 1024)
        faulthandler.register(signal.SIGQUIT)  # one that stands still can still say where
        os.chdir(order.folder)
        os.environ.clear()
        os.environ.update(order.environment)
        sys.argv = ["reseller", *order.words]
        atexit._clear()  # what is to be done at the end of the server is not for its forks
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:  # as the interpreter ends
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def attend(listening: socket.socket, kept: "NetworkCache") -> None:
    """Fork for every caller, hand on what it sends, tell it how its fork ended. A caller that is gone was killed, and so is its fork."""
    with selectors.DefaultSelector() as events:
        events.register(sys.stdin, selectors.EVENT_READ, None)
        events.register(listening, selectors.EVENT_READ, None)
        while True:
            for key, _ in events.select():
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is listening:
                    caller, _ = listening.accept()
                    order = ordered(caller)
                    kept.take_up()
                    pid = os.fork()
                    if pid == 0:
                        perform(order)
                    for stream in order.streams:
                        os.close(stream)
                    descriptor = os.pidfd_open(pid)
                    events.register(descriptor, selectors.EVENT_READ, (pid, caller, descriptor))
                    events.register(caller, selectors.EVENT_READ, (pid, caller, descriptor))
                    continue
                pid, caller, descriptor = cast(tuple[int, socket.socket, int], key.data)
                if descriptor not in events.get_map():  # it ended in this very moment
                    continue
                if key.fileobj is caller:
                    signal.pidfd_send_signal(descriptor, (caller.recv(1) or bytes([signal.SIGKILL]))[0])
                    continue
                status = os.waitpid(pid, 0)[1]
                events.unregister(descriptor)
                events.unregister(caller)
                os.close(descriptor)
                with suppress(BrokenPipeError):
                    caller.send(status.to_bytes(4, "big"))
                caller.close()


PATHS = ("connectivity/plans", "connectivity/intents", "connectivity/events", "connectivity/webhook_endpoints", "subscribers?limit=1")
"""What many tests ask first."""


async def answer_once(folder: Path) -> None:
    """A service of this very process that is asked a little, and ends: what it made of statements and models, every fork has from it.

    It has no socket and no uvicorn, hears no signal and writes no log: the end of one that had would be known to every fork.
    """
    import anyio
    import httpx

    from transports.app import Application
    from transports.logs import Logs
    from transports.service import build_service
    from transports.settings_files import load_settings

    settings = load_settings({"SERVICE_DEMO_LIFE": "false", "SERVICE_DATA": str(folder), "SERVICE_LOG": "off"})
    service = build_service(settings, "http://127.0.0.1:8000", report=lambda line: None)
    demos = list["Demo | None"]()
    app = Application(service, Logs(lambda lines: None, service.clock, secrets=[], human=False), started=demos.append)
    given, words = anyio.create_memory_object_stream[dict[str, object]](2)
    started = anyio.Event()

    async def hear(message: object) -> None:
        del message
        started.set()

    async with anyio.create_task_group() as tasks, given, words:
        tasks.start_soon(app, dict[str, object](type="lifespan"), words.receive, hear)
        await given.send({"type": "lifespan.startup"})
        await started.wait()
        key = {"Authorization": f"Bearer {demos[0] and demos[0].api_key}"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=service.site.base_url, headers=key) as http:
            for path in PATHS:
                await http.get(f"/v1/{path}")  # on a busy machine it may be told that the network does not answer in time
        await given.send({"type": "lifespan.shutdown"})


def warm_up(folder: Path, database: Path) -> None:
    """The fork server is as it was afterwards, but for what it has kept."""
    folder.mkdir(mode=0o700)
    shutil.copy(database, folder / "service.db")
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:  # which sets no loop that has ended then
        runner.run(answer_once(folder))
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(THREAD_END_SECONDS)  # anyio tells its threads to end with the loop, and waits for none
    if threading.active_count() > 1:
        raise RuntimeError(f"a fork has none of these threads: {threading.enumerate()}")


def main() -> None:
    gc.disable()  # as the command line begins
    from transports.cli.main import make_app

    make_app(["all"])
    for name in LATER:
        importlib.import_module(name)
    from tests.harness.network_cache import NetworkCache

    kept = NetworkCache(Path(sys.argv[2]))
    kept.use()
    warm_up(Path(sys.argv[2]) / "data", Path(sys.argv[3]))
    gc.disable()
    gc.collect()
    gc.freeze()
    attend(socket.socket(fileno=int(sys.argv[1])), kept)


if __name__ == "__main__":
    main()
