"""`reseller sandbox payments`: the simulated payment processor as a server of its own."""

import logging
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from registry.clock import SystemClock
from transports.cli.failure import Failure
from transports.payments import SIMULATED_CLIENT, SIMULATED_KEY, WEBHOOK_PATH
from transports.settings import PROCESSOR_KEY, PROCESSOR_SECRET

if TYPE_CHECKING:
    from clients.sandbox.payments.sandbox import PaymentsSandbox

SECRET = "whsec_c2ltdWxhdGVkIHBheW1lbnQgcHJvY2Vzc29y"
WAY_OUT = "stop what holds it, or take a free one with --port 0"


def payments(
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 takes a free one.")] = 8091,
    host: Annotated[str, typer.Option("--host", help="Address to listen on; whoever reaches it may do everything.")] = "127.0.0.1",
    key: Annotated[str, typer.Option("--key", help="The platform's secret key, sk_test_...")] = SIMULATED_KEY,
    webhook_url: Annotated[
        str, typer.Option("--webhook-url", help="Where its events go; empty: nowhere.")
    ] = f"http://127.0.0.1:8000{WEBHOOK_PATH}",
    webhook_secret: Annotated[str, typer.Option("--webhook-secret", help="What its events are signed with, whsec_...")] = SECRET,
    state: Annotated[Path | None, typer.Option("--state", help="File that it remembers in; without one it forgets all.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same ids.")] = 1,
) -> None:
    """Serve a simulated payment processor: its API, its pages, and a control API for payments, disputes, faults and time."""
    from transports.http.serve import bind, port_of, run  # brings uvicorn

    check(key, webhook_url, webhook_secret)
    try:
        bound = bind(host, port)
    except OSError as error:
        raise Failure(f"port {port} on {host}: {error.strerror}; {WAY_OUT}") from None
    with bound:
        from clients.sandbox.payments.sandbox import PaymentsSandbox

        address = f"http://{f'[{host}]' if ':' in host else host}:{port_of(bound)}"
        sandbox = PaymentsSandbox(
            wall=SystemClock().now,
            pages_url=address,
            key=key,
            webhook_secret=webhook_secret,
            webhook_url=webhook_url,
            client_id=SIMULATED_CLIENT,
            state_file=state,
            seed=seed,
            report=tell,
        )
        run(serve(bound, sandbox, lambda: say_started(address, sandbox)))


def check(key: str, webhook_url: str, webhook_secret: str) -> None:
    """What the service would not take is not begun with."""
    if not PROCESSOR_KEY.fullmatch(key):
        raise Failure("--key: must be sk_test_ or the like and 8 letters or digits or more")
    if not PROCESSOR_SECRET.fullmatch(webhook_secret):
        raise Failure("--webhook-secret: must be whsec_ and 8 letters or digits or more")
    if webhook_url and not webhook_url.startswith(("http://", "https://")):
        raise Failure(f"--webhook-url {webhook_url}: must begin with http:// or https://")


async def serve(bound: socket.socket, sandbox: "PaymentsSandbox", say: Callable[[], None]) -> None:
    """Until it is told to stop."""
    import uvicorn

    from clients.sandbox.payments.app import SandboxApp
    from transports.http.serve import server_type

    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # a dropped answer is what was asked for, not an error
    config = uvicorn.Config(
        SandboxApp(sandbox), lifespan="on", log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=5
    )
    await server_type(say)(config).serve(sockets=[bound])


def tell(text: str) -> None:
    """To whoever started it."""
    sys.stderr.write(f"{text}\n")


def say_started(address: str, sandbox: "PaymentsSandbox") -> None:
    """Where it is, and what the service is to be started with."""
    from clients.sandbox.payments.control import PATHS

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
        *(f"  {path}" for path in PATHS),
    ]
    sys.stdout.write("\n".join(rows) + "\n")
    sys.stdout.flush()
