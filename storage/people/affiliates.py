"""Organisations in the affiliate programme, and whom they brought."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.people.setup_tables import AffiliateTable, ReferralTable
from storage.schema import MembershipTable, OrganisationTable
from storage.statement import Command, Query, table

AFFILIATE, REFERRAL = table(AffiliateTable), table(ReferralTable)
ORGANISATION, MEMBERSHIP = table(OrganisationTable), table(MembershipTable)


class Affiliate(NamedTuple):
    """An organisation that joined, and the code it brings others with."""

    organisation: str
    code: str
    created: float


class Referral(NamedTuple):
    """Who brought an organisation, with what code, and when."""

    affiliate: str
    code: str
    created: float


class Moment(NamedTuple):
    """When something was made, Unix seconds."""

    created: int


class Found(NamedTuple):
    """A row that only has to be there."""

    organisation_id: str


class Referrals(NamedTuple):
    """How many an affiliate brought."""

    many: int


# No conflict is named: the organisation may have joined already, and the code may be somebody else's.
JOIN = Command(
    lambda dialect: dialect.insert(AFFILIATE).values({name: sa.bindparam(name) for name in Affiliate._fields}).on_conflict_do_nothing()
)
COLUMNS = [AFFILIATE.c[name] for name in Affiliate._fields]
OF_ORGANISATION = Query(Affiliate, sa.select(*COLUMNS).where(AFFILIATE.c.organisation == sa.bindparam("organisation")))
BY_CODE = Query(Affiliate, sa.select(*COLUMNS).where(AFFILIATE.c.code == sa.bindparam("code")))
REFER = Command(
    lambda dialect: (
        dialect.insert(REFERRAL)
        .values({name: sa.bindparam(name) for name in ("organisation", "affiliate", "created")})
        .on_conflict_do_nothing(index_elements=["organisation"])
    )
)
REFERRED = Query(
    Referral,
    sa.select(REFERRAL.c.affiliate, AFFILIATE.c.code, REFERRAL.c.created)
    .join_from(REFERRAL, AFFILIATE, AFFILIATE.c.organisation == REFERRAL.c.affiliate)
    .where(REFERRAL.c.organisation == sa.bindparam("organisation")),
)
HOW_MANY = Query(
    Referrals, sa.select(sa.func.count().label("many")).select_from(REFERRAL).where(REFERRAL.c.affiliate == sa.bindparam("affiliate"))
)
BORN = Query(Moment, sa.select(ORGANISATION.c.created).where(ORGANISATION.c.id == sa.bindparam("organisation")))
COLLEAGUES = sa.select(MEMBERSHIP.c.person_id).where(MEMBERSHIP.c.organisation_id == sa.bindparam("organisation"))
SHARED = Query(
    Found,
    sa.select(MEMBERSHIP.c.organisation_id)
    .where(
        MEMBERSHIP.c.organisation_id == sa.bindparam("affiliate"),
        (MEMBERSHIP.c.person_id == sa.bindparam("person")) | MEMBERSHIP.c.person_id.in_(COLLEAGUES),
    )
    .limit(1),
)


def join(connection: Connection, *, organisation: str, code: str, now: float) -> bool:
    """Take the organisation in with this code. False: it is in already, or the code is somebody else's."""
    return connection.run(JOIN, organisation=organisation, code=code, created=now) == 1


def affiliate_of(connection: Connection, *, organisation: str) -> Affiliate | None:
    """The organisation as an affiliate, if it joined."""
    return connection.first(OF_ORGANISATION, organisation=organisation)


def affiliate_with(connection: Connection, *, code: str) -> Affiliate | None:
    """Whose code this is; codes are upper case."""
    return connection.first(BY_CODE, code=code)


def refer(connection: Connection, *, organisation: str, affiliate: str, now: float) -> bool:
    """Keep who brought the organisation. False: somebody did before."""
    return connection.run(REFER, organisation=organisation, affiliate=affiliate, created=now) == 1


def referral_of(connection: Connection, *, organisation: str) -> Referral | None:
    """Who brought the organisation, if anybody did."""
    return connection.first(REFERRED, organisation=organisation)


def count_referrals(connection: Connection, *, affiliate: str) -> int:
    """How many organisations it brought."""
    found = connection.first(HOW_MANY, affiliate=affiliate)
    return 0 if found is None else found.many


def organisation_created(connection: Connection, *, organisation: str) -> int | None:
    """When the organisation was made."""
    found = connection.first(BORN, organisation=organisation)
    return None if found is None else found.created


def share_people(connection: Connection, *, affiliate: str, organisation: str, person: str) -> bool:
    """Whether this person, or any member of the organisation, is a member of the affiliate."""
    return connection.first(SHARED, affiliate=affiliate, organisation=organisation, person=person) is not None
