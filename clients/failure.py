"""Why an outbound request got no answer, as one short class and never as text of the other side."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from typing import Literal

FailureKind = Literal["timeout", "tls", "blocked", "refused", "dns", "network", "protocol"]
NEVER_SENT: frozenset[FailureKind] = frozenset({"refused", "dns", "blocked"})
"""These happen before a byte is sent."""


class Blocked(OSError):
    """An address that must not be reached; an OSError, because only that type passes the connector unharmed."""


class OutboundFailed(Exception):
    """No complete answer arrived. Carries the class only: addresses and foreign text stay out of logs."""

    def __init__(self, kind: FailureKind) -> None:
        super().__init__(f"The outside system gave no usable answer ({kind}).")
        self.kind: FailureKind = kind


def failure_kind(error: BaseException) -> FailureKind:
    """Class of a failed request; the cause decides, since the transport reports any failed connect as a timeout."""
    causes = list(_causes(error))
    for types, kind in _KINDS:
        if any(isinstance(cause, types) for cause in causes):
            return kind
    return _kind_by_name(causes)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Walk the error, its causes and what aiohttp wraps as `os_error`, each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        wrapped: object = getattr(cause, "os_error", None)
        waiting += [cause.__cause__, cause.__context__, wrapped if isinstance(wrapped, BaseException) else None]


def _kind_by_name(causes: list[BaseException]) -> FailureKind:
    """Fall back to the names of the library's types, so that this file needs no import of them."""
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    if names & {"ClientSSLError", "ClientConnectorCertificateError"}:
        return "tls"
    if "ClientConnectorDNSError" in names:
        return "dns"
    if names & {"ClientConnectionError", "ClientPayloadError", "NetworkError"}:
        return "network"
    if names & {"TimeoutException", "ServerTimeoutError"}:
        return "timeout"
    return "protocol"


# The order matters: a certificate error is an OSError too, and a blocked address hides inside a connect timeout.
_KINDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], FailureKind], ...] = (
    (Blocked, "blocked"),
    ((ssl.SSLError, ssl.CertificateError), "tls"),
    (socket.gaierror, "dns"),
    (ConnectionRefusedError, "refused"),
    ((TimeoutError, asyncio.TimeoutError), "timeout"),
    (ConnectionError, "network"),
)
