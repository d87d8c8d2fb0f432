"""`reseller login` and `logout`: a person's own login at a server, in place of an API key."""

import asyncio
import base64
import hashlib
import sys
import webbrowser
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

import typer

from clients.http import Outbound
from registry.clock import Clock, SystemClock
from registry.ids import Ids, SystemIds
from transports.cli.authority import Authority, Tokens, discover, plain, post, read_as, register, revoke, told
from transports.cli.credentials import Login, name_of, opened
from transports.cli.failure import Failure, Unreachable
from transports.cli.loopback import Answer, Listener, listening
from transports.cli.stored_login import lasting

SCOPES = "read write admin"
Url = Annotated[str, typer.Option("--url", envvar="RESELLER_URL", help="The server, for example https://esim.example")]


class Wanted(NamedTuple):
    """How somebody wants to log in."""

    url: str
    browser: bool
    scope: str
    seconds: int


def login(
    url: Url,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser, or only print the address.")] = True,
    scope: Annotated[str, typer.Option("--scope", help="What this login may do at most; write and admin include read.")] = SCOPES,
    wait: Annotated[int, typer.Option("--wait", min=1, max=1800, help="Seconds until it gives up.")] = 600,
) -> None:
    """Log in at a server with your browser; commands with --url then need no --key.

    The login is kept in ~/.config/reseller (or $XDG_CONFIG_HOME/reseller), readable by you alone, and renews itself. `reseller logout`
    ends it. A key that is given counts instead of it. The browser must be on this machine: elsewhere use an API key.
    """
    clock = SystemClock()
    granted = asyncio.run(log_in(Wanted(name_of(url), browser, scope, wait), clock, SystemIds(clock)))
    sys.stdout.write(f"logged in at {name_of(url)} ({granted})\n")


def logout(url: Url) -> None:
    """End the login at a server: there, and here. API keys that were made with it end, too."""
    asyncio.run(log_out(name_of(url)))
    sys.stdout.write(f"logged out at {name_of(url)}\n")


async def log_in(wanted: Wanted, clock: Clock, ids: Ids) -> str:
    """Authorization code with PKCE (RFC 7636, RFC 8252): what was granted."""
    outbound = Outbound()
    try:
        authority = await discover(outbound, wanted.url)
        state, verifier = opaque(ids), opaque(ids)
        async with listening(state) as listener:
            client = await register(outbound, authority, listener.redirect_uri)
            code = code_of(await asked(listener, authority, client, state, challenge(verifier), wanted), authority, wanted.seconds)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": listener.redirect_uri,
            "code_verifier": verifier,
            "client_id": client,
            "resource": wanted.url,
        }
        answer = await post(outbound, authority.token_endpoint, form)
        tokens = read_as(answer, Tokens) if answer.status == 200 else None
        if tokens is None:
            raise Failure(f"the login was not completed: {told(answer)}", exit_code=1)
    finally:
        await outbound.aclose()
    async with opened() as logins:
        # Choice: a login that stood here before is replaced and not ended, since keys that were made with it would end, too.
        logins[wanted.url] = made(authority, client, tokens, clock)
    return plain(tokens.scope or wanted.scope)


async def asked(listener: Listener, authority: Authority, client: str, state: str, challenge: str, wanted: Wanted) -> Answer | None:
    """Send the person to the authorization server; what their browser brings back."""
    query = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": listener.redirect_uri,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "state": state,
        "scope": wanted.scope,
        "resource": wanted.url,
    }
    endpoint = authority.authorization_endpoint
    address = f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"
    sys.stderr.write(f"Log in with your browser:\n\n{address}\n\n")
    sys.stderr.flush()
    if wanted.browser:
        webbrowser.open(address)
    return await listener.wait(wanted.seconds)


def code_of(answer: Answer | None, authority: Authority, seconds: int) -> str:
    """The code of the redirect. An issuer that is named must be the one that was asked (RFC 9207)."""
    if answer is None:
        raise Failure(f"nobody logged in within {seconds} seconds", exit_code=1)
    if answer.get("iss", authority.issuer) != authority.issuer:
        raise Failure("what came back is not of the server that was asked; nothing was kept", exit_code=1)
    if "code" not in answer:
        raise Failure(f"the login was refused: {plain(answer.get('error_description') or answer.get('error', 'no code'))}", exit_code=1)
    return answer["code"]


def made(authority: Authority, client: str, tokens: Tokens, clock: Clock) -> Login:
    """A login as it is kept."""
    endpoints = {"token_endpoint": authority.token_endpoint, "revocation_endpoint": authority.revocation_endpoint}
    return Login.model_validate(endpoints | {"client_id": client} | lasting(tokens, clock))


async def log_out(url: str) -> None:
    """Forgotten here first: a server that is away keeps nobody logged in on this machine."""
    async with opened() as logins:
        found = logins.pop(url, None)
    if found is None:
        raise Failure(f"--url: there is no login at {url}", exit_code=1)
    outbound = Outbound()
    try:
        answer = await revoke(outbound, found)
    except Unreachable as away:
        raise Failure(f"forgotten here, but not ended there: {away.message} Your account page there ends it", exit_code=3) from None
    finally:
        await outbound.aclose()
    if answer.status != 200:
        raise Failure(f"forgotten here, but not ended there: {told(answer)}; your account page there ends it", exit_code=1)


def challenge(verifier: str) -> str:
    """What the authorization server sees of the verifier."""
    return encoded(hashlib.sha256(verifier.encode()).digest())


def opaque(ids: Ids) -> str:
    """256 random bits, as a verifier or a state."""
    return encoded(ids.bytes(32))


def encoded(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
