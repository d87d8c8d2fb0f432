"""The example receiver, run as a program, takes what the service sends and nothing else."""

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.deliveries.post_office import PostOffice, open_post_office

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "webhook_receiver.py"


@pytest.fixture
async def office(tmp_path: Path) -> AsyncGenerator[PostOffice]:
    async with open_post_office(tmp_path) as made:
        made.clock.wall = time.time()  # the receiver looks at the machine's clock
        yield made


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@asynccontextmanager
async def program(port: int, secret: str) -> AsyncGenerator[asyncio.StreamReader]:
    """The example, listening; what it prints."""
    environment = os.environ | {"WEBHOOK_SECRETS": secret}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), str(port), stdout=pipe, stderr=asyncio.subprocess.DEVNULL, env=environment
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == f"listening on http://127.0.0.1:{port}/\n".encode()
        yield process.stdout
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.long
async def test_the_example_takes_an_event_once_and_refuses_what_is_not_signed(office: PostOffice) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    _, secret = await office.endpoint(url)
    event = await office.emit()
    worker = office.worker()
    async with asyncio.timeout(60), program(port, secret) as printed, httpx.AsyncClient() as stranger:
        assert await worker.step() == 1
        assert (await office.http.post(f"/v1/connectivity/events/{event}/retry")).status_code == 200
        assert await worker.step() == 1
        stamp = str(int(time.time()))
        forged = {"webhook-id": "evt_2", "webhook-timestamp": stamp, "webhook-signature": "v1,bm8="}
        assert (await stranger.post(url, content=b"{}", headers=forged)).status_code == 401
        second = await office.emit("second")
        assert await worker.step() == 1
        lines = [(await printed.readline()).decode() for _ in range(2)]
    assert lines == [f"esim.issued {event} cni_1\n", f"esim.issued {second} cni_1\n"]
    assert await office.states(event) == [("delivered", ["ok", "ok"])]
