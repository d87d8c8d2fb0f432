"""The ASGI types that the doors read and write, and what they tell each other about a request in the state of its scope."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Literal, NamedTuple, NotRequired, TypeAlias

from typing_extensions import TypedDict

from registry.errors import Refusal

Headers: TypeAlias = list[tuple[bytes, bytes]]
Scope: TypeAlias = MutableMapping[str, object]
Message: TypeAlias = MutableMapping[str, object]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class HttpScope(TypedDict):
    type: Literal["http"]
    method: str
    path: str
    raw_path: NotRequired[bytes | None]
    query_string: bytes
    headers: Headers
    client: NotRequired[tuple[str, int] | None]
    state: NotRequired[dict[str, object]]


class BodyMessage(TypedDict):
    """A piece of the request's body, or the news that the client has gone."""

    type: Literal["http.request", "http.disconnect"]
    body: NotRequired[bytes]
    more_body: NotRequired[bool]


STATE_REQUEST_ID = "request_id"
"""Set by the door: the id of the request."""
STATE_TIMED_OUT = "timed_out"
"""Set by the protocol: the body did not arrive in time."""
STATE_SEND_WHOLE = "answer"
"""Set by the protocol: takes a whole answer at once."""
SendWhole: TypeAlias = Callable[[int, Headers, bytes], Awaitable[None]]
STATE_CALL = "called"
"""Set by an inner application: the call that a request turned out to be, for its log line."""
STATE_OVERLOADED = "overloaded"
"""Set by the protocol: the refusal of everything but a probe, where the server or the client's network is at its limit."""

STATE_CORRELATION = "correlation"
"""Set in front of the door, behind a trusted proxy alone: by which names the request is known outside."""
STATE_LARGE_ANSWERS = "large_answers"
"""Set by the door for inner applications: counts answers above 1 MB."""


class CallSummary(NamedTuple):
    """What was called, for whom, the code of the refusal if it was refused, and the id of the credential."""

    surface: str
    operation: str
    organisation: str
    code: str
    key: str


class Overloaded(Refusal, status=503, code="overloaded"):
    """The server holds as many connections, or answers in progress, as it may."""

    def __init__(self, message: str = "The server is at its limit of connections", *, hint: str = "Repeat the request in a second") -> None:
        super().__init__(message, hint=hint)
        self.headers.update({"Retry-After": "1", "Connection": "close"})
