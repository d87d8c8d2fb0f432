"""`reseller sandbox`: the simulated outside systems as servers of their own."""

import logging
import re
import socket
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from registry.clock import SystemClock
from transports.cli.banner import is_loopback
from transports.cli.failure import Failure
from transports.cli.sandbox_model import model
from transports.cli.sandbox_payments import payments
from transports.cli.sandbox_plant import planted

if TYPE_CHECKING:
    from clients.sandbox.ocs.state import World

sandbox_app = typer.Typer(no_args_is_help=True, help="Run simulated outside systems.")
AGO = re.compile(r"-(\d{1,5})([dhm])", re.ASCII)
SECONDS = {"d": 86_400, "h": 3_600, "m": 60}
WAY_OUT = "stop what holds it, or take a free one with --port 0"


class ClockPolicy(StrEnum):
    """Whether simulated time passes by itself."""

    FOLLOW = "follow"
    FROZEN = "frozen"


@sandbox_app.callback()
def sandbox() -> None:
    """Run simulated outside systems."""


sandbox_app.command("payments")(payments)
sandbox_app.command("model")(model)


@sandbox_app.command("ocs")
def ocs(
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 takes a free one.")] = 8090,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same network.")] = 1,
    lines: Annotated[int, typer.Option("--lines", min=1, max=200_000, help="How many subscribers.")] = 400,
    history_days: Annotated[int, typer.Option("--history-days", min=0, max=730, help="Days of life before the start.")] = 90,
    start: Annotated[
        str, typer.Option("--start", help="Simulated time at the start: now, -31d, -12h, -30m or 2026-01-31T12:00:00 (UTC).")
    ] = "now",
    clock: Annotated[
        ClockPolicy, typer.Option("--clock", help="follow: time passes. frozen: only /control moves it.")
    ] = ClockPolicy.FOLLOW,
    row_cap: Annotated[int, typer.Option("--row-cap", min=1, help="Most rows that listSubscriber answers.")] = 1000,
    push_to: Annotated[str, typer.Option("--push-to", help="Address for all notifications of all resellers.")] = "",
    plant: Annotated[
        bool, typer.Option("--plant", help="Let some lines churn, spike, roam dearly and the like, from 140 lines on.")
    ] = False,
    truth: Annotated[Path | None, typer.Option("--truth", help="File to be written with which lines do; with --plant.")] = None,
) -> None:
    """Serve a simulated network and its charging system, with a control API for faults, usage and time."""
    from transports.http.serve import bind, run  # brings uvicorn

    if push_to and not push_to.startswith(("http://", "https://")):
        raise Failure(f"--push-to {push_to}: must begin with http:// or https://")
    if truth is not None and not plant:
        raise Failure(f"--truth {truth}: nothing is planted without --plant")
    moment = start_of(start)
    try:
        bound = bind(host, port)
    except OSError as error:
        raise Failure(f"port {port} on {host}: {error.strerror}; {WAY_OUT}") from None
    with bound:
        if plant:
            world = planted(seed, moment, lines=lines, history_days=history_days, truth=truth)
        else:
            world = built(seed, moment, lines=lines, history_days=history_days)
        set_up(world, row_cap=row_cap, push_to=push_to)
        run(serve(bound, world, following=clock is ClockPolicy.FOLLOW, say=lambda: say_started(bound, host, world)))


def start_of(text: str) -> int:
    """Simulated time at the start: given as such, or by how long ago it is."""
    from clients.sandbox.ocs.moments import read_moment, stamp

    ago = AGO.fullmatch("-0d" if text == "now" else text)
    found = read_moment(text if ago is None else stamp(int(SystemClock().now()) - int(ago[1]) * SECONDS[ago[2]]))
    if found is None:
        raise Failure(f"--start {text}: must be now, -31d, -12h, -30m or the like, or a time such as 2026-01-31T12:00:00; from 2000 on")
    return found


def built(seed: int, start: int, *, lines: int, history_days: int) -> "World":
    """The plain network."""
    from clients.sandbox.ocs.seed.build import build

    return build(seed, start, history_days=history_days, lines=lines)


def set_up(world: "World", *, row_cap: int, push_to: str) -> None:
    """How long its lists are, and where its notifications go."""
    from clients.sandbox.ocs.entities import PushTarget

    world.row_cap = row_cap
    for reseller in world.resellers.values():
        if push_to:
            reseller.push = PushTarget(push_to, push_to, push_to, reseller.push.thresholds)


async def serve(bound: socket.socket, world: "World", *, following: bool, say: Callable[[], None]) -> None:
    """Until it is told to stop."""
    import uvicorn

    from clients.sandbox.ocs.app import make_app
    from clients.sandbox.ocs.sandbox import Sandbox
    from transports.http.serve import server_type

    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # a dropped answer is what was asked for, not an error
    app = make_app(Sandbox(world, wall=SystemClock().now, following=following))
    config = uvicorn.Config(app, lifespan="on", log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=5)
    await server_type(say)(config).serve(sockets=[bound])


def say_started(bound: socket.socket, host: str, world: "World") -> None:
    """Where it is and how to talk to it."""
    from clients.sandbox.ocs.control import PATHS
    from transports.http.serve import port_of

    address = f"http://{f'[{host}]' if ':' in host else host}:{port_of(bound)}"
    resellers, tokens = world.resellers, list(world.tokens.values())
    example = f"""curl -s '{address}/v1?token={tokens[0].value}' -d '{{"getResellerInfo":{{}}}}'"""
    rows = [
        f"simulated network at {address}/v1  (and /v2; statistics also under /ocs-custo/as/v1)",
        "tokens",
        *(f"  {token.value}  {token.reseller_id} {resellers[token.reseller_id].name}" for token in tokens),
        "accounts",
        *(f"  {account.id} {account.name}  ({resellers[account.reseller_id].name})" for account in world.accounts.values()),
        "try",
        f"  {example}",
        *(
            ["open to other machines: its control API takes no credential; --host 127.0.0.1 is for this machine alone"]
            * (not is_loopback(host))
        ),
        "control",
        *(f"  {path}" for path in PATHS),
    ]
    sys.stdout.write("\n".join(rows) + "\n")
    sys.stdout.flush()
