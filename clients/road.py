"""A way for requests to leave the house: over sockets, or to a program in this process."""

from collections.abc import Mapping
from typing import Protocol


class Arrived(Protocol):
    """The beginning of an answer. Whoever got it closes it; closing early gives the connection up."""

    @property
    def status(self) -> int:
        """The status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name; what came several times is joined by commas."""
        ...

    async def read(self) -> bytes:
        """The raw bytes that came next; none at the end."""
        ...

    async def aclose(self) -> None:
        """Done with it."""
        ...


class Road(Protocol):
    """Sends requests. Follows no redirect, keeps no cookie, repeats nothing, asks no proxy."""

    failures: tuple[type[Exception], ...]
    """What `send`, `read` and `aclose` raise when the other side or the network fails."""

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> Arrived:
        """Send a request and wait for the head of its answer."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...
