"""The people of the caller's organisation, and those who are invited."""

import hashlib
import re
from functools import partial
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from clients.mail.letter import Letter
from operations.deps import Ctx
from operations.letters import queue_letter, seal_letter
from operations.people.organisation_events import log_ended_keys, log_member_added
from operations.vocabulary import Email, ListOf, ListPage, list_page, mailbox_of, normal_email, render_fields
from registry.caller import Role
from registry.characters import MISLEADING_CHARACTERS
from registry.clock import DAY_SECONDS, rfc3339_utc
from registry.errors import Conflict, NotFound, QuotaExceeded, Unauthorized
from registry.free_text import FreeText
from registry.ids import Ids
from registry.operation import AuthorityChange, Example, Input, Scope, SpendKind, operation
from registry.policy import quota_period
from registry.rate_limits import rate_limited
from storage import quota
from storage.engine.sql import Connection
from storage.invitations import WaitingInvitation, invitations_for, put_invitation, take_invitation, withdraw_invitation
from storage.members import (
    MemberRow,
    end_membership,
    hold_membership,
    is_member,
    join_organisation,
    list_people,
    member_with_address,
    queue_for_members,
)

INVITATION_DAYS = 7
_INVITATION_SECONDS = INVITATION_DAYS * DAY_SECONDS
# Choice: so many a day, for whoever signs up to send mail in our name to strangers must get nowhere.
INVITATION_MAILS_PER_DAY, INVITATION_MAILS_PER_ADDRESS = 50, 3
# And so many to one mailbox, whoever invites it: organisations are free. Beyond it the invitation waits without a mail, for a refusal
# would tell one organisation of another's.
_INVITATION_MAILS_PER_MAILBOX = 10
_LONGEST_INVITING_NAME = 80
# What mail programs make a link of: a scheme, and a dot between letters, in the spellings that browsers take.
_LINK_START = re.compile("(?<=:)(?=//)|(?<=[.\u3002\uff0e\uff61])(?=\\w)")


class AlreadyMember(Conflict):
    """Who is invited is a member."""

    code = "already_member"


def invitation_letter(address: str, organisation: str, role: Role, base_url: str) -> Letter:
    """What is mailed. It holds no secret: whoever reads the mail of the address proves it by signing in with it.

    The name is whatever somebody called themselves, so it is one line and no link.
    """
    name = _LINK_START.sub(" ", " ".join(MISLEADING_CHARACTERS.sub(" ", organisation).split()))[:_LONGEST_INVITING_NAME]
    text = (
        f"You are invited to join the organisation\n\n    {name}\n\nas {'an admin' if role is Role.ADMIN else 'a member'} "
        f"at {base_url}.\n\nSign in with this e-mail address and accept within {INVITATION_DAYS} days:\n\n"
        f"{base_url}/auth/invitations\n\n"
        "If you do not know them, ignore this mail: nothing happens.\n"
    )
    return Letter(normal_email(address), "You are invited to join an organisation", text)


def _spend_invitation_mail(connection: Connection, *, organisation: str, address: str, upgrade_url: str, now: float) -> None:
    """One mail of the organisation's and one to the address, of this UTC day; a refusal undoes the whole write."""
    period, whom = quota_period(now), hashlib.sha256(f"{organisation}|{address}".encode()).hexdigest()
    for name, limit, what in (
        (f"mail|{organisation}", INVITATION_MAILS_PER_DAY, "your organisation"),
        (f"mail|{whom}", INVITATION_MAILS_PER_ADDRESS, "this address from your organisation"),
    ):
        if quota.charge_quota(connection, organisation=name, period=period.name, cost=1, limit=limit) is None:
            text = f"Too many invitations: {limit} mails a UTC day are sent for {what}; invite again after {rfc3339_utc(period.reset)}"
            wait = int(period.reset - now) + 1
            raise rate_limited(text, limit=limit, reset=period.reset, retry_after=wait, upgrade_url=upgrade_url)


def _mailbox_takes_more(connection: Connection, *, address: str, now: float) -> bool:
    """Counts one more mail to the mailbox of `address`; False where it has had as many as a day allows."""
    whom = hashlib.sha256(mailbox_of(address).encode()).hexdigest()
    period = quota_period(now).name
    return (
        quota.charge_quota(connection, organisation=f"mail|to|{whom}", period=period, cost=1, limit=_INVITATION_MAILS_PER_MAILBOX)
        is not None
    )


def membership_changed() -> Unauthorized:
    """The refusal of somebody whose membership has ended since the call began."""
    return Unauthorized("Your membership has changed since the call began; nothing was done", presented=True)


def open_invitations(connection: Connection, *, address: str, now: float) -> list[WaitingInvitation]:
    """The invitations that whoever has proved `address` may accept at `now` (Unix seconds), newest first."""
    return invitations_for(connection, address=normal_email(address), now=now)


def accept_invitation(connection: Connection, *, invitation: str, person: str, address: str, ids: Ids, now: float) -> str:
    """Makes `person` a member; the organisation's id. Raises NotFound for an invitation that is gone, too old or another's."""
    taken = take_invitation(connection, invitation=invitation, address=normal_email(address), now=now)
    if taken is None:
        raise NotFound(
            "There is no such invitation for you: it was withdrawn, accepted, or is too old",
            param="id",
            hint="Ask an admin of the organisation to invite you again",
        )
    if join_organisation(connection, person=person, organisation=taken.organisation_id, role=taken.role, now=now):
        log_member_added(connection, organisation=taken.organisation_id, person=person, role=taken.role, ids=ids, now=now)
    return taken.organisation_id


RoleName = Literal["admin", "member"]


class LastAdmin(Conflict):
    """An organisation without an admin could not be looked after."""

    code = "last_admin"


class Member(TypedDict):
    """A member of the organisation, or somebody who is invited. `created_at` is when they joined or were invited, RFC 3339 UTC."""

    id: Annotated[str, Field(description="usr_ of a member, ivt_ of an invitation")]
    object: Literal["member"]
    email: Annotated[FreeText | None, Field(description="Null where we know no address")]
    name: FreeText | None
    role: RoleName
    status: Literal["active", "invited"]
    created_at: str


class RemovedMember(TypedDict):
    """The membership or the invitation is gone."""

    id: str
    object: Literal["member"]
    deleted: Literal[True]


class NewMember(Input):
    """Who is asked to join, and as what."""

    email: Email
    role: Annotated[RoleName, Field(description="admin looks after members, keys and the audit log; member does not.")] = "member"


class MemberRef(Input):
    """Which membership or invitation."""

    id: Annotated[str, Field(max_length=64, description="Member id, usr_..., or invitation id, ivt_...")]


_MEMBER_EXAMPLE: Member = {
    "id": "usr_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "object": "member",
    "email": "ada@example.com",
    "name": "Ada Berg",
    "role": "admin",
    "status": "active",
    "created_at": "2026-11-20T09:00:00Z",
}
_INVITATION_ID_EXAMPLE = "ivt_01k0a8w7zv6q4k3m2n1p0r9s8t"
_INVITED_EXAMPLE: Member = {
    **_MEMBER_EXAMPLE,
    "id": _INVITATION_ID_EXAMPLE,
    "email": "bo@example.com",
    "name": None,
    "role": "member",
    "status": "invited",
}


@operation(
    "GET",
    "/v1/members",
    tool=False,
    title="List members",
    examples=[
        Example("Who is in our organisation?", {}, {"object": "list", "data": [_MEMBER_EXAMPLE, _INVITED_EXAMPLE], "has_more": False})
    ],
)
async def list_members(ctx: Ctx, params: ListPage) -> ListOf[Member]:
    """List the members of your organisation, then the invitations that wait.

    Of each the newest first; invitations that are older than 7 days are left out.
    """
    rows = await ctx.deps.store.read(
        list_people, organisation=ctx.organisation, now=ctx.now, after=params.starting_after, most=params.limit + 1
    )
    return list_page([_listed_member(row) for row in rows], params.limit)


@operation(
    "POST",
    "/v1/members",
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    role=Role.ADMIN,
    authority=AuthorityChange(),
    tool=False,
    status=201,
    title="Invite member",
    raises=[AlreadyMember, QuotaExceeded],
    examples=[Example("Ask a colleague in", {"email": "bo@example.com", "role": "member"}, _INVITED_EXAMPLE)],
)
async def invite_member(ctx: Ctx, params: NewMember) -> Member:
    """Invite somebody to your organisation by mail; they accept within 7 days.

    They sign in with this address and accept. Inviting them again renews the invitation and its role and sends the mail again.

    Needs the role admin, on any tier, and a key or login without restrictions. The answer is the same whether or not the address has an
    account here. Somebody who is a member already is refused (409 `already_member`): to change a role, remove the member and invite the
    address again. At most 50 mails per organisation and UTC day, 3 of them to one address. A mailbox that got 10 that day, from whomever,
    gets no further one: the invitation is there all the same.
    """
    deps, address, role = ctx.deps, normal_email(params.email), Role(params.role)
    letter = invitation_letter(address, ctx.caller.organisation_name, role, deps.site.base_url)
    id, organisation, by, expires_at = deps.ids.new("ivt_"), ctx.organisation, ctx.caller.principal, ctx.now + _INVITATION_SECONDS
    mail = seal_letter(letter, ids=deps.ids, keyring=deps.keyring, expires_at=expires_at)

    def write(connection: Connection, *, now: float) -> Member:
        """Does not look whether the address has an account: an invitation finds nobody out."""
        if hold_membership(connection, person=by, organisation=organisation) != Role.ADMIN:
            raise membership_changed()  # else who is being removed would be back by their own invitation
        present = member_with_address(connection, organisation=organisation, address=address)
        if present is not None:
            raise AlreadyMember(
                f"email: this person is a member of your organisation already, with the role {present.role}",
                param="email",
                hint=f"To change the role, remove {present.id} and invite the address again" if present.role != role else None,
            )
        _spend_invitation_mail(connection, organisation=organisation, address=address, upgrade_url=deps.site.upgrade_url, now=now)
        if _mailbox_takes_more(connection, address=address, now=now):
            queue_letter(connection, mail, deps.clock)
        kept = put_invitation(
            connection, id=id, organisation=organisation, address=address, role=role, invited_by=by, now=now, expires_at=expires_at
        )
        return _listed_member(MemberRow(kept.id, address, None, role, 0, kept.created))

    answer = await ctx.settle_result(write, now=ctx.now)
    deps.post()
    return answer


@operation(
    "DELETE",
    "/v1/members/{id}",
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    role=Role.ADMIN,
    authority=AuthorityChange(),
    tool=False,
    title="Remove member",
    raises=[NotFound, LastAdmin],
    examples=[
        Example(
            "Withdraw an invitation", {"id": _INVITATION_ID_EXAMPLE}, {"id": _INVITATION_ID_EXAMPLE, "object": "member", "deleted": True}
        )
    ],
)
async def remove_member(ctx: Ctx, params: MemberRef) -> RemovedMember:
    """Remove a member from your organisation, or withdraw an invitation.

    At once: the keys they made, what programs may do for them here, and invitations they sent end with it.

    Needs the role admin, on any tier, and a key or login without restrictions. An admin may remove themselves, but the last admin cannot
    be removed (409 `last_admin`): invite another one first. A member who joins again later gets no old key back.
    """
    return await ctx.settle_result(
        _end_member, id=params.id, organisation=ctx.organisation, by=ctx.caller.principal, ids=ctx.deps.ids, now=ctx.now
    )


def _end_member(connection: Connection, *, id: str, organisation: str, by: str, ids: Ids, now: float) -> RemovedMember:
    """The membership or the invitation, or a refusal; foreign and unknown ones are answered alike."""
    queue_for_members(connection)
    if hold_membership(connection, person=by, organisation=organisation) != Role.ADMIN:
        raise membership_changed()  # who was removed at this moment removes nobody any more
    gone: RemovedMember = {"id": id, "object": "member", "deleted": True}
    if withdraw_invitation(connection, invitation=id, organisation=organisation, now=now):
        return gone
    if end_membership(connection, person=id, organisation=organisation, now=now, log=partial(log_ended_keys, ids)):
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


def _listed_member(row: MemberRow) -> Member:
    status = "active" if row.active else "invited"
    return render_fields(row, Member, object="member", status=status, created_at=rfc3339_utc(row.created))
