"""The application as Schemathesis calls it: every door over a furnished house that stands as long as the client's lifespan."""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import orjson

from operations.catalogue import CATALOGUE
from operations.connectivity.destinations.event_stream import STREAM_SECONDS_LIMIT
from registry.catalogue import AnyOperation
from registry.operation import Auth
from tests.contract.payments import signature
from tests.contract.stage import ServiceHouse, open_service_house
from tests.fuzz.furnished import Furnished, FuzzInput, furnish
from tests.world import SITE
from transports.http.asgi import Message, Receive, Send
from transports.openapi.document import build_openapi

HOST = "testserver"
SIGNED, TOKEN = b"stripe-signature", b"x-confirm-token"
PATIENCE = 86_400
"""As long as whoever is told to come back later waits, by the clock of the house, in seconds."""
FOLLOWED = {o.path for o in CATALOGUE.operations.values() if o.resumes}
NOTIFIED = {o.path for o in CATALOGUE.operations.values() if o.auth is Auth.SIGNATURE}
Scope = Any


@dataclass
class AppUnderTest:
    """A house for one operation, or for all of them."""

    folder: Path
    operation: AnyOperation | None = None
    house: ServiceHouse | None = None
    furnished: Furnished | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._stand(receive, send)
        elif scope["path"] == "/openapi.json":
            await send_json(send, orjson.dumps(self.document()))
        else:
            await self.ask(scope, await read(receive), receive, send)

    def document(self) -> Any:
        """What Schemathesis makes its calls from."""
        assert self.furnished is not None
        return document_of(self.operation, self.furnished.inputs)

    def places(self, operation: AnyOperation, given: FuzzInput) -> Mapping[str, str | int | float]:
        """Where a generated call may name what is there, as Schemathesis calls the place."""
        inside = set(re.findall(r"\{(\w+)\}", operation.path))
        rest = "query" if operation.method in ("GET", "DELETE") else "body"
        return {f"{'path' if name in inside else rest}.{name}": value for name, value in plain_values(given).items()}

    async def _stand(self, receive: Receive, send: Send) -> None:
        await receive()
        async with open_service_house(self.folder, HOST) as self.house:
            self.furnished = await furnish(self.house, self.operation)
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def ask(self, scope: Scope, body: bytes, rest: Receive, send: Send) -> None:
        """One call; half of those that have to be confirmed are at once, and half of the notifications are signed as they must be."""
        house = self.house
        assert house is not None
        sure, door, headers = crc32(scope["query_string"] + body) % 2 == 0, house.world.door, list(scope["headers"])
        own = TOKEN in dict(headers)
        if sure and scope["path"] in NOTIFIED:
            headers = [*(pair for pair in headers if pair[0] != SIGNED), (SIGNED, signature(house.world, body).encode())]
        held: list[Message] = []

        async def pass_on(message: Message) -> None:
            waits = held or (sure and not own and message.get("status") == 202)
            await (hold(message) if waits else send(message))
            if message.get("status") == 429:
                self.come_back_later(int(dict(cast("list[tuple[bytes, bytes]]", message["headers"])).get(b"retry-after", b"0")))
            if message.get("more_body") and scope["path"] in FOLLOWED:
                house.world.clock.advance(STREAM_SECONDS_LIMIT)  # else the stream would end with the test

        async def hold(message: Message) -> None:
            held.append(message)

        await door({**scope, "headers": headers}, again(body, rest), pass_on)
        said = b"".join(message.get("body", b"") for message in held)  # pyright: ignore[reportArgumentType]
        token = orjson.loads(said).get("confirm_token") if said else None
        if token:
            await door({**scope, "headers": [*headers, (TOKEN, token.encode())]}, again(body, rest), send)
        else:
            for message in held:
                await send(message)

    def come_back_later(self, seconds: int) -> None:
        """Else a house where no time passes gives most examples the same refusal."""
        assert self.house is not None
        if 0 < seconds <= PATIENCE:
            self.house.world.clock.advance(seconds)


async def read(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message: Any = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


def again(body: bytes, rest: Receive) -> Receive:
    """A body that was read, for whoever asks next."""
    left = [body]

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop()} if left else await rest()

    return receive


async def send_json(send: Send, body: bytes, status: int = 200, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json"), *headers]})
    await send({"type": "http.response.body", "body": body})


@cache
def whole_service() -> Any:
    return build_openapi(CATALOGUE, SITE)


def document_of(operation: AnyOperation | None, inputs: Mapping[str, FuzzInput]) -> Any:
    """The document of one path or of all, with examples of what is there."""
    paths = {path: made for path, made in whole_service()["paths"].items() if operation is None or operation.path == path}
    found: Any = {**whole_service(), "paths": deepcopy(paths)}
    for methods in found["paths"].values():
        for made in methods.values():
            if made["operationId"] in inputs:
                exemplify(made, inputs[made["operationId"]])
    return found


def exemplify(made: Any, given: FuzzInput) -> None:
    """Put what is there in place of what is documented."""
    for parameter in made.get("parameters", []):
        if parameter.get("name") in given and parameter["in"] == "path":
            parameter["example"] = given[parameter["name"]]
    inside = {parameter["name"] for parameter in made.get("parameters", []) if parameter.get("in") == "path"}
    body = {name: value for name, value in given.items() if name not in inside}
    for content in made.get("requestBody", {}).get("content", {}).values():
        content["examples"] = {"there": {"value": body}}


def plain_values(given: FuzzInput) -> Mapping[str, str | int | float]:
    """The values that a binding can hold."""
    values = {name: value for name, value in given.items() if isinstance(value, (str, int, float)) and not isinstance(value, bool)}
    return {name: value for name, value in values.items() if value != ""}
