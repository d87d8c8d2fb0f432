"""`reseller sandbox model`: a simulated language model as a server of its own."""

import asyncio
import sys
from typing import Annotated

import typer

from transports.cli.failure import Failure

WAY_OUT = "stop what holds it, or take a free one with --port 0"
NAME = "simulated-1"


def model(
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 takes a free one.")] = 8092,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    key: Annotated[str, typer.Option("--key", help="API key that it asks for; empty: none.")] = "",
) -> None:
    """Serve a simulated model that speaks the chat-completions wire and answers ten questions about a fleet through tools."""
    try:
        asyncio.run(serve(host, port, key))
    except KeyboardInterrupt:
        return
    except OSError as error:
        raise Failure(f"port {port} on {host}: {error.strerror}; {WAY_OUT}") from None


async def serve(host: str, port: int, key: str) -> None:
    """Until it is told to stop."""
    from clients.sandbox.model.fleet import SKILLS, fleet
    from clients.sandbox.model.server import model_server

    async with model_server(fleet, key=key, host=host, port=port) as (address, _):
        rows = [
            f"simulated model at {address}",
            "start the service with it",
            f"  SERVICE_MODEL_URL={address}",
            f"  SERVICE_MODEL_NAME={NAME}",
            *([f"  SERVICE_MODEL_KEY={key}"] if key else []),
            "it understands questions with these words; {iccid} is a line of yours",
            *(f"  {skill.words}{' {iccid}' if skill.needs_line else ''}" for skill in SKILLS),
        ]
        sys.stdout.write("\n".join(rows) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()
