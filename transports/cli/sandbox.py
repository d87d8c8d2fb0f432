"""`reseller sandbox`: the simulated outside systems as servers of their own. It imports them, so only the command table imports it."""

import asyncio
import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import orjson
import typer
import uvicorn

from registry.clock import SystemClock
from simulators.model.fleet_script import FLEET_SKILLS, fleet_script
from simulators.model.server import model_server
from simulators.network.control import NETWORK_CONTROL_PATHS
from simulators.network.entities import PushTarget
from simulators.network.seed.build import build_world
from simulators.network.seed.scenario import build_scenario_pair
from simulators.network.simulated_network import SimulatedNetwork, make_network_app
from simulators.network.wire import parse_wire_moment, wire_moment
from simulators.network.world import World
from simulators.processor.control import PROCESSOR_CONTROL_PATHS
from simulators.processor.simulated_processor import SimulatedProcessor, make_processor_app
from simulators.server import SimulatorApp
from transports.cli.serve import is_loopback_host
from transports.cli.terminal import Failure, to_stderr
from transports.http.server import bind_socket, run_on_uvloop, socket_port, uvicorn_server_type
from transports.payments import PAYMENTS_WEBHOOK_PATH, SIMULATED_PROCESSOR_CLIENT, SIMULATED_PROCESSOR_KEY
from transports.settings import PROCESSOR_KEY_PATTERN, PROCESSOR_SECRET_PATTERN


def planted_world(seed: int, start: int, *, lines: int, history_days: int, truth: Path | None, borders: bool) -> World:
    """A world with planted cases; which ones is written to `truth` only."""
    if truth is not None and not truth.parent.is_dir():
        raise Failure(f"--truth {truth}: cannot be written (no such folder)")
    try:
        made = build_scenario_pair(seed, start, lines=lines, history_days=history_days, borders=borders)
    except ValueError as error:
        raise Failure(f"--plant: {error}") from None
    if truth is not None:
        write_truth(truth, made.as_json() if borders else made.truth.as_json())
    return made.world


def write_truth(path: Path, truth: dict[str, object]) -> None:
    """Replaces the file as a whole; only its owner may read it."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(orjson.dumps(truth, option=orjson.OPT_INDENT_2) + b"\n")
        fresh.replace(path)
    except OSError as error:
        raise Failure(f"--truth {path}: cannot be written ({error.strerror})") from None


PORT_HINT = "stop what holds it, or take a free one with --port 0"
SIMULATED_MODEL_NAME = "simulated-1"


def run_sandbox_model(
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 takes a free one.")] = 8092,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    key: Annotated[str, typer.Option("--key", help="API key that it asks for; empty: none.")] = "",
) -> None:
    """Serve a simulated model that speaks the chat-completions wire and answers ten questions about a fleet through tools."""
    try:
        asyncio.run(serve_model(host, port, key))
    except KeyboardInterrupt:
        return
    except OSError as error:
        raise Failure(f"port {port} on {host}: {error.strerror}; {PORT_HINT}") from None


async def serve_model(host: str, port: int, key: str) -> None:
    async with model_server(fleet_script, key=key, host=host, port=port) as (address, _):
        rows = [
            f"simulated model at {address}",
            "start the service with it",
            f"  SERVICE_MODEL_URL={address}",
            f"  SERVICE_MODEL_NAME={SIMULATED_MODEL_NAME}",
            *([f"  SERVICE_MODEL_KEY={key}"] if key else []),
            "it understands questions with these words; {iccid} is a line of yours",
            *(f"  {skill.words}{' {iccid}' if skill.needs_line else ''}" for skill in FLEET_SKILLS),
        ]
        print_now(rows)
        await asyncio.Event().wait()


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket to listen on. Raises Failure."""
    try:
        return bind_socket(host, port)
    except OSError as error:
        raise Failure(f"port {port} on {host}: {error.strerror}; {PORT_HINT}") from None


def socket_address(bound: socket.socket, host: str) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{socket_port(bound)}"


def print_now(rows: Sequence[str]) -> None:
    """Prints the rows at once: whoever started the simulator in a pipe waits for its address."""
    sys.stdout.write("\n".join(rows) + "\n")
    sys.stdout.flush()


SIMULATED_WEBHOOK_SECRET = "whsec_c2ltdWxhdGVkIHBheW1lbnQgcHJvY2Vzc29y"


def run_sandbox_payments(
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 takes a free one.")] = 8091,
    host: Annotated[str, typer.Option("--host", help="Address to listen on; whoever reaches it may do everything.")] = "127.0.0.1",
    key: Annotated[str, typer.Option("--key", help="The platform's secret key, sk_test_...")] = SIMULATED_PROCESSOR_KEY,
    webhook_url: Annotated[
        str, typer.Option("--webhook-url", help="Where its events go; empty: nowhere.")
    ] = f"http://127.0.0.1:8000{PAYMENTS_WEBHOOK_PATH}",
    webhook_secret: Annotated[
        str, typer.Option("--webhook-secret", help="What its events are signed with, whsec_...")
    ] = SIMULATED_WEBHOOK_SECRET,
    state: Annotated[Path | None, typer.Option("--state", help="File that it remembers in; without one it forgets all.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same ids.")] = 1,
) -> None:
    """Serve a simulated payment processor: its API, its pages, and a control API for payments, disputes, faults and time."""

    check_processor_options(key, webhook_url, webhook_secret)
    with bound_socket(host, port) as bound:
        address = socket_address(bound, host)
        sandbox = SimulatedProcessor(
            wall=SystemClock().now,
            pages_url=address,
            key=key,
            webhook_secret=webhook_secret,
            webhook_url=webhook_url,
            client_id=SIMULATED_PROCESSOR_CLIENT,
            state_file=state,
            seed=seed,
            report=to_stderr,
        )
        run_on_uvloop(serve_simulator(make_processor_app(sandbox), bound, lambda: print_processor(address, sandbox)))


def check_processor_options(key: str, webhook_url: str, webhook_secret: str) -> None:
    """Raises Failure for values that the service would refuse."""
    if not PROCESSOR_KEY_PATTERN.fullmatch(key):
        raise Failure("--key: must be sk_test_ or the like and 8 letters or digits or more")
    if not PROCESSOR_SECRET_PATTERN.fullmatch(webhook_secret):
        raise Failure("--webhook-secret: must be whsec_ and 8 letters or digits or more")
    if webhook_url and not webhook_url.startswith(("http://", "https://")):
        raise Failure(f"--webhook-url {webhook_url}: must begin with http:// or https://")


async def serve_simulator(app: SimulatorApp, bound: socket.socket, say: Callable[[], None]) -> None:
    """Serves a simulated system until it is told to stop; calls `say` when it listens."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # a dropped answer is what was asked for, not an error
    config = uvicorn.Config(app, lifespan="on", log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=5)
    await uvicorn_server_type(say)(config).serve(sockets=[bound])


def print_processor(address: str, sandbox: SimulatedProcessor) -> None:
    rows = [
        f"simulated payment processor at {address}: no real money",
        f"events go to {sandbox.webhook_url or 'nobody'}",
        "start the service against it with",
        f"  SERVICE_PAYMENTS_KEY={sandbox.key}",
        f"  SERVICE_PAYMENTS_WEBHOOK_SECRET={sandbox.webhook_secret}",
        f"  SERVICE_PAYMENTS_URL={address}",
        f"  SERVICE_PAYMENTS_CONNECT_URL={address}",
        f"  SERVICE_PAYMENTS_CLIENT_ID={sandbox.client_id}",
        "try",
        f"  curl -s {address}/v1/balance -H 'Authorization: Bearer {sandbox.key}'",
        "control",
        *(f"  {path}" for path in PROCESSOR_CONTROL_PATHS),
    ]
    print_now(rows)


sandbox_app = typer.Typer(no_args_is_help=True, help="Run simulated outside systems.")
START_AGO = re.compile(r"-(\d{1,5})([dhm])", re.ASCII)
AGO_SECONDS = {"d": 86_400, "h": 3_600, "m": 60}


class ClockPolicy(StrEnum):
    """Whether simulated time passes by itself."""

    FOLLOW = "follow"
    FROZEN = "frozen"


sandbox_app.command("payments")(run_sandbox_payments)
sandbox_app.command("model")(run_sandbox_model)


@sandbox_app.command("ocs")
def run_sandbox_ocs(
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
    borders: Annotated[
        bool, typer.Option("--borders", help="Others just beside the limits of such troubles too, from 400 lines on; with --plant.")
    ] = False,
    truth: Annotated[Path | None, typer.Option("--truth", help="File to be written with which lines do; with --plant.")] = None,
) -> None:
    """Serve a simulated network and its charging system, with a control API for faults, usage and time."""

    if push_to and not push_to.startswith(("http://", "https://")):
        raise Failure(f"--push-to {push_to}: must begin with http:// or https://")
    if truth is not None and not plant:
        raise Failure(f"--truth {truth}: nothing is planted without --plant")
    if borders and not plant:
        raise Failure("--borders: nothing is planted without --plant")
    moment = start_moment(start)
    with bound_socket(host, port) as bound:
        if plant:
            world = planted_world(seed, moment, lines=lines, history_days=history_days, truth=truth, borders=borders)
        else:
            world = build_world(seed, moment, lines=lines, history_days=history_days)
        world.row_cap = row_cap
        for reseller in world.resellers.values():
            if push_to:
                reseller.push = PushTarget(push_to, push_to, push_to, reseller.push.thresholds)
        network = SimulatedNetwork(world, wall=SystemClock().now, following=clock is ClockPolicy.FOLLOW)
        run_on_uvloop(serve_simulator(make_network_app(network), bound, lambda: print_network(bound, host, world)))


def start_moment(text: str) -> int:
    """Simulated Unix seconds at the start, from a time or an age. Raises Failure."""
    ago = START_AGO.fullmatch("-0d" if text == "now" else text)
    found = parse_wire_moment(text if ago is None else wire_moment(int(SystemClock().now()) - int(ago[1]) * AGO_SECONDS[ago[2]]))
    if found is None:
        raise Failure(f"--start {text}: must be now, -31d, -12h, -30m or the like, or a time such as 2026-01-31T12:00:00; from 2000 on")
    return found


def print_network(bound: socket.socket, host: str, world: World) -> None:
    address = socket_address(bound, host)
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
            * (not is_loopback_host(host))
        ),
        "control",
        *(f"  {path}" for path in NETWORK_CONTROL_PATHS),
    ]
    print_now(rows)
