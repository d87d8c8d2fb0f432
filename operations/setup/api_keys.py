"""API keys of the caller's organisation."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.api_key import new_api_key
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, operation
from registry.policy import stamp
from storage.accounts import create_person
from storage.connection import Connection
from storage.keys import insert_key

YEAR = 31_536_000


class NewApiKey(Input):
    """What the key is called and how long it lives."""

    name: Annotated[str, Field(min_length=1, max_length=64, description="What the key is for, 1-64 characters.")]
    description: Annotated[str | None, Field(max_length=256, description="A note, at most 256 characters.")] = None
    seconds_until_expiration: Annotated[
        int | None, Field(ge=60, le=YEAR, description="Lifetime in seconds, 60-31536000; absent: it never expires.")
    ] = None


class ApiKey(TypedDict):
    """A new key; `secret` appears in this answer only. Times are RFC 3339 UTC."""

    id: str
    object: Literal["api_key"]
    name: str
    description: str | None
    organization_id: str | None
    secret: str
    created_at: str
    expires_at: str | None


EXAMPLE: ApiKey = {
    "id": "key_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "object": "api_key",
    "name": "order service",
    "description": None,
    "organization_id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "secret": "ak_...",
    "created_at": "2026-11-20T09:00:00Z",
    "expires_at": "2027-11-20T09:00:00Z",
}


@operation(
    "POST",
    "/v1/api-keys",
    scope=Scope.ANY,
    organisation=False,
    status=201,
    title="Create API key",
    examples=[
        Example("A key for the order service, valid for a year", {"name": "order service", "seconds_until_expiration": YEAR}, EXAMPLE)
    ],
)
async def create_api_key(ctx: Ctx, params: NewApiKey) -> ApiKey:
    """Create an API key for your organisation; the secret is shown once.

    The key can do what its maker can do, and no more; made with a key, it ends with that key at the latest.
    Keep `secret` safe: it cannot be read again.

    The key acts for the organisation with the role of its maker and stops working when the maker leaves it.
    It carries no scopes of its own: sending `scopes` is refused. A caller without an organisation gets a key bound to the
    person, with which operations that act for an organisation answer 409. Only a SHA-256 of the key is stored.
    """
    key, caller, deps = new_api_key(ctx.deps.ids), ctx.caller, ctx.deps
    wanted = None if params.seconds_until_expiration is None else int(ctx.now) + params.seconds_until_expiration
    expires = min((end for end in (wanted, caller.expires_at) if end is not None), default=None)
    answer: ApiKey = {
        "id": deps.ids.new("key_"),
        "object": "api_key",
        "name": params.name,
        "description": params.description,
        "organization_id": caller.organisation or None,
        "secret": key.secret,
        "created_at": stamp(ctx.now),
        "expires_at": None if expires is None else stamp(expires),
    }
    return await ctx.settle(
        answer,
        keep_key,
        id=answer["id"],
        digest=key.digest,
        prefix=key.prefix,
        organisation=answer["organization_id"],
        person=caller.principal,
        name=params.name,
        description=params.description,
        expires_at=expires,
        now=ctx.now,
    )


def keep_key(
    connection: Connection,
    *,
    id: str,
    digest: bytes,
    prefix: str,
    organisation: str | None,
    person: str,
    name: str,
    description: str | None,
    expires_at: int | None,
    now: float,
) -> None:
    """The key's row; a person of an external identity provider gets theirs with their first key."""
    create_person(connection, id=person, now=now)
    insert_key(
        connection,
        id=id,
        digest=digest,
        prefix=prefix,
        organisation=organisation,
        person=person,
        name=name,
        description=description,
        expires_at=expires_at,
        now=now,
    )
