"""The people of the caller's organisation, and those who are invited."""

from typing import Annotated, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.people.addresses import Email, normal
from operations.services.people.invitations import SECONDS, AlreadyMember, Invitation, invitation_letter, invite, left
from operations.services.people.letters import Sealed, seal_letter
from operations.vocabulary import Limit, ListOf, StartingAfter, page
from registry.clock import Clock
from registry.errors import Conflict, NotFound, QuotaExceeded
from registry.limits import Role, Scope
from registry.model import Input
from registry.operation import AuthorityChange, Example, operation
from registry.policy import stamp
from storage.connection import Connection
from storage.people.invitations import withdraw_invitation
from storage.people.members import MemberRow, end_membership, hold_membership, is_member, list_people, queue_for_members

RoleName = Literal["admin", "member"]


class LastAdmin(Conflict):
    """An organisation without an admin could not be looked after."""

    code = "last_admin"


class Member(TypedDict):
    """A member of the organisation, or somebody who is invited. `created_at` is when they joined or were invited, RFC 3339 UTC."""

    id: Annotated[str, Field(description="usr_ of a member, ivt_ of an invitation")]
    object: Literal["member"]
    email: Annotated[str | None, Field(description="Null where we know no address")]
    name: str | None
    role: RoleName
    status: Literal["active", "invited"]
    created_at: str


class RemovedMember(TypedDict):
    """The membership or the invitation is gone."""

    id: str
    object: Literal["member"]
    deleted: Literal[True]


class MemberPage(Input):
    """Which part of the list."""

    limit: Limit = 20
    starting_after: StartingAfter = None


class NewMember(Input):
    """Who is asked to join, and as what."""

    email: Email
    role: Annotated[RoleName, Field(description="admin looks after members, keys and the audit log; member does not.")] = "member"


class MemberRef(Input):
    """Which membership or invitation."""

    id: Annotated[str, Field(max_length=64, description="Member id, usr_..., or invitation id, ivt_...")]


ADA: Member = {
    "id": "usr_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "object": "member",
    "email": "ada@example.com",
    "name": "Ada Berg",
    "role": "admin",
    "status": "active",
    "created_at": "2026-11-20T09:00:00Z",
}
INVITATION = "ivt_01k0a8w7zv6q4k3m2n1p0r9s8t"
INVITED: Member = {**ADA, "id": INVITATION, "email": "bo@example.com", "name": None, "role": "member", "status": "invited"}


@operation(
    "GET",
    "/v1/members",
    tool=False,
    title="List members",
    examples=[Example("Who is in our organisation?", {}, {"object": "list", "data": [ADA, INVITED], "has_more": False})],
)
async def list_members(ctx: Ctx, params: MemberPage) -> ListOf[Member]:
    """List the members of your organisation, then the invitations that wait.

    Of each the newest first; invitations that are older than 7 days are left out.
    """
    rows = await ctx.deps.store.read(
        list_people, organisation=ctx.organisation, now=ctx.now, after=params.starting_after, most=params.limit + 1
    )
    return page([shown(row) for row in rows], params.limit)


@operation(
    "POST",
    "/v1/members",
    scope=Scope.ANY,
    role=Role.ADMIN,
    authority=AuthorityChange(),
    tool=False,
    status=201,
    title="Invite member",
    raises=[AlreadyMember, QuotaExceeded],
    examples=[Example("Ask a colleague in", {"email": "bo@example.com", "role": "member"}, INVITED)],
)
async def invite_member(ctx: Ctx, params: NewMember) -> Member:
    """Invite somebody to your organisation by mail; they accept within 7 days.

    They sign in with this address and accept. Inviting them again renews the invitation and its role and sends the mail again.

    Needs the role admin, on any tier, and a key or login without restrictions. The answer is the same whether or not the address has an
    account here. Somebody who is a member already is refused (409 `already_member`): to change a role, remove the member and invite the
    address again. At most 50 mails per organisation and UTC day, 3 of them to one address. A mailbox that got 10 that day, from whomever,
    gets no further one: the invitation is there all the same.
    """
    deps, address, role = ctx.deps, normal(params.email), Role(params.role)
    letter = invitation_letter(address, ctx.caller.organisation_name, role, deps.site)
    answer = await ctx.settle_result(
        ask_in,
        invitation=Invitation(deps.ids.new("ivt_"), ctx.organisation, address, role, ctx.caller.principal),
        mail=seal_letter(letter, ids=deps.ids, keyring=deps.keyring, expires_at=ctx.now + SECONDS),
        clock=deps.clock,
        upgrade_url=deps.site.upgrade_url,
        now=ctx.now,
    )
    deps.post()
    return answer


def ask_in(connection: Connection, *, invitation: Invitation, mail: Sealed, clock: Clock, upgrade_url: str, now: float) -> Member:
    """The invitation as it is listed."""
    kept = invite(connection, invitation=invitation, mail=mail, clock=clock, upgrade_url=upgrade_url, now=now)
    return shown(MemberRow(kept.id, invitation.address, None, invitation.role, 0, kept.created))


@operation(
    "DELETE",
    "/v1/members/{id}",
    scope=Scope.ANY,
    role=Role.ADMIN,
    authority=AuthorityChange(),
    tool=False,
    title="Remove member",
    raises=[NotFound, LastAdmin],
    examples=[Example("Withdraw an invitation", {"id": INVITATION}, {"id": INVITATION, "object": "member", "deleted": True})],
)
async def remove_member(ctx: Ctx, params: MemberRef) -> RemovedMember:
    """Remove a member from your organisation, or withdraw an invitation.

    At once: the keys they made, what programs may do for them here, and invitations they sent end with it.

    Needs the role admin, on any tier, and a key or login without restrictions. An admin may remove themselves, but the last admin cannot
    be removed (409 `last_admin`): invite another one first. A member who joins again later gets no old key back.
    """
    return await ctx.settle_result(remove, id=params.id, organisation=ctx.organisation, by=ctx.caller.principal, now=ctx.now)


def remove(connection: Connection, *, id: str, organisation: str, by: str, now: float) -> RemovedMember:
    """The membership or the invitation, or a refusal; foreign and unknown ones are answered alike."""
    queue_for_members(connection)
    if hold_membership(connection, person=by, organisation=organisation) != Role.ADMIN:
        raise left()  # who was removed at this moment removes nobody any more
    gone: RemovedMember = {"id": id, "object": "member", "deleted": True}
    if withdraw_invitation(connection, invitation=id, organisation=organisation, now=now):
        return gone
    if end_membership(connection, person=id, organisation=organisation, now=now):
        return gone
    if is_member(connection, person=id, organisation=organisation):
        raise LastAdmin(
            "This is the last admin of your organisation, and it cannot be without one",
            param="id",
            hint="Invite another admin first (POST /v1/members with the role admin), and remove this one when they have accepted",
        )
    raise NotFound(
        "Your organisation has no member and no invitation with this id", param="id", hint="GET /v1/members shows the ids of both"
    )


def shown(row: MemberRow) -> Member:
    """As it is listed."""
    return {
        "id": row.id,
        "object": "member",
        "email": row.email,
        "name": row.name,
        "role": cast(RoleName, row.role),
        "status": "active" if row.active else "invited",
        "created_at": stamp(row.created),
    }
