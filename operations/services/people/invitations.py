"""Asking somebody into an organisation by mail, and becoming its member."""

import hashlib
import re
from typing import NamedTuple

from clients.mail.letter import Letter
from operations.services.people.addresses import mailbox, normal
from operations.services.people.letters import Sealed, put_in_queue
from operations.services.plain_line import MISLEADING
from registry.clock import Clock
from registry.errors import Conflict, NotFound, QuotaExceeded, Unauthorized
from registry.limits import Role
from registry.policy import period_of, stamp
from registry.ports import Site
from storage.calls import quota
from storage.connection import Connection
from storage.people.invitations import Invited, Kept, invitations_for, keep_invitation, take_invitation
from storage.people.members import hold_membership, join, member_with_address

__all__ = ["Invitation", "Invited", "accept", "invitation_letter", "invite", "left", "waiting_for"]

DAYS = 7
SECONDS = DAYS * 86_400
# Choice: so many a day, for whoever signs up to send mail in our name to strangers must get nowhere.
MAILS_PER_DAY, MAILS_PER_ADDRESS = 50, 3
# And so many to one mailbox, whoever invites it: organisations are free. Beyond it the invitation waits without a mail, for a refusal
# would tell one organisation of another's.
MAILS_PER_MAILBOX = 10
LONGEST_NAME = 80
# What mail programs make a link of: a scheme, and a dot between letters, in the spellings that browsers take.
LINKED = re.compile("(?<=:)(?=//)|(?<=[.\u3002\uff0e\uff61])(?=\\w)")


class Invitation(NamedTuple):
    """Who is asked to be what, and by whom."""

    id: str
    organisation: str
    address: str
    role: Role
    invited_by: str


class AlreadyMember(Conflict):
    """Who is invited is a member."""

    code = "already_member"


def invitation_letter(address: str, organisation: str, role: Role, site: Site) -> Letter:
    """What is mailed. It holds no secret: whoever reads the mail of the address proves it by signing in with it.

    The name is whatever somebody called themselves, so it is one line and no link.
    """
    name = LINKED.sub(" ", " ".join(MISLEADING.sub(" ", organisation).split()))[:LONGEST_NAME]
    text = (
        f"You are invited to join the organisation\n\n    {name}\n\nas {'an admin' if role is Role.ADMIN else 'a member'} "
        f"at {site.base_url}.\n\nSign in with this e-mail address and accept within {DAYS} days:\n\n{site.base_url}/auth/invitations\n\n"
        "If you do not know them, ignore this mail: nothing happens.\n"
    )
    return Letter(normal(address), "You are invited to join an organisation", text)


def invite(connection: Connection, *, invitation: Invitation, mail: Sealed, clock: Clock, upgrade_url: str, now: float) -> Kept:
    """The invitation and its mail. Nothing here looks whether the address has an account: nobody can be found out by inviting them."""
    if hold_membership(connection, person=invitation.invited_by, organisation=invitation.organisation) != Role.ADMIN:
        raise left()  # else who is being removed would be back by their own invitation
    present = member_with_address(connection, organisation=invitation.organisation, address=invitation.address)
    if present is not None:
        raise AlreadyMember(
            f"email: this person is a member of your organisation already, with the role {present.role}",
            param="email",
            hint=f"To change the role, remove {present.id} and invite the address again" if present.role != invitation.role else None,
        )
    spend_mail(connection, organisation=invitation.organisation, address=invitation.address, upgrade_url=upgrade_url, now=now)
    if fits_mailbox(connection, address=invitation.address, now=now):
        put_in_queue(connection, mail, clock)
    return keep_invitation(connection, **invitation._asdict(), now=now, expires_at=now + SECONDS)


def spend_mail(connection: Connection, *, organisation: str, address: str, upgrade_url: str, now: float) -> None:
    """One mail of the organisation's and one to the address, of this UTC day; a refusal undoes the whole write."""
    period, whom = period_of(now), hashlib.sha256(f"{organisation}|{address}".encode()).hexdigest()
    for name, limit, what in (
        (f"mail|{organisation}", MAILS_PER_DAY, "your organisation"),
        (f"mail|{whom}", MAILS_PER_ADDRESS, "this address from your organisation"),
    ):
        if quota.charge(connection, organisation=name, period=period.name, cost=1, limit=limit) is None:
            raise QuotaExceeded(
                f"Too many invitations: {limit} mails a UTC day are sent for {what}; invite again after {stamp(period.reset)}",
                code="rate_limited",
                limit=limit,
                used=limit,
                reset_at=stamp(period.reset),
                retry_after=int(period.reset - now) + 1,
                upgrade_url=upgrade_url,
            )


def fits_mailbox(connection: Connection, *, address: str, now: float) -> bool:
    """Count a mail to whoever reads the address."""
    whom = hashlib.sha256(mailbox(address).encode()).hexdigest()
    period = period_of(now).name
    return quota.charge(connection, organisation=f"mail|to|{whom}", period=period, cost=1, limit=MAILS_PER_MAILBOX) is not None


def left() -> Unauthorized:
    """Who acts by a membership that has just ended."""
    return Unauthorized("Your membership has changed since the call began; nothing was done", presented=True)


def waiting_for(connection: Connection, *, address: str, now: float) -> list[Invited]:
    """The invitations that somebody who has proved an address may accept, newest first."""
    return invitations_for(connection, address=normal(address), now=now)


def accept(connection: Connection, *, invitation: str, person: str, address: str, now: float) -> str:
    """Become a member; the organisation's id. One that is gone, too old or another's is not found."""
    taken = take_invitation(connection, invitation=invitation, address=normal(address), now=now)
    if taken is None:
        raise NotFound(
            "There is no such invitation for you: it was withdrawn, accepted, or is too old",
            param="id",
            hint="Ask an admin of the organisation to invite you again",
        )
    join(connection, person=person, organisation=taken.organisation_id, role=taken.role, now=now)
    return taken.organisation_id
