"""API keys of the caller's organisation, or of the person where there is none; and what a key may be restricted to."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import TypedDict

from operations.deps import Ctx, Deps
from operations.event_types.organisation import CreatedKey
from operations.people.organisation_events import log_ended_keys, log_key_created
from operations.secret_tokens import new_api_key
from operations.setup.credentials.limit_warnings import KeyWarning, warnings_of_new_key
from operations.setup.credentials.restrictions import KeyRestrictions, ShownRestrictions, effective_restrictions, shown_restrictions
from operations.setup.credentials.worst_case import WorstCase, worst_case
from operations.setup.members import membership_changed
from operations.vocabulary import ListOf, ListPage, list_page, plain_line, render_fields
from registry.caller import UNRESTRICTED, Caller, Restrictions
from registry.clock import rfc3339_utc
from registry.errors import BadRequest, NotFound, Restricted, Unauthorized
from registry.free_text import FreeText
from registry.ids import Ids
from registry.operation import AuthorityChange, Example, Input, Scope, SpendKind, operation
from storage.access_grants import hold_credential
from storage.api_keys import ApiKeyRow, end_key, find_key_row, insert_key, list_keys, list_own_keys, read_restrictions, write_restrictions
from storage.directory import scopes_left
from storage.engine.sql import Connection
from storage.members import hold_membership
from storage.organisations import lock_organisation
from storage.people import create_person

_YEAR_SECONDS = 31_536_000


class NewApiKey(Input):
    """What the key is called, how long it lives, and what it may not do."""

    name: Annotated[
        str, Field(min_length=1, max_length=64, description="What the key is for, 1-64 characters."), AfterValidator(plain_line)
    ]
    description: Annotated[str | None, Field(max_length=256, description="A note, at most 256 characters.")] = None
    seconds_until_expiration: Annotated[
        int | None,
        Field(
            ge=60,
            le=_YEAR_SECONDS,
            description="Lifetime in seconds, 60-31536000; absent: it never expires, but ends with the credential it is made with.",
        ),
    ] = None
    restrictions: Annotated[KeyRestrictions | None, Field(description="What it may not do although you may; absent: nothing.")] = None

    @model_validator(mode="before")
    @classmethod
    def _no_scopes(cls, given: object) -> object:
        if isinstance(given, dict) and "scopes" in given:
            raise BadRequest(
                "scopes: a key carries no scopes of its own; it may do what its maker may at the moment of each call",
                code="unknown_field",
                param="scopes",
                hint='To make it do less, send restrictions, for example {"read_only": true} or {"toolsets": ["connectivity"]}',
            )
        return given  # pyright: ignore[reportUnknownVariableType]  # JSON: the fields give it its types


class ApiKey(TypedDict):
    """A new key; `secret` appears in this answer only. Times are RFC 3339 UTC."""

    id: str
    object: Literal["api_key"]
    name: FreeText
    description: FreeText | None
    organization_id: str | None
    secret: str
    created_at: str
    expires_at: str | None
    restrictions: ShownRestrictions | None
    worst_case: Annotated[WorstCase | None, Field(description="Null: the key does what its maker does")]
    warnings: Annotated[list[KeyWarning], Field(description="Restrictions that have no effect, or another one than it seems")]


class Maker(TypedDict):
    """Who made a key."""

    id: str
    name: FreeText | None


class ListedApiKey(TypedDict):
    """A key without its secret. `last_used_on` is a UTC day; `made_with` the key or login (gnt_) it was made with, if any."""

    id: str
    object: Literal["api_key"]
    name: FreeText
    description: FreeText | None
    organization_id: str | None
    prefix: Annotated[str, Field(description="The first characters of the secret")]
    status: Literal["active", "expired", "revoked"]
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_on: str | None
    restrictions: ShownRestrictions | None
    made_by: Maker
    made_with: str | None


class KeyRef(Input):
    """Which key."""

    id: Annotated[str, Field(max_length=64, description="Key id, key_...")]


_KEY_ID_EXAMPLE = "key_01k0a8w7zv6q4k3m2n1p0r9s8t"
_KEY_ORGANISATION_EXAMPLE = "org_01k0a8w7zv6q4k3m2n1p0r9s8t"
_READ_ONLY_EXAMPLE: ShownRestrictions = {
    "read_only": True,
    "no_admin": False,
    "toolsets": ["subscribers"],
    "iccids": None,
    "account_ids": None,
    "calls_per_day": 1000,
    "tags": None,
    "spend_per_call": None,
    "spend_per_day": None,
    "spend_per_month": None,
    "times": None,
    "approve_above": None,
    "approval": "none",
    "another_person": False,
    "inherited": [],
}
_API_KEY_EXAMPLE: ApiKey = {
    "id": _KEY_ID_EXAMPLE,
    "object": "api_key",
    "name": "order service",
    "description": None,
    "organization_id": _KEY_ORGANISATION_EXAMPLE,
    "secret": "ak_...",
    "created_at": "2026-11-20T09:00:00Z",
    "expires_at": "2027-11-20T09:00:00Z",
    "restrictions": None,
    "worst_case": None,
    "warnings": [],
}
_READ_ONLY_WORST_CASE: WorstCase = {
    "sentence": "In a UTC day at most 1000 calls, 0 lines, 0.00 EUR; no operation that cannot be undone",
    "calls": 1000,
    "lines": 0,
    "money_a_day": {"amount": 0, "currency": "EUR"},
    "money_a_month": {"amount": 0, "currency": "EUR"},
    "cannot_be_undone": [],
    "waits_for_approval": [],
    "finite": True,
}
_LISTED_API_KEY_EXAMPLE: ListedApiKey = {
    "id": _KEY_ID_EXAMPLE,
    "object": "api_key",
    "name": "support desk",
    "description": None,
    "organization_id": _KEY_ORGANISATION_EXAMPLE,
    "prefix": "ak_7Gk2mQ9xT",
    "status": "active",
    "created_at": "2026-11-20T09:00:00Z",
    "expires_at": None,
    "revoked_at": None,
    "last_used_on": "2026-11-21",
    "restrictions": _READ_ONLY_EXAMPLE,
    "made_by": {"id": "usr_01k0a8w7zv6q4k3m2n1p0r9s8t", "name": "Ada Berg"},
    "made_with": None,
}


async def _restrictions_within_maker(ctx: Ctx, params: NewApiKey) -> Restrictions:
    """What the key is held to. Its secret is never replayed to another credential, which might do less than the key."""
    ctx.mark_answer_private()
    known = ctx.deps.internal_calls.pipeline.catalogue.operations
    return effective_restrictions(params.restrictions, ctx.caller, ctx.deps.toolsets, known)


def worst_case_of_new_key(deps: Deps, maker: Caller, held: Restrictions) -> WorstCase | None:
    """The most that a key of `maker` that is held to `held` can do; None for a key without restrictions."""
    if held == UNRESTRICTED:
        return None
    key = replace(maker, kind="key", scopes=maker.scopes & int(scopes_left(held)), restrictions=held)
    return worst_case(deps.internal_calls.pipeline.catalogue, key)


def preview_key(deps: Deps, maker: Caller, asked: KeyRestrictions) -> WorstCase | None:
    """The worst case of a key that `maker` would make with these restrictions. Raises BadRequest or Restricted, as making it would."""
    held = effective_restrictions(asked, maker, deps.toolsets, deps.internal_calls.pipeline.catalogue.operations)
    return worst_case_of_new_key(deps, maker, held)


@operation(
    "POST",
    "/v1/api-keys",
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    organisation=False,
    status=201,
    authority=AuthorityChange(narrower=True),
    access=_restrictions_within_maker,
    title="Create API key",
    raises=[Restricted],
    examples=[
        Example(
            "A key for the order service, valid for a year",
            {"name": "order service", "seconds_until_expiration": _YEAR_SECONDS},
            _API_KEY_EXAMPLE,
        ),
        Example(
            "A key for the support desk, which only looks at lines, a thousand times a day",
            {"name": "support desk", "restrictions": {"read_only": True, "toolsets": ["subscribers"], "calls_per_day": 1000}},
            {
                **_API_KEY_EXAMPLE,
                "name": "support desk",
                "expires_at": None,
                "restrictions": _READ_ONLY_EXAMPLE,
                "worst_case": _READ_ONLY_WORST_CASE,
            },
        ),
    ],
)
async def create_api_key(ctx: Ctx, params: NewApiKey, held: Restrictions) -> ApiKey:
    """Create an API key for your organisation; the secret is shown once.

    The key can do what its maker can do, and no more; made with a key, it ends with that key at the latest.
    Keep `secret` safe: it cannot be read again. `restrictions` make it do less; `warnings` name those without effect.

    The key acts for the organisation with the role of its maker and stops working when the maker leaves it.
    It carries no scopes of its own: sending `scopes` is refused. `restrictions` only take away: `read_only`, `toolsets`, `iccids` (1-100
    lines), `account_ids` (1-100 accounts), `calls_per_day`. A key for named lines or accounts may call only what names one of them;
    everything else answers 403 `credential_restricted`. A key made with a restricted credential inherits its restrictions, and shares the
    count of its `calls_per_day`; asking for more than that credential may is refused. A key that was made with a login or with another
    key is revoked along with it. A caller without an organisation gets a key bound to the person, with which operations that act for an
    organisation answer 409. Only a SHA-256 of the key is stored.
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
        "created_at": rfc3339_utc(ctx.now),
        "expires_at": None if expires is None else rfc3339_utc(expires),
        "restrictions": shown_restrictions(held),
        "worst_case": worst_case_of_new_key(deps, caller, held),
        "warnings": await warnings_of_new_key(deps, caller, held),
    }
    return await ctx.settle(
        answer,
        insert_api_key,
        id=answer["id"],
        digest=key.digest,
        prefix=key.prefix,
        organisation=answer["organization_id"],
        person=caller.principal,
        name=params.name,
        description=params.description,
        expires_at=expires,
        restrictions=write_restrictions(held),
        made_with=caller.key_id or None,
        ids=deps.ids,
        now=ctx.now,
    )


def insert_api_key(
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
    restrictions: str | None,
    made_with: str | None,
    ids: Ids,
    now: float,
) -> None:
    """The key's row, unless its maker has just left, or what it is made with has ended; a person of an external identity provider gets
    theirs with their first key."""
    # The membership is held first, in the order in which whoever ends it takes the two.
    if organisation is not None and hold_membership(connection, person=person, organisation=organisation) is None:
        raise membership_changed()
    if made_with is not None and not hold_credential(connection, credential=made_with, now=now):
        raise Unauthorized("The credential has ended since the call began; nothing was done", presented=True)
    create_person(connection, id=person, now=now)
    if organisation is not None and read_restrictions(restrictions).tags is not None:
        lock_organisation(connection, organisation=organisation)  # whoever sets or removes these tags does it before, or sees the key
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
        restrictions=restrictions,
        made_with=made_with,
        now=now,
    )
    if organisation is not None:
        key: CreatedKey = {"key": id, "prefix": prefix, "made_by": person, "made_with": made_with, "restricted": restrictions is not None}
        log_key_created(connection, organisation=organisation, key=key, ids=ids, now=now)


@operation(
    "GET",
    "/v1/api-keys",
    organisation=False,
    tool=False,
    title="List API keys",
    examples=[Example("Which keys are there?", {}, {"object": "list", "data": [_LISTED_API_KEY_EXAMPLE], "has_more": False})],
)
async def list_api_keys(ctx: Ctx, params: ListPage) -> ListOf[ListedApiKey]:
    """List the API keys of your organisation, newest first; never a secret.

    Every member sees all of them, expired and revoked ones too. Without an organisation: your own.
    """
    after, most, caller, store = params.starting_after, params.limit + 1, ctx.caller, ctx.deps.store
    if caller.organisation:
        rows = await store.read(list_keys, organisation=caller.organisation, after=after, most=most)
    else:
        rows = await store.read(list_own_keys, person=caller.principal, after=after, most=most)
    return list_page([_listed_api_key(row, ctx.now) for row in rows], params.limit)


async def _revocable_key(ctx: Ctx, params: KeyRef) -> ApiKeyRow:
    """The key, if the caller may revoke it: an admin all of the organisation, a member those they made."""
    caller, row = ctx.caller, await ctx.deps.store.read(find_key_row, key=params.id)
    own = row is not None and row.organisation_id == (caller.organisation or None)
    if row is not None and own and (row.person_id == caller.principal or (bool(row.organisation_id) and caller.is_admin)):
        return row
    raise NotFound(
        "There is no API key with this id that you may revoke",
        param="id",
        hint="GET /v1/api-keys lists them; a member may revoke those they made",
    )


@operation(
    "DELETE",
    "/v1/api-keys/{id}",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.ANY,
    organisation=False,
    tool=False,
    authority=AuthorityChange(itself="id"),
    access=_revocable_key,
    title="Revoke API key",
    raises=[NotFound],
    examples=[
        Example(
            "The laptop was lost",
            {"id": _KEY_ID_EXAMPLE},
            {**_LISTED_API_KEY_EXAMPLE, "status": "revoked", "revoked_at": "2026-11-21T16:20:00Z", "restrictions": None},
        )
    ],
)
async def revoke_api_key(ctx: Ctx, _params: KeyRef, row: ApiKeyRow) -> ListedApiKey:
    """Revoke an API key, and the keys that were made with it; for good.

    From the next call on they are refused. Revoking a revoked key changes nothing and answers as before.

    An admin may revoke every key of the organisation, a member those they made; to others a key is not found. A key may revoke itself;
    one with restrictions, and a login that was granted less than its person has, revokes nothing else (403 `credential_restricted`).
    """

    def end(connection: Connection, *, now: float) -> ListedApiKey:
        """Choice: a repeated call gets the same answer, so that one that was lost can be asked for again."""
        end_key(connection, key=row.id, now=now, log=partial(log_ended_keys, ctx.deps.ids))
        return _listed_api_key(find_key_row(connection, key=row.id) or row, now)

    ctx.record_change(f"key {row.id}: {_api_key_status(row, ctx.now)} -> revoked")
    return await ctx.settle_result(end, now=ctx.now)


def _listed_api_key(row: ApiKeyRow, now: float) -> ListedApiKey:
    return render_fields(
        row,
        ListedApiKey,
        object="api_key",
        organization_id=row.organisation_id,
        status=_api_key_status(row, now),
        created_at=rfc3339_utc(row.created),
        expires_at=None if row.expires_at is None else rfc3339_utc(row.expires_at),
        revoked_at=None if row.revoked_at is None else rfc3339_utc(row.revoked_at),
        last_used_on=row.last_used_day,
        restrictions=shown_restrictions(read_restrictions(row.restrictions)),
        made_by={"id": row.person_id, "name": row.maker},
    )


def _api_key_status(row: ApiKeyRow, now: float) -> Literal["active", "expired", "revoked"]:
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if row.expires_at is not None and row.expires_at <= now else "active"
