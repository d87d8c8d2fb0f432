"""What the tests of sign-up share: asking from an address, and reading the mail."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx

from clients.mail.letter import Letter
from operations.catalogue import CATALOGUE
from registry.limits import Limits
from tests.world import HOST, World, open_world
from transports.http.forwarded import ForwardedClients

SIGN_UP, VERIFY = "/v1/signup", "/v1/signup/verify"
ADA = "ada@fjord.example"


@asynccontextmanager
async def open_office(folder: Path, url: str | None = None) -> AsyncGenerator[World]:
    """A service without the burst limit, whose faults fail the test."""
    async with open_world(folder, CATALOGUE, url=url, limits=Limits(burst_enabled=False)) as world:
        yield world
        assert world.faults == []


def asking(world: World, ip: str = "192.0.2.1", *, trusted: Sequence[str] = (), **headers: str) -> httpx.AsyncClient:
    app = ForwardedClients(world.door, [ip_network(net) for net in trusted])
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False, client=(ip, 50_000))
    return httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}", headers=headers)


async def sign_up(http: httpx.AsyncClient, email: str = ADA, **more: Any) -> httpx.Response:
    return await http.post(SIGN_UP, json={"email": email, "organization_name": "Fjord Mobile", **more})


async def verify(http: httpx.AsyncClient, token: str, code: str) -> httpx.Response:
    return await http.post(VERIFY, json={"client_token": token, "code": code})


def code_line(letter: Letter) -> str:
    """The line of a mail that is a code."""
    [code] = re.findall(r"^(?:\d{6}|[0-9A-Z]{4}-[0-9A-Z]{4})$", letter.text, re.MULTILINE)
    return code


def other_than(code: str, number: int = 1) -> str:
    """A wrong code of the same kind."""
    if "-" in code:
        return f"{'ABCDEFGH'[number]}{code[1:]}" if code[0] != "ABCDEFGH"[number] else f"Z{code[1:]}"
    return f"{(int(code) + number) % 1_000_000:06}"


async def begun(world: World, http: httpx.AsyncClient, email: str = ADA, **more: Any) -> tuple[str, str]:
    """Token and code of a new sign-up."""
    answer = await sign_up(http, email, **more)
    assert answer.status_code == 201, answer.text
    return answer.json()["client_token"], code_line((await world.letters())[-1])


async def signed_up(world: World, http: httpx.AsyncClient, email: str = ADA, **more: Any) -> dict[str, Any]:
    """The answer of a whole sign-up."""
    answer = await verify(http, *await begun(world, http, email, **more))
    assert answer.status_code == 201, answer.text
    return answer.json()


def without_id(answer: httpx.Response) -> tuple[int, dict[str, Any]]:
    """Status and body, but for the request's id."""
    body = answer.json()
    del body["request_id"]
    return answer.status_code, body
