"""httpx over the connections of aiohttp: the pool of httpx looks at each connection for each request, and is many times slower at 64."""

import ssl

import aiohttp  # slow to import, so this file is imported when the first call is made
from httpx_aiohttp import AiohttpTransport

READ_AHEAD_BYTES = 1 << 18
"""Bytes that may wait unread on one connection: whole parts of a big answer pass in one piece."""
USER_AGENT = "connectivity-reseller"
"""Unless the caller gives another: some front ends refuse requests without one, and the library's own names its version."""
TRANSPORT_FAILURES = (aiohttp.ClientError,)
"""What the transport hands on of aiohttp's: those that it does not turn into an error of httpx."""


def aiohttp_transport(connector: aiohttp.BaseConnector, tls: ssl.SSLContext) -> AiohttpTransport:
    """Over the connections of `connector`, which is closed with it. No cookies, no proxies, no redirects, bodies as they come.

    A POST is sent once: aiohttp repeats only calls of idempotent methods, whose kept connection was just closed (RFC 9110 section 9.2.2).
    """
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        read_bufsize=READ_AHEAD_BYTES,
        headers={"user-agent": USER_AGENT},
        skip_auto_headers=("Content-Type",),
    )
    return AiohttpTransport(verify=tls, trust_env=False, client=session)
