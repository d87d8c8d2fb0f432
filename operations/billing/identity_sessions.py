"""Verifying who runs an organisation. The proof itself is looked at elsewhere, and never here: what is kept is how far it is."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.ledger.payment_accounts import ReturnUrl
from operations.vocabulary import plain_line, render_fields
from registry.errors import Conflict, NotFound
from registry.free_text import FreeText
from registry.operation import Auth, Example, Input, Nothing, Scope, SpendKind, operation
from storage.engine.sql import Connection
from storage.identity_sessions import (
    IdentitySession,
    find_identity_session,
    has_verified_identity,
    insert_identity_session,
    latest_identity_session,
    move_identity_session,
)

ProofKind = Literal["document", "id_number"]
IdentitySessionStatus = Literal["requires_input", "processing", "verified", "canceled"]
IDENTITY_STATUSES_BEFORE: dict[IdentitySessionStatus, tuple[IdentitySessionStatus, ...]] = {
    "requires_input": ("processing",),
    "processing": ("requires_input",),
    "verified": ("processing",),
    "canceled": ("requires_input", "processing"),
}
FINAL_IDENTITY_STATUSES = ("verified", "canceled")


class NewSession(Input):
    """What will be shown as proof."""

    type: Annotated[ProofKind, Field(description="document: a passport or the like; id_number: a national number.")]
    return_url: Annotated[
        ReturnUrl | None, Field(repr=False, description="Page of yours that the person comes back to afterwards; https.")
    ] = None


class IdentitySessionChange(Input):
    """How far a session is now."""

    id: Annotated[str, Field(max_length=64, description="Session id, ids_...")]
    status: Annotated[IdentitySessionStatus, Field(description="verified and canceled are final.")]
    reason: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="Why, in a line that the organisation reads; absent: none."),
        AfterValidator(lambda text: None if text is None else plain_line(text)),
    ] = None


class VerificationSession(TypedDict):
    """A session; times are Unix seconds."""

    id: str
    object: Literal["identity_session"]
    type: ProofKind
    status: IdentitySessionStatus
    reason: Annotated[FreeText | None, Field(description="Why it is where it is, if whoever looked said so")]
    return_url: str | None
    created: int
    updated: int


IDENTITY_SESSION_EXAMPLE: VerificationSession = {
    "id": "ids_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "object": "identity_session",
    "type": "document",
    "status": "requires_input",
    "reason": None,
    "return_url": "https://fjord.example/verified",
    "created": 1795163400,
    "updated": 1795163400,
}


def render_identity_session(row: IdentitySession) -> VerificationSession:
    return render_fields(row, VerificationSession, object="identity_session", type=row.kind)


@operation(
    "POST",
    "/v1/operator-billing/identity/sessions",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    status=201,
    title="Create identity session",
    examples=[
        Example(
            "Prove who we are with a passport",
            {"type": "document", "return_url": IDENTITY_SESSION_EXAMPLE["return_url"]},
            IDENTITY_SESSION_EXAMPLE,
        )
    ],
)
async def operator_identity_create_session(ctx: Ctx, params: NewSession) -> VerificationSession:
    """Record that somebody of your organisation is about to be verified.

    Nothing is sent anywhere: whoever runs the service looks at the proof and moves the session on. Follow it with
    operator_identity_status.
    """
    now = int(ctx.now)
    row = IdentitySession(
        ctx.deps.ids.new("ids_"), ctx.organisation, ctx.caller.principal, params.type, "requires_input", None, params.return_url, now, now
    )
    return await ctx.settle(render_identity_session(row), insert_identity_session, session=row)


@operation(
    "PATCH",
    "/v1/operator-billing/identity/sessions/{id}",
    spends=SpendKind.NOTHING,
    auth=Auth.INTERNAL,
    scope=Scope.NONE,
    title="Update identity session",
    raises=[NotFound, Conflict],
    examples=[
        Example(
            "The proof has come in",
            {"id": IDENTITY_SESSION_EXAMPLE["id"], "status": "processing"},
            {**IDENTITY_SESSION_EXAMPLE, "status": "processing", "updated": 1795163460},
        )
    ],
)
async def operator_identity_update_session(ctx: Ctx, params: IdentitySessionChange) -> VerificationSession:
    """Say how far a verification is. With the internal key only.

    requires_input becomes processing; processing becomes verified, or requires_input again; both may be canceled. verified and canceled
    are final: another status is 409 and changes nothing. The status that a session has already answers the session as it is.
    """
    return await ctx.settle_result(change_identity_session, session=params.id, change=params, now=ctx.now)


def change_identity_session(connection: Connection, *, session: str, change: IdentitySessionChange, now: float) -> VerificationSession:
    status = change.status
    for before in IDENTITY_STATUSES_BEFORE[status]:
        moved = move_identity_session(connection, session=session, before=before, status=status, reason=change.reason, now=now)
        if moved is not None:
            return render_identity_session(moved)
    found = find_identity_session(connection, session=session)
    if found is None:
        raise NotFound("There is no identity session with this id", param="id", hint="Session ids start with ids_")
    if found.status == status:  # told twice
        return render_identity_session(found)
    text, code = f"status: the session is {found.status}, and does not become {status}", None
    after = " or ".join(name for name, allowed in IDENTITY_STATUSES_BEFORE.items() if found.status in allowed)
    hint = f"From {found.status} it becomes {after}"
    if found.status in FINAL_IDENTITY_STATUSES:
        code, hint = "identity_session_final", f"{found.status} is final: the organisation begins again with a new session"
    raise Conflict(text, code=code, param="status", hint=hint)


class IdentityStatus(TypedDict):
    """`session` is the newest; null where there never was one."""

    object: Literal["identity_status"]
    status: Annotated[
        Literal["unverified"] | IdentitySessionStatus,
        Field(description="verified as soon as any session was; else that of the newest session"),
    ]
    session: VerificationSession | None


@operation(
    "GET",
    "/v1/operator-billing/identity/status",
    title="Get identity status",
    examples=[
        Example("Are we verified?", {}, {"object": "identity_status", "status": "requires_input", "session": IDENTITY_SESSION_EXAMPLE}),
    ],
)
async def operator_identity_status(ctx: Ctx, _params: Nothing) -> IdentityStatus:
    """Tell whether it has been verified who runs your organisation.

    `unverified` until operator_identity_create_session begins a session, and after the newest was canceled. Once verified, an
    organisation stays so, whatever further sessions come to.
    """
    return await ctx.deps.store.read(read_identity_status, organisation=ctx.organisation)


def read_identity_status(connection: Connection, *, organisation: str) -> IdentityStatus:
    latest = latest_identity_session(connection, organisation=organisation)
    if latest is None:
        return {"object": "identity_status", "status": "unverified", "session": None}
    session = render_identity_session(latest)
    status: Literal["unverified"] | IdentitySessionStatus = "unverified" if session["status"] == "canceled" else session["status"]
    if has_verified_identity(connection, organisation=organisation):
        status = "verified"
    return {"object": "identity_status", "status": status, "session": session}
