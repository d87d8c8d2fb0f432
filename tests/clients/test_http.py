"""The outbound seam: opened late, closed cleanly, silent about what it called."""

import subprocess
import sys
import traceback

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clients.http import Outbound, OutboundFailed, OutboundLimits
from tests.clients.webhooks.receiver import receiver, status_answer

SECRET = "s3cret"


@pytest.mark.long
def test_importing_the_clients_loads_no_slow_package() -> None:
    program = (
        "import sys, clients.http, clients.ocs.client, clients.webhooks.sender, clients.webhooks.signature\n"
        "import clients.identity.session_tokens\n"
        "slow = {'httpx', 'aiohttp', 'httpx_aiohttp', 'jwt', 'cryptography'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {slow}' if slow else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
def test_the_first_call_imports_what_it_needs_beside_the_loop() -> None:
    program = """
import asyncio, sys, threading
from clients.http import Outbound, OutboundFailed

async def call():
    loop = threading.get_ident()
    sys.addaudithook(lambda event, told: event == "import" and threading.get_ident() == loop and print(told[0]))
    try:
        await Outbound().exchange("GET", "http://127.0.0.1:1/", headers={})
    except OutboundFailed as failed:
        print("failed", failed.kind)

asyncio.run(call())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    held_up_by = set(done.stdout.split())
    assert "refused" in held_up_by
    assert {"httpx", "aiohttp", "httpx_aiohttp"} & held_up_by == set()


async def test_a_client_opens_on_first_use_and_again_after_it_was_closed() -> None:
    outbound = Outbound()
    await outbound.aclose()
    async with receiver(status_answer("200 OK", "X-Kind: Plain", body=b"hello")) as there:
        for _ in range(2):
            reply = await outbound.exchange("GET", there.url(), headers={})
            assert (reply.status, reply.headers["x-kind"], reply.body, reply.truncated) == (200, "Plain", b"hello", False)
            await outbound.aclose()
    assert there.connections == 2


async def test_a_request_carries_what_was_given_and_names_no_library() -> None:
    outbound = Outbound()
    async with receiver(status_answer("200 OK", "connection: close", "x-tag: a", "X-Tag: b")) as there:
        reply = await outbound.exchange("POST", there.url(), headers={"content-type": "application/json"}, content=b"{}")
        await outbound.exchange("POST", there.url(), headers={"user-agent": "mine/1"})
    await outbound.aclose()
    sent = [request.lower().replace(b"127.0.0.1:%d" % there.port, b"here") for request in there.requests]
    assert reply.headers["x-tag"] == "a, b"
    assert sorted(sent[0].split(b"\r\n")) == [
        b"",
        b"accept-encoding: identity",
        b"accept: */*",
        b"content-length: 2",
        b"content-type: application/json",
        b"host: here",
        b"post /hook http/1.1",
        b"user-agent: connectivity-reseller",
        b"{}",
    ]
    assert [line for line in sent[1].split(b"\r\n") if line.startswith((b"user-agent", b"content-"))] == [
        b"user-agent: mine/1",
        b"content-length: 0",
    ]


async def test_an_answer_longer_than_asked_for_is_cut() -> None:
    outbound = Outbound()
    async with receiver(status_answer("200 OK", body=b"0123456789")) as there:
        exact = await outbound.exchange("GET", there.url(), headers={}, keep=10)
        cut = await outbound.exchange("GET", there.url(), headers={}, keep=9)
    await outbound.aclose()
    assert (exact.body, exact.truncated) == (b"0123456789", False)
    assert (cut.body, cut.truncated) == (b"012345678", True)


async def test_an_in_process_app_can_take_the_place_of_the_network() -> None:
    async def backwards(request: Request) -> Response:
        return Response((await request.body())[::-1], 201)

    app = Starlette(routes=[Route("/", backwards, methods=["PUT"])])
    outbound = Outbound(transport=httpx.ASGITransport(app))
    reply = await outbound.exchange("PUT", "https://inside.example.com/", headers={}, content=b"abc")
    await outbound.aclose()
    assert (reply.status, reply.body) == (201, b"cba")


async def test_a_failure_names_neither_url_nor_address() -> None:
    async with receiver(status_answer("200 OK")) as there:
        url = there.url() + "?token=" + SECRET
    outbound = Outbound(OutboundLimits(total_seconds=5))
    with pytest.raises(OutboundFailed) as failed:
        await outbound.exchange("GET", url, headers={})
    await outbound.aclose()
    story = "".join(traceback.format_exception(failed.value))
    assert failed.value.kind == "refused"
    assert str(failed.value) == "The outside system gave no usable answer (refused)."
    assert SECRET not in story
    assert f":{there.port}" not in story
    assert failed.value.__context__ is None


@pytest.mark.parametrize("url", ["ftp://example.com/", "nonsense", "http://[::1/", "http://" + "a" * 300 + ".example.com/"])
async def test_a_url_that_cannot_be_called_is_a_failure_too(url: str) -> None:
    outbound = Outbound(OutboundLimits(total_seconds=5))
    with pytest.raises(OutboundFailed):
        await outbound.exchange("GET", url, headers={})
    await outbound.aclose()
