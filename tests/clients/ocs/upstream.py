"""A charging system that answers by script and notes what it was asked."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import anyio
import httpx
import orjson

from clients.http import Outbound, OutboundLimits
from clients.ocs.client import Ocs
from clients.ocs.link import OcsLink, OcsSettings
from clients.ocs.places import TokenPlaces
from tests.clients.clock import ManualClock

URL = "https://ocs.example/ocs-custo/main/v1"
ODD_TOKEN = "t0k3n-s3cret+/ &%"
OK = {"code": 0, "msg": "OK"}

UpstreamAnswer = Callable[[], "httpx.Response | Exception"]


@dataclass
class Upstream(httpx.AsyncBaseTransport):
    """Each answer is used once, the last one for ever."""

    answers: list[UpstreamAnswer]
    requests: list[httpx.Request] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    gate: anyio.Event | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            if self.gate is not None:
                await self.gate.wait()
        finally:
            self.at_once -= 1
        answer = (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def bodies(self) -> list[object]:
        return [orjson.loads(request.content) for request in self.requests]

    def outbound(self, seconds: float = 20.0) -> Outbound:
        return Outbound(OutboundLimits(total_seconds=seconds), transport=self)

    def ocs(self, settings: OcsSettings | None = None, token: str = ODD_TOKEN, places: TokenPlaces | None = None) -> Ocs:
        settings = settings or OcsSettings(URL, backoff_seconds=0)
        return Ocs(OcsLink(self.outbound(settings.total_seconds), settings, token, ManualClock(), places=places))


def raw(body: bytes, status: int = 200) -> UpstreamAnswer:
    return lambda: httpx.Response(status, stream=httpx.ByteStream(body))


def reply(method: str | None = None, payload: object = None, *, code: object = 0, msg: str = "OK") -> UpstreamAnswer:
    document: dict[str, object] = {"status": {"code": code, "msg": msg}}
    if method is not None:
        document[method] = payload
    return raw(orjson.dumps(document))


def broken(error: Exception) -> UpstreamAnswer:
    return lambda: error


class Chunked(httpx.AsyncByteStream):
    """A body in parts; `error` ends it, and closing is noted."""

    def __init__(self, parts: list[bytes], error: Exception | None = None) -> None:
        self.parts = parts
        self.error = error
        self.given = 0
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            self.given += 1
            yield part
        if self.error is not None:
            raise self.error

    async def aclose(self) -> None:
        self.closed = True

    def answer(self) -> httpx.Response:
        return httpx.Response(200, stream=self)


def upstream(*answers: UpstreamAnswer) -> Upstream:
    return Upstream(list(answers) or [reply()])
