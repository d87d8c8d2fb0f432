"""A stand-in for the charging system: it speaks the wire from prebuilt bodies, so that it is never what is measured. Raw ASGI."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

from benchmarks.rivals.fleet import ACCOUNT, RESELLER, iccid, line, rule, seen

SINGLES = 200
STRANGER = SINGLES  # the line of another account
LISTED = 10_000
TARIFF_BYTES = 50_000_000
PIECE = 256 << 10
JSON = (b"content-type", b"application/json")
App = Callable[[dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]


def framed(key: str, payload: bytes) -> bytes:
    """The envelope of every answer."""
    return b'{"status":{"code":0,"msg":"OK"},"%s":%s}' % (key.encode(), payload)


def tariff(wanted: int) -> bytes:
    """Prices of the wanted size."""
    parts: list[bytes] = []
    size = 0
    while size < wanted:
        parts.append(orjson.dumps(rule(len(parts))))
        size += len(parts[-1]) + 1
    return framed("listTariffRule", b'{"rule":[%s]}' % b",".join(parts))


def single(number: int, account: int = ACCOUNT) -> bytes:
    """The answer for one line."""
    return framed("getSingleSubscriber", orjson.dumps({**line(number, account), "networkInfo": seen(number)}))


class Bodies:
    """Every answer, made once."""

    def __init__(self, lines: int = LISTED, tariff_bytes: int = TARIFF_BYTES) -> None:
        accounts = [{"id": ACCOUNT, "name": "Demo Retail", "balance": 412.5, "packageOnly": False}]
        resellers = {"reseller": [{"id": RESELLER, "name": "Fjord Mobile", "account": accounts}]}
        listed = {"subscriberList": [line(number) for number in range(lines)], "hasMore": False, "nbFound": lines}
        self.fixed = {
            "getResellerInfo": framed("getResellerInfo", orjson.dumps({"id": RESELLER, "name": "Fjord Mobile", "balance": "1530,20"})),
            "listResellerAccount": framed("listResellerAccount", orjson.dumps(resellers)),
            "listSubscriber": framed("listSubscriber", orjson.dumps(listed)),
            "getCustomerTariff": tariff(tariff_bytes),
        }
        self.lines = {iccid(number): single(number) for number in range(SINGLES)} | {iccid(STRANGER): single(STRANGER, ACCOUNT + 1)}

    def answer(self, asked: bytes) -> bytes:
        """What a call gets."""
        ((method, params),) = orjson.loads(asked).items()
        fixed = self.fixed.get(method)
        if fixed is not None:
            return fixed
        return self.lines.get(params["iccid"], b'{"status":{"code":6,"msg":"Not found"}}')


def make(data: Path) -> App:
    """The application, as it is measured."""
    return speaking(Bodies())


def speaking(bodies: Bodies) -> App:
    """The application with these answers."""

    async def app(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        asked, more = b"", True
        while more:
            message = await receive()
            asked, more = asked + message["body"], message["more_body"]
        answer = bodies.answer(asked) if asked else b"{}"
        await send({"type": "http.response.start", "status": 200, "headers": [JSON, (b"content-length", b"%d" % len(answer))]})
        whole = memoryview(answer)
        for start in range(0, len(answer) - PIECE, PIECE):
            await send({"type": "http.response.body", "body": bytes(whole[start : start + PIECE]), "more_body": True})
        rest = (len(answer) - 1) // PIECE * PIECE
        await send({"type": "http.response.body", "body": bytes(whole[rest:])})

    return app
