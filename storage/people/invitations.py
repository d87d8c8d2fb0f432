"""Invitations: one per organisation and address, renewed when somebody is invited again, gone when it is accepted or withdrawn."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import InvitationTable, OrganisationTable
from storage.statement import Command, Query, table

INVITATION, ORGANISATION = table(InvitationTable), table(OrganisationTable)


class Invited(NamedTuple):
    """An invitation as whoever is invited sees it."""

    id: str
    organisation_id: str
    organisation_name: str
    role: str
    expires_at: float


class Taken(NamedTuple):
    """What an accepted invitation was to."""

    organisation_id: str
    role: str


class Kept(NamedTuple):
    """An invitation as it is now."""

    id: str
    created: float


COLUMNS = [
    ORGANISATION.c.name.label("organisation_name") if name == "organisation_name" else INVITATION.c[name] for name in Invited._fields
]
NOT_OVER = INVITATION.c.expires_at > sa.bindparam("now")
FOR_ADDRESS = INVITATION.c.address == sa.bindparam("address")
WAITING = Query(
    Invited,
    sa.select(*COLUMNS)
    .join_from(INVITATION, ORGANISATION, INVITATION.c.organisation_id == ORGANISATION.c.id)
    .where(FOR_ADDRESS, NOT_OVER)
    .order_by(INVITATION.c.id.desc()),
)
FIELDS = ("id", "organisation_id", "address", "role", "invited_by", "created", "expires_at")
KEEP = Query(
    Kept,
    lambda dialect: (
        dialect.insert(INVITATION)
        .values({name: sa.bindparam(name) for name in FIELDS})
        .on_conflict_do_update(
            index_elements=["organisation_id", "address"],
            set_={name: sa.bindparam(name) for name in ("role", "invited_by", "created", "expires_at")},
        )
        .returning(INVITATION.c.id, INVITATION.c.created)
    ),
)
TAKE = Query(
    Taken,
    sa.delete(INVITATION)
    .where(INVITATION.c.id == sa.bindparam("invitation"), FOR_ADDRESS, NOT_OVER)
    .returning(INVITATION.c.organisation_id, INVITATION.c.role),
)
WITHDRAW = Command(
    sa.delete(INVITATION).where(
        INVITATION.c.id == sa.bindparam("invitation"), INVITATION.c.organisation_id == sa.bindparam("organisation"), NOT_OVER
    )
)


def keep_invitation(
    connection: Connection, *, id: str, organisation: str, address: str, role: str, invited_by: str, now: float, expires_at: float
) -> Kept:
    """A new invitation, or the one that is there with all but its id anew."""
    kept = connection.first(
        KEEP, id=id, organisation_id=organisation, address=address, role=role, invited_by=invited_by, created=now, expires_at=expires_at
    )
    assert kept is not None
    return kept


def invitations_for(connection: Connection, *, address: str, now: float) -> list[Invited]:
    """What waits for an address, newest first."""
    return connection.all(WAITING, address=address, now=now)


def take_invitation(connection: Connection, *, invitation: str, address: str, now: float) -> Taken | None:
    """Use an invitation up; of two who accept at once one gets it."""
    return connection.first(TAKE, invitation=invitation, address=address, now=now)


def withdraw_invitation(connection: Connection, *, invitation: str, organisation: str, now: float) -> bool:
    """Take an invitation back; False when there is none."""
    return connection.run(WITHDRAW, invitation=invitation, organisation=organisation, now=now) == 1
