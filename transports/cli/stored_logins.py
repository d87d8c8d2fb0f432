"""Logins of this user at servers elsewhere: kept in a file that only they can read, and renewed at the server's authorization server."""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, TextIO, TypeVar
from urllib.parse import urlencode, urlsplit

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from clients.http import HttpReply, Outbound, OutboundFailed
from registry.clock import Clock
from transports.cli.terminal import Failure, Unreachable

LOGIN_MARGIN_SECONDS = 30.0
LOCK_RETRY_SECONDS = 0.05


class StoredLogin(BaseModel):
    """A login at one server. `expires_at` is the access token's end, Unix seconds."""

    model_config = ConfigDict(frozen=True)

    token_endpoint: str
    revocation_endpoint: str
    client_id: str
    access_token: str
    refresh_token: str
    expires_at: float

    def lasts(self, clock: Clock) -> bool:
        """Whether the access token is good for one more call."""
        return self.expires_at - LOGIN_MARGIN_SECONDS > clock.now()


LOGINS_ADAPTER = TypeAdapter(dict[str, StoredLogin])


def logins_file() -> Path:
    """The file of logins (XDG base directories; a relative one is ignored). Raises Failure without a home directory."""
    try:
        named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
        return (named if named.is_absolute() else Path.home() / ".config") / "reseller" / "logins.json"
    except RuntimeError:
        raise Failure("there is no home directory to keep logins in; set XDG_CONFIG_HOME, or use --key") from None


def login_name(url: str) -> str:
    """The name under which the login at `url` is stored."""
    return url.rstrip("/")


def read_logins() -> dict[str, StoredLogin]:
    """The stored logins. Raises Failure for a file of another kind, which is not overwritten."""
    path = logins_file()
    try:
        return LOGINS_ADAPTER.validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Failure(f"{path}: cannot be read ({error.strerror}); mend that, or use --key") from None
    except ValidationError:
        raise Failure(f"{path}: holds no logins; remove it and log in again with `reseller login --url URL`") from None


@asynccontextmanager
async def open_logins() -> AsyncGenerator[dict[str, StoredLogin]]:
    """The logins, for one command at a time, since a refresh token works once. Changes are written when the block ends."""
    path = logins_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        lock = path.with_suffix(".lock").open("a")
    except OSError as error:
        raise Failure(f"{path.parent}: logins cannot be kept there ({error.strerror})") from None
    with lock:
        await lock_logins(lock)
        logins = read_logins()
        before = dict(logins)
        yield logins
        if logins != before:
            write_logins(path, logins)


async def lock_logins(lock: TextIO) -> None:
    """Waits until no other command, and no other task of this one, has the file open."""
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(LOCK_RETRY_SECONDS)


def write_logins(path: Path, logins: dict[str, StoredLogin]) -> None:
    """Replaces the file as a whole; others can never read it."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(LOGINS_ADAPTER.dump_json(logins))
    fresh.replace(path)


# What a server names is opened in a browser and printed on a terminal, so it is an address and nothing else.
WebAddress = Annotated[str, Field(pattern=r"^https?://[!-~]+$")]
VisibleToken = Annotated[str, Field(pattern=r"^[!-~]+$")]
TOKEN_FORM_TYPE = "application/x-www-form-urlencoded"
LONGEST_SERVER_TEXT = 200
USE_A_KEY = "use an API key: --key or RESELLER_API_KEY"


class ResourceMetadata(BaseModel):
    """What a service says of itself (RFC 9728)."""

    resource: WebAddress
    authorization_servers: tuple[WebAddress, ...] = ()


class AuthorizationServer(BaseModel):
    """Where its people log in (RFC 8414)."""

    issuer: str
    authorization_endpoint: WebAddress
    token_endpoint: WebAddress
    registration_endpoint: WebAddress
    revocation_endpoint: WebAddress


class RegisteredClient(BaseModel):
    """The name that a program got."""

    client_id: VisibleToken


class TokenAnswer(BaseModel):
    """What a login is worth. Without a refresh token it ends with the access token."""

    access_token: VisibleToken
    refresh_token: str = ""
    expires_in: float = 0.0
    scope: str = ""


class OauthRefusal(BaseModel):
    """Why not (RFC 6749 section 5.2)."""

    error: str
    error_description: str = ""


Document = TypeVar("Document", bound=BaseModel)


async def discover_server(outbound: Outbound, base: str) -> AuthorizationServer:
    """The authorization server that the service at `base` names. Raises Failure. Waits for the network."""
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise Failure("--url: must be http(s)://host[:port][/path], for example https://esim.example")
    address = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}/mcp"
    resource = await fetch_metadata(outbound, address, ResourceMetadata)
    if resource is None:
        raise Failure(f"--url: {address} says nothing of a service; is {base} its address?", exit_code=1)
    if resource.resource != f"{base}/mcp":
        raise Failure(f"--url: the service there goes by another address: --url {resource.resource.removesuffix('/mcp')}", exit_code=1)
    if not resource.authorization_servers:
        raise Failure(f"--url: {base} names nobody to log in with; {USE_A_KEY}", exit_code=1)
    issuer = resource.authorization_servers[0]
    where = urlsplit(issuer)
    found = await fetch_metadata(
        outbound, f"{where.scheme}://{where.netloc}/.well-known/oauth-authorization-server{where.path}", AuthorizationServer
    )
    if found is None or found.issuer != issuer or (parts.scheme == "https" and not is_secure(found)):
        raise Failure(f"--url: people sign in at {issuer}, where this program cannot log in by itself; {USE_A_KEY}", exit_code=1)
    return found


def is_secure(authority: AuthorizationServer) -> bool:
    """Whether all its endpoints are https."""
    return all(address.startswith("https://") for name, address in authority if name.endswith("_endpoint"))


async def register_client(outbound: Outbound, authority: AuthorizationServer, redirect_uri: str) -> str:
    """A client id for this one login (RFC 7591); a public client has no secret. Raises Failure. Waits for the network."""
    metadata = {
        "client_name": "reseller command line",
        "redirect_uris": [redirect_uri],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "native",
    }
    answer = await send_request(outbound, "POST", authority.registration_endpoint, "application/json", orjson.dumps(metadata))
    registered = read_body_as(answer, RegisteredClient) if answer.status == 201 else None
    if registered is None:
        raise Failure(f"the server did not register this program: {server_words(answer)}", exit_code=1)
    return registered.client_id


async def revoke_login(outbound: Outbound, login: StoredLogin) -> HttpReply:
    """Ends a login (RFC 7009). Waits for the network."""
    form = {"token": login.refresh_token or login.access_token, "client_id": login.client_id}
    return await post_form(outbound, login.revocation_endpoint, form)


async def fetch_metadata(outbound: Outbound, url: str, kind: type[Document]) -> Document | None:
    """The metadata document at `url`; None if there is none."""
    answer = await send_request(outbound, "GET", url)
    return read_body_as(answer, kind) if answer.status == 200 else None


async def post_form(outbound: Outbound, url: str, form: dict[str, str]) -> HttpReply:
    """Posts a form, as OAuth endpoints take them. Raises Unreachable."""
    return await send_request(outbound, "POST", url, TOKEN_FORM_TYPE, urlencode(form).encode())


async def send_request(outbound: Outbound, method: str, url: str, media_type: str | None = None, content: bytes = b"") -> HttpReply:
    headers = {"accept": "application/json"} | ({} if media_type is None else {"content-type": media_type})
    try:
        return await outbound.exchange(method, url, headers=headers, content=content)
    except OutboundFailed as error:
        parts = urlsplit(url)
        raise Unreachable(f"{parts.scheme}://{parts.netloc} does not answer ({error.kind}); is it running?", exit_code=3) from None


def read_body_as(answer: HttpReply, kind: type[Document]) -> Document | None:
    """The body as `kind`; None if it is something else."""
    try:
        return kind.model_validate_json(answer.body)
    except ValidationError:
        return None


def read_refusal(answer: HttpReply) -> OauthRefusal:
    return read_body_as(answer, OauthRefusal) or OauthRefusal(error=f"HTTP {answer.status}")


def server_words(answer: HttpReply) -> str:
    """The server's refusal in words."""
    refused = read_refusal(answer)
    return printable_text(refused.error_description or refused.error)


def printable_text(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text[:LONGEST_SERVER_TEXT])


ENDED_LOGIN_ERRORS = ("invalid_grant", "invalid_client")


async def stored_token(url: str, clock: Clock) -> str | None:
    """The access token of the login at `url`, renewed if needed; None without a login. Raises Failure."""
    name = login_name(url)
    found = read_logins().get(name)
    if found is None or found.lasts(clock):
        return found and found.access_token
    async with open_logins() as logins:
        found = logins.get(name)
        if found is None or found.lasts(clock):  # another command was faster
            return found and found.access_token
        fresh = await renew_login(found, clock)
        if fresh is None:
            del logins[name]
        else:
            logins[name] = fresh
    if fresh is None:
        raise Failure(f"the login at {name} has ended; log in again with `reseller login --url {name}`, or use --key", exit_code=1)
    return fresh.access_token


async def renew_login(login: StoredLogin, clock: Clock) -> StoredLogin | None:
    """The login with new tokens; None when it has ended. After any other trouble it is kept, since a later try may succeed."""
    if not login.refresh_token:
        return None
    form = {"grant_type": "refresh_token", "refresh_token": login.refresh_token, "client_id": login.client_id}
    outbound = Outbound()
    try:
        answer = await post_form(outbound, login.token_endpoint, form)
    finally:
        await outbound.aclose()
    tokens = read_body_as(answer, TokenAnswer) if answer.status == 200 else None
    if tokens is not None:
        return login.model_copy(
            update=token_fields(tokens, clock) | ({} if tokens.refresh_token else {"refresh_token": login.refresh_token})
        )
    if read_refusal(answer).error in ENDED_LOGIN_ERRORS:
        return None
    raise Unreachable(f"the login could not be renewed: {server_words(answer)}; try again", exit_code=3)


def token_fields(tokens: TokenAnswer, clock: Clock) -> dict[str, object]:
    return {
        "access_token": tokens.access_token,
        "refresh_token": tokens.refresh_token,
        "expires_at": clock.now() + tokens.expires_in,
    }
