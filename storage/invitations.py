"""Invitations: one per organisation and address, renewed when somebody is invited again, gone when it is accepted or withdrawn."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import Key, StatementBuild, TableDescription, all_rows, changes_one, changes_rows, first_row, one_row
from storage.organisations import ORGANISATION


class WaitingInvitation(NamedTuple):
    """An invitation as whoever is invited sees it."""

    id: Key
    organisation_id: Annotated[str, Field(foreign_key="organisation.id", index=True)]
    organisation_name: str
    role: str
    expires_at: float


class InvitationTable(TableDescription, row=WaitingInvitation, without=("organisation_name",), table=True):
    """Somebody was asked to join an organisation. Whoever proves to read the address's mail may accept: the mail holds no secret."""

    address: str = Field(index=True)
    invited_by: str
    created: float
    __table_args__ = (sa.UniqueConstraint("organisation_id", "address", name="invitation_once"),)


INVITATION = InvitationTable.table


class TakenInvitation(NamedTuple):
    """What an accepted invitation was to."""

    organisation_id: str
    role: str


class StoredInvitation(NamedTuple):
    id: str
    created: float


INVITATION_COLUMNS = [
    ORGANISATION.c.name.label("organisation_name") if name == "organisation_name" else INVITATION.c[name]
    for name in WaitingInvitation._fields
]

INVITATION_IS_OPEN = INVITATION.c.expires_at > sa.bindparam("now")

INVITATION_OF_ADDRESS = INVITATION.c.address == sa.bindparam("address")


@one_row(StoredInvitation)
def put_invitation(
    *, id: str, organisation: str, address: str, role: str, invited_by: str, now: float, expires_at: float
) -> StatementBuild:
    """A new invitation, or the one that is there with all but its id anew. `now`, `expires_at`: Unix seconds."""
    given = {"role": role, "invited_by": invited_by, "created": now, "expires_at": expires_at}
    return lambda dialect: (
        dialect.insert(INVITATION)
        .values(id=id, organisation_id=organisation, address=address, **given)
        .on_conflict_do_update(index_elements=["organisation_id", "address"], set_=given)
    )


@all_rows(WaitingInvitation)
def invitations_for(*, address: str, now: float) -> sa.Executable:
    """The invitations of `address` that are open at `now` (Unix seconds), newest first."""
    return (
        sa.select(*INVITATION_COLUMNS)
        .join_from(INVITATION, ORGANISATION, INVITATION.c.organisation_id == ORGANISATION.c.id)
        .where(INVITATION_OF_ADDRESS, INVITATION_IS_OPEN)
        .order_by(INVITATION.c.id.desc())
    )


@first_row(TakenInvitation)
def take_invitation(*, invitation: str, address: str, now: float) -> sa.Executable:
    """Use an invitation up; of two who accept at once one gets it, the other None. `now`: Unix seconds."""
    return sa.delete(INVITATION).where(INVITATION.c.id == invitation, INVITATION_OF_ADDRESS, INVITATION_IS_OPEN)


@changes_one
def withdraw_invitation(*, invitation: str, organisation: str, now: float) -> sa.Executable:
    """Take an invitation back; False when there is none. `now`: Unix seconds."""
    return sa.delete(INVITATION).where(INVITATION.c.id == invitation, INVITATION.c.organisation_id == organisation, INVITATION_IS_OPEN)


@changes_rows
def sweep_invitations(*, before: float) -> sa.Executable:
    """Delete invitations that expired before `before` (Unix seconds); returns how many."""
    return sa.delete(INVITATION).where(INVITATION.c.expires_at <= before)
