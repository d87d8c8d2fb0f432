"""The service as `reseller serve` composes it, except for its clock, and for the ports at whose points it is to die.

`python -m tests.harness.forked_server` is a fork server: it imports everything, and for each line on its input it forks a server. This is a
process of its own and has the settings, the directory and the clock of that line, and starts as usual. The fork server says `pid`
then `ended` with the exit code; the server says `ready` when it listens, and `settled SECONDS` when it has done what was due at a moment
that the clock was moved to.
"""

import gc
import importlib
import os
import select
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
import orjson

from clients.ocs.client import OcsPool, ocs_limits
from operations.changes.requests.approval_execution import ApprovedCalls
from operations.changes.requests.approval_requests import ApprovalRequests
from operations.ledger.event_letters import EventMails
from operations.ledger.reconciliation import Reconciliation
from operations.storefronts.sales.order_fulfilment import Fulfilment
from storage.orphans import recover_orphans
from storage.replicas import renew_replica
from tests.harness.kill_points import Point, Trap, TrappedJournal, TrappedMail, TrappedOutbound, TrappedStore
from tests.harness.shared_clock import SharedClock
from transports.app import Application
from transports.http.connections import Deadlines
from transports.http.server import bind_socket, make_http_server, run_on_uvloop
from transports.logs import Logs
from transports.service import LateCallback, Service, build_service, make_worker
from transports.settings_files import load_settings
from transports.upstream import ocs_settings

LOOK_SECONDS = 0.02
TICK_SECONDS = 0.003
# What the service imports only when it needs it.
LATER = (
    "aiohttp",
    "aiosmtplib",
    "httptools",
    "httpx",
    "psycopg",
    "storage.engine.postgres",
    "storage.engine.sqlite",
    "transports.http.protocol",
    "uvicorn",
    "uvloop",
)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def set_trap(service: Service, trap: Trap) -> None:
    """Put the ports around the real ones."""
    wire = ocs_settings(service.settings)
    pool = OcsPool(TrappedOutbound(ocs_limits(wire), trap), wire, service.clock, lease=service.limits)
    service.pipeline.deps = replace(service.pipeline.deps, ocs=pool, store=TrappedStore(service.store, trap))
    service.pipeline.approvals = ApprovalRequests(service.pipeline.deps)
    service.pipeline.journal = TrappedJournal(service.pipeline.journal, trap)
    deps, sender = service.pipeline.deps, service.sender
    # It sends for orders, without a call; fleets are not read, since calls of that would come between those that are counted.
    service.worker = make_worker(service.settings, deps, sender, complain, looks=True, begun=lambda: False)
    cast(LateCallback, deps.wake_worker).bind(service.worker.wake)
    service.mailer.transport = TrappedMail(service.mailer.transport, trap)


async def keep_settling(service: Service, clock: SharedClock) -> None:
    """The chores look at the machine's time now and then; this is what they do, at the start and whenever the clock was moved."""
    deps, done = service.pipeline.deps, -1.0
    reconciliation, fulfilment = Reconciliation(deps, complain), Fulfilment(deps, complain)
    while True:
        await anyio.sleep(LOOK_SECONDS)
        ahead = clock.ahead
        if ahead == done:
            continue
        await service.store.write(renew_replica, replica=service.journal.replica, now=clock.now())
        await service.store.write(recover_orphans, now=clock.now())
        await ApprovedCalls(deps, complain).step()
        await reconciliation.step()
        await fulfilment.step()
        await EventMails(deps).step()
        service.mailer.wake()
        service.worker.wake()
        done = ahead
        say(f"settled {done}")


async def live(clock: SharedClock, port: int, point: Point | None, *, settles: bool) -> None:
    """Serve until killed. Without its worker nothing is settled but what is asked for."""
    settings = load_settings(os.environ, worker=settles)
    with bind_socket("127.0.0.1", port) as bound:
        service = build_service(settings, f"http://127.0.0.1:{port}", clock=clock, report=complain)
        set_trap(service, Trap(point))
        logs = Logs(lambda lines: sys.stderr.buffer.write(lines) and sys.stderr.buffer.flush(), clock, secrets=[], human=False)
        server = make_http_server(Application(service, logs), deadlines=Deadlines(), ids=service.ids, logs=logs, ready=lambda: say("ready"))
        async with anyio.create_task_group() as tasks:
            if settles:
                tasks.start_soon(keep_settling, service, clock)
            await server.serve(sockets=[bound])
            tasks.cancel_scope.cancel()


def serve_fork(order: dict[str, Any]) -> None:
    os.chdir(order["place"])
    os.environ.update(order["settings"])
    with Path(order["log"]).open("ab") as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
    point = None if order["point"] is None else Point(*order["point"])
    run_on_uvloop(live(SharedClock(Path(order["clock"])), order["port"], point, settles=order["settles"]))


def attend_fork(pid: int) -> None:
    """Until it has ended, or nobody wants it any more. It is not reaped before the next order: its number stays its own."""
    while True:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is not None:
            say(f"ended {ended.si_status}")
            return
        if select.select([sys.stdin], [], [], TICK_SECONDS)[0]:  # orders come one by one, so this is the end
            os.kill(pid, signal.SIGKILL)


def serve_forks() -> None:
    """Bear servers until the input ends."""
    for name in LATER:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # no fork looks through it again, and so copies it
    pid = 0
    while line := sys.stdin.readline():
        if pid:
            os.waitpid(pid, 0)
        pid = os.fork()
        if pid == 0:
            serve_fork(orjson.loads(line))
            return
        say(f"pid {pid}")
        attend_fork(pid)


if __name__ == "__main__":
    serve_forks()
