"""The ASGI shapes the door reads and writes."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

Headers: TypeAlias = list[tuple[bytes, bytes]]
Scope: TypeAlias = MutableMapping[str, object]
Message: TypeAlias = MutableMapping[str, object]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class HttpScope(TypedDict):
    """One HTTP request before its body."""

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
