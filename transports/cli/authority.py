"""The authorization server of a service: where it is, and what it is asked."""

from typing import Annotated, TypeVar
from urllib.parse import urlencode, urlsplit

import orjson
from pydantic import BaseModel, Field, ValidationError

from clients.failure import OutboundFailed
from clients.http import Outbound, Reply
from transports.cli.credentials import Login
from transports.cli.failure import Failure, Unreachable

# What a server names is opened in a browser and printed on a terminal, so it is an address and nothing else.
Address = Annotated[str, Field(pattern=r"^https?://[!-~]+$")]
Token = Annotated[str, Field(pattern=r"^[!-~]+$")]
FORM = "application/x-www-form-urlencoded"
LONGEST = 200
USE_A_KEY = "use an API key: --key or RESELLER_API_KEY"


class Resource(BaseModel):
    """What a service says of itself (RFC 9728)."""

    resource: Address
    authorization_servers: tuple[Address, ...] = ()


class Authority(BaseModel):
    """Where its people log in (RFC 8414)."""

    issuer: str
    authorization_endpoint: Address
    token_endpoint: Address
    registration_endpoint: Address
    revocation_endpoint: Address


class Registered(BaseModel):
    """The name that a program got."""

    client_id: Token


class Tokens(BaseModel):
    """What a login is worth. Without a refresh token it ends with the access token."""

    access_token: Token
    refresh_token: str = ""
    expires_in: float = 0.0
    scope: str = ""


class Refused(BaseModel):
    """Why not (RFC 6749 section 5.2)."""

    error: str
    error_description: str = ""


Document = TypeVar("Document", bound=BaseModel)


async def discover(outbound: Outbound, base: str) -> Authority:
    """The authorization server that the service names."""
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise Failure("--url: must be http(s)://host[:port][/path], for example https://esim.example")
    address = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}/mcp"
    resource = await fetched(outbound, address, Resource)
    if resource is None:
        raise Failure(f"--url: {address} says nothing of a service; is {base} its address?", exit_code=1)
    if resource.resource != f"{base}/mcp":
        raise Failure(f"--url: the service there goes by another address: --url {resource.resource.removesuffix('/mcp')}", exit_code=1)
    if not resource.authorization_servers:
        raise Failure(f"--url: {base} names nobody to log in with; {USE_A_KEY}", exit_code=1)
    issuer = resource.authorization_servers[0]
    where = urlsplit(issuer)
    found = await fetched(outbound, f"{where.scheme}://{where.netloc}/.well-known/oauth-authorization-server{where.path}", Authority)
    if found is None or found.issuer != issuer or (parts.scheme == "https" and not secure(found)):
        raise Failure(f"--url: people sign in at {issuer}, where this program cannot log in by itself; {USE_A_KEY}", exit_code=1)
    return found


def secure(authority: Authority) -> bool:
    """Whether nothing travels in the clear."""
    return all(address.startswith("https://") for name, address in authority if name.endswith("_endpoint"))


async def register(outbound: Outbound, authority: Authority, redirect_uri: str) -> str:
    """A client id for this one login (RFC 7591): a public client, so there is no secret to keep."""
    asked = {
        "client_name": "reseller command line",
        "redirect_uris": [redirect_uri],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "native",
    }
    answer = await sent(outbound, "POST", authority.registration_endpoint, "application/json", orjson.dumps(asked))
    registered = read_as(answer, Registered) if answer.status == 201 else None
    if registered is None:
        raise Failure(f"the server did not register this program: {told(answer)}", exit_code=1)
    return registered.client_id


async def revoke(outbound: Outbound, login: Login) -> Reply:
    """End a login (RFC 7009)."""
    form = {"token": login.refresh_token or login.access_token, "client_id": login.client_id}
    return await post(outbound, login.revocation_endpoint, form)


async def fetched(outbound: Outbound, url: str, kind: type[Document]) -> Document | None:
    """A metadata document, if that is what is there."""
    answer = await sent(outbound, "GET", url)
    return read_as(answer, kind) if answer.status == 200 else None


async def post(outbound: Outbound, url: str, form: dict[str, str]) -> Reply:
    """A form, as the endpoints of OAuth take them."""
    return await sent(outbound, "POST", url, FORM, urlencode(form).encode())


async def sent(outbound: Outbound, method: str, url: str, media_type: str | None = None, content: bytes = b"") -> Reply:
    """One request."""
    headers = {"accept": "application/json"} | ({} if media_type is None else {"content-type": media_type})
    try:
        return await outbound.exchange(method, url, headers=headers, content=content)
    except OutboundFailed as error:
        parts = urlsplit(url)
        raise Unreachable(f"{parts.scheme}://{parts.netloc} does not answer ({error.kind}); is it running?", exit_code=3) from None


def read_as(answer: Reply, kind: type[Document]) -> Document | None:
    """The body, if it is one of these."""
    try:
        return kind.model_validate_json(answer.body)
    except ValidationError:
        return None


def refusal_of(answer: Reply) -> Refused:
    """What the server said went wrong: of OAuth, or of the service itself."""
    return read_as(answer, Refused) or Refused(error=f"HTTP {answer.status}")


def told(answer: Reply) -> str:
    """The same in words."""
    refused = refusal_of(answer)
    return plain(refused.error_description or refused.error)


def plain(text: str) -> str:
    """Somebody else's words, for a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text[:LONGEST])
