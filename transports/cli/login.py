"""`reseller login` and `logout`: a person's own login at a server, which comes back to an address of this machine (RFC 8252, 7.3)."""

import asyncio
import base64
import hashlib
import sys
import webbrowser
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Annotated, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import typer

from clients.http import Outbound
from registry.clock import Clock, SystemClock
from registry.ids import Ids, SystemIds
from transports.cli.stored_logins import (
    AuthorizationServer,
    StoredLogin,
    TokenAnswer,
    discover_server,
    login_name,
    open_logins,
    post_form,
    printable_text,
    read_body_as,
    register_client,
    revoke_login,
    server_words,
    token_fields,
)
from transports.cli.terminal import Failure, Unreachable

CALLBACK_PATH = "/callback"
LARGEST_CALLBACK = 16 * 1024
CALLBACK_PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Connectivity reseller</title>"
    "<meta name=viewport content='width=device-width'><p style='font:1.1em system-ui;margin:3em'>"
)
LOGIN_TAKEN_TEXT = "Go back to the terminal; this page can be closed."
FOREIGN_ANSWER_TEXT = "This is not the answer to the login that the terminal waits for."
CALLBACK_HEADERS = (
    "Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nConnection: close\r\n"
)
CallbackAnswer = dict[str, str]


class CallbackListener:
    """Waits on a free port for the answer that carries the state of this login; whatever else comes by changes nothing."""

    def __init__(self, state: str) -> None:
        self.redirect_uri = ""
        self._state = state
        self._answer: asyncio.Future[CallbackAnswer] = asyncio.get_running_loop().create_future()

    async def wait(self, seconds: float) -> CallbackAnswer | None:
        """The parameters of the redirect; None after `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._answer
        return None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one connection. Browsers open some that they never use, so each is read separately."""
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text, answer = self._read(head.decode("latin-1").partition("\r\n")[0].split(" "))
                body = f"{CALLBACK_PAGE}{text}".encode() if text else b""
                writer.write(f"HTTP/1.1 {status}\r\n{CALLBACK_HEADERS}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
                if answer is not None and not self._answer.done():
                    self._answer.set_result(answer)
        finally:
            writer.close()

    def _read(self, request: list[str]) -> tuple[str, str, CallbackAnswer | None]:
        """Status, page and parameters for a request line."""
        parts = urlsplit(request[1] if len(request) == 3 and request[0] == "GET" else "")
        if parts.path != CALLBACK_PATH:
            return "404 Not Found", "", None
        answer = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if answer.get("state") != self._state:
            return "400 Bad Request", FOREIGN_ANSWER_TEXT, None
        return "200 OK", LOGIN_TAKEN_TEXT, answer


@asynccontextmanager
async def listen_for_callback(state: str) -> AsyncGenerator[CallbackListener]:
    """A listener on a free port until the block ends."""
    listener = CallbackListener(state)
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0, limit=LARGEST_CALLBACK)
    listener.redirect_uri = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{CALLBACK_PATH}"
    try:
        yield listener
    finally:
        server.close()


LOGIN_SCOPES = "read write admin"
LoginUrlOption = Annotated[str, typer.Option("--url", envvar="RESELLER_URL", help="The server, for example https://esim.example")]


class LoginOptions(NamedTuple):
    url: str
    browser: bool
    scope: str
    seconds: int


def login(
    url: LoginUrlOption,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser, or only print the address.")] = True,
    scope: Annotated[str, typer.Option("--scope", help="What this login may do at most; write and admin include read.")] = LOGIN_SCOPES,
    wait: Annotated[int, typer.Option("--wait", min=1, max=1800, help="Seconds until it gives up.")] = 600,
) -> None:
    """Log in at a server with your browser; commands with --url then need no --key.

    The login is kept in ~/.config/reseller (or $XDG_CONFIG_HOME/reseller), readable by you alone, and renews itself. `reseller logout`
    ends it. A key that is given counts instead of it. The browser must be on this machine: elsewhere use an API key.
    """
    clock = SystemClock()
    granted = asyncio.run(log_in(LoginOptions(login_name(url), browser, scope, wait), clock, SystemIds(clock)))
    sys.stdout.write(f"logged in at {login_name(url)} ({granted})\n")


def logout(url: LoginUrlOption) -> None:
    """End the login at a server: there, and here. API keys that were made with it end, too."""
    asyncio.run(log_out(login_name(url)))
    sys.stdout.write(f"logged out at {login_name(url)}\n")


async def log_in(options: LoginOptions, clock: Clock, ids: Ids) -> str:
    """Authorization code with PKCE (RFC 7636, RFC 8252); returns the granted scope."""
    outbound = Outbound()
    try:
        authority = await discover_server(outbound, options.url)
        state, verifier = random_text(ids), random_text(ids)
        async with listen_for_callback(state) as listener:
            client = await register_client(outbound, authority, listener.redirect_uri)
            code = authorization_code(
                await browser_answer(listener, authority, client, state, base64url(hashlib.sha256(verifier.encode()).digest()), options),
                authority,
                options.seconds,
            )
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": listener.redirect_uri,
            "code_verifier": verifier,
            "client_id": client,
            "resource": options.url,
        }
        answer = await post_form(outbound, authority.token_endpoint, form)
        tokens = read_body_as(answer, TokenAnswer) if answer.status == 200 else None
        if tokens is None:
            raise Failure(f"the login was not completed: {server_words(answer)}", exit_code=1)
    finally:
        await outbound.aclose()
    async with open_logins() as logins:
        # Choice: a login that stood here before is replaced and not ended, since keys that were made with it would end, too.
        logins[options.url] = new_login(authority, client, tokens, clock)
    return printable_text(tokens.scope or options.scope)


async def browser_answer(
    listener: CallbackListener, authority: AuthorizationServer, client: str, state: str, challenge: str, options: LoginOptions
) -> CallbackAnswer | None:
    """Sends the person to the authorization server; returns the parameters of the redirect."""
    query = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": listener.redirect_uri,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "state": state,
        "scope": options.scope,
        "resource": options.url,
    }
    endpoint = authority.authorization_endpoint
    address = f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"
    sys.stderr.write(f"Log in with your browser:\n\n{address}\n\n")
    sys.stderr.flush()
    if options.browser:
        webbrowser.open(address)
    return await listener.wait(options.seconds)


def authorization_code(answer: CallbackAnswer | None, authority: AuthorizationServer, seconds: int) -> str:
    """The code of the redirect. Raises Failure when it names another issuer (RFC 9207)."""
    if answer is None:
        raise Failure(f"nobody logged in within {seconds} seconds", exit_code=1)
    if answer.get("iss", authority.issuer) != authority.issuer:
        raise Failure("what came back is not of the server that was asked; nothing was kept", exit_code=1)
    if "code" not in answer:
        raise Failure(
            f"the login was refused: {printable_text(answer.get('error_description') or answer.get('error', 'no code'))}", exit_code=1
        )
    return answer["code"]


def new_login(authority: AuthorizationServer, client: str, tokens: TokenAnswer, clock: Clock) -> StoredLogin:
    endpoints = {"token_endpoint": authority.token_endpoint, "revocation_endpoint": authority.revocation_endpoint}
    return StoredLogin.model_validate(endpoints | {"client_id": client} | token_fields(tokens, clock))


async def log_out(url: str) -> None:
    """Deletes the login here first, so that an unreachable server keeps nobody logged in on this machine."""
    async with open_logins() as logins:
        found = logins.pop(url, None)
    if found is None:
        raise Failure(f"--url: there is no login at {url}", exit_code=1)
    outbound = Outbound()
    try:
        answer = await revoke_login(outbound, found)
    except Unreachable as away:
        raise Failure(f"forgotten here, but not ended there: {away.message} Your account page there ends it", exit_code=3) from None
    finally:
        await outbound.aclose()
    if answer.status != 200:
        raise Failure(f"forgotten here, but not ended there: {server_words(answer)}; your account page there ends it", exit_code=1)


def random_text(ids: Ids) -> str:
    """256 random bits, as a verifier or a state."""
    return base64url(ids.bytes(32))


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
