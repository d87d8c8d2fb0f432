"""A call is gone with its answer: nothing of it waits for the collector, whose long looks come seldom, and no large block stays."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from registry.call import Call, Reply
from registry.errors import Refusal
from tests.gc_probe import left_by
from tests.http.conftest import HTTP_OPERATIONS
from tests.http.test_server import serving
from tests.world import open_world

OURS = (RequestResponseCycle, Call, Reply, Refusal)
HEAD = "Host: reseller.test\r\nAuthorization: Bearer %s\r\n"
NOTE = 'POST /v1/notes HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"name":"x"}'
REQUESTS = {
    "an answer": ("GET /v1/notes HTTP/1.1\r\n%s\r\n", 200),
    "a row that was written": (NOTE, 201),
    "a refusal of the router": ("GET /v1/nothing HTTP/1.1\r\n%s\r\n", 404),
    "a refusal of the input": (NOTE.replace('"x"', "1.5"), 400),
}

BLOCKS_MB = 64
FREED = f"""
import os, sys
from benchmarks.processes import memory_mb
from transports.http.server import run_on_uvloop

async def main():
    bytearray(4 << 20)
    before = memory_mb(os.getpid(), "RssAnon:")
    blocks = [(os.urandom(1 << 20), os.urandom(100_000)) for _ in range({BLOCKS_MB})]
    full = memory_mb(os.getpid(), "RssAnon:")
    blocks = [small for _, small in blocks]
    print(full - before, memory_mb(os.getpid(), "RssAnon:") - before)

run_on_uvloop(main())
"""
"""What blocks of a megabyte take, and what stays of them when they are freed and smaller ones between them are not."""


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> int:
    writer.write(sent)
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            await reader.readexactly(int(value))
    return int(head.split(b" ")[1])


@pytest.mark.cases
@pytest.mark.parametrize("kind", REQUESTS)
async def test_a_call_leaves_nothing_to_the_collector(tmp_path: Path, kind: str) -> None:
    request, status = REQUESTS[kind]
    async with open_world(tmp_path, HTTP_OPERATIONS) as world, serving(world.door, world) as server:
        caller = await world.caller()
        reader, writer = await server.connect()
        sent, told = (request % (HEAD % caller.secret)).encode(), set[int]()

        async def call() -> None:
            told.add(await exchange(reader, writer, sent))

        left = await left_by(call)
        assert told == {status}
        assert [each for each in left if isinstance(each, OURS)] == []
        writer.close()


def test_large_blocks_go_back_to_the_system_though_small_ones_between_them_stay() -> None:
    told = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    full, left = map(float, told.stdout.split())
    assert full > BLOCKS_MB
    assert left < BLOCKS_MB / 4
