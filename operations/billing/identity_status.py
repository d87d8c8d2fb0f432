"""Whether it is known who runs an organisation."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.billing.identity_sessions import NEW, SessionStatus, VerificationSession, session_of
from operations.deps import Ctx
from registry.model import Nothing
from registry.operation import Example, operation
from storage.connection import Connection
from storage.money.identity_sessions import is_verified, latest_session


class IdentityStatus(TypedDict):
    """`session` is the newest; null where there never was one."""

    object: Literal["identity_status"]
    status: Annotated[
        Literal["unverified"] | SessionStatus, Field(description="verified as soon as any session was; else that of the newest session")
    ]
    session: VerificationSession | None


@operation(
    "GET",
    "/v1/operator-billing/identity/status",
    title="Get identity status",
    examples=[
        Example("Are we verified?", {}, {"object": "identity_status", "status": "requires_input", "session": NEW}),
    ],
)
async def operator_identity_status(ctx: Ctx, params: Nothing) -> IdentityStatus:
    """Tell whether it has been verified who runs your organisation.

    `unverified` until operator_identity_create_session begins a session, and after the newest was canceled. Once verified, an
    organisation stays so, whatever further sessions come to.
    """
    del params
    return await ctx.deps.store.read(identity_of, organisation=ctx.organisation)


def identity_of(connection: Connection, *, organisation: str) -> IdentityStatus:
    """The answer, from one look at the sessions."""
    latest = latest_session(connection, organisation=organisation)
    if latest is None:
        return {"object": "identity_status", "status": "unverified", "session": None}
    session = session_of(latest)
    status: Literal["unverified"] | SessionStatus = "unverified" if session["status"] == "canceled" else session["status"]
    if is_verified(connection, organisation=organisation):
        status = "verified"
    return {"object": "identity_status", "status": status, "session": session}
