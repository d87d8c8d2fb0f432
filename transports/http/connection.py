"""What the door and the server protocol tell each other about a request, in the state of its scope."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from registry.errors import Refusal
from transports.http.asgi import Headers

REQUEST = "request_id"
"""Set by the door: the id of the request."""
TIMED_OUT = "timed_out"
"""Set by the protocol: the body did not arrive in time."""
ANSWER = "answer"
"""Set by the protocol: takes a whole answer at once."""
Answer: TypeAlias = Callable[[int, Headers, bytes], Awaitable[None]]
CALLED = "called"
"""Set by an inner application: the call that a request turned out to be, for its log line."""
OVERLOADED = "overloaded"
"""Set by the protocol: the refusal of everything but a probe, where the server or the client's network is at its limit."""

CORRELATION = "correlation"
"""Set in front of the door, behind a trusted proxy alone: by which names the request is known outside."""
LARGE_ANSWERS = "large_answers"
"""Set by the door for inner applications: counts answers above 1 MB."""


class Called(NamedTuple):
    """What was called, for whom, the code of the refusal if it was refused, and the id of the credential."""

    surface: str
    operation: str
    organisation: str
    code: str
    key: str


class Overloaded(Refusal):
    """The server holds as many connections, or answers in progress, as it may."""

    status = 503
    code = "overloaded"

    def __init__(self, message: str = "The server is at its limit of connections", *, hint: str = "Repeat the request in a second") -> None:
        super().__init__(message, hint=hint)
        self.headers.update({"Retry-After": "1", "Connection": "close"})
