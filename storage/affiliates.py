"""Organisations in the affiliate programme, and whom they brought."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.connection import Connection
from storage.engine.statement import Command, Query
from storage.engine.table import TableDescription, table_of
from storage.memberships import MEMBERSHIP
from storage.organisations import ORGANISATION


class AffiliateTable(TableDescription, table=True):
    """An organisation in the affiliate programme."""

    organisation: str = Field(primary_key=True, foreign_key="organisation.id", sa_type=sa.Text)
    code: str = Field(unique=True, sa_type=sa.Text)
    created: float = Field(sa_type=sa.Double)


class ReferralTable(TableDescription, table=True):
    """Who brought an organisation: one affiliate, for ever."""

    organisation: str = Field(primary_key=True, foreign_key="organisation.id", sa_type=sa.Text)
    affiliate: str = Field(foreign_key="organisation.id", index=True, sa_type=sa.Text)
    created: float = Field(sa_type=sa.Double)


AFFILIATE = table_of(AffiliateTable)

REFERRAL = table_of(ReferralTable)


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


class CreatedMoment(NamedTuple):
    """When something was made, Unix seconds."""

    created: int


class SharedMember(NamedTuple):
    """A row that only has to be there."""

    organisation_id: str


class ReferralCount(NamedTuple):
    """How many an affiliate brought."""

    many: int


# No conflict is named: the organisation may have joined already, and the code may be somebody else's.
JOIN_AFFILIATES = Command(
    lambda dialect: dialect.insert(AFFILIATE).values({name: sa.bindparam(name) for name in Affiliate._fields}).on_conflict_do_nothing()
)

AFFILIATE_COLUMNS = [AFFILIATE.c[name] for name in Affiliate._fields]

FIND_AFFILIATE = Query(Affiliate, sa.select(*AFFILIATE_COLUMNS).where(AFFILIATE.c.organisation == sa.bindparam("organisation")))

FIND_AFFILIATE_BY_CODE = Query(Affiliate, sa.select(*AFFILIATE_COLUMNS).where(AFFILIATE.c.code == sa.bindparam("code")))

INSERT_REFERRAL = Command(
    lambda dialect: (
        dialect.insert(REFERRAL)
        .values({name: sa.bindparam(name) for name in ("organisation", "affiliate", "created")})
        .on_conflict_do_nothing(index_elements=["organisation"])
    )
)

FIND_REFERRAL = Query(
    Referral,
    sa.select(REFERRAL.c.affiliate, AFFILIATE.c.code, REFERRAL.c.created)
    .join_from(REFERRAL, AFFILIATE, AFFILIATE.c.organisation == REFERRAL.c.affiliate)
    .where(REFERRAL.c.organisation == sa.bindparam("organisation")),
)

COUNT_REFERRALS = Query(
    ReferralCount, sa.select(sa.func.count().label("many")).select_from(REFERRAL).where(REFERRAL.c.affiliate == sa.bindparam("affiliate"))
)

FIND_CREATED = Query(CreatedMoment, sa.select(ORGANISATION.c.created).where(ORGANISATION.c.id == sa.bindparam("organisation")))

COLLEAGUES = sa.select(MEMBERSHIP.c.person_id).where(MEMBERSHIP.c.organisation_id == sa.bindparam("organisation"))

FIND_SHARED_MEMBER = Query(
    SharedMember,
    sa.select(MEMBERSHIP.c.organisation_id)
    .where(
        MEMBERSHIP.c.organisation_id == sa.bindparam("affiliate"),
        (MEMBERSHIP.c.person_id == sa.bindparam("person")) | MEMBERSHIP.c.person_id.in_(COLLEAGUES),
    )
    .limit(1),
)


def insert_affiliate(connection: Connection, *, organisation: str, code: str, now: float) -> bool:
    """Take the organisation in with this code. False: it is in already, or the code is somebody else's."""
    return connection.run(JOIN_AFFILIATES, organisation=organisation, code=code, created=now) == 1


def affiliate_of(connection: Connection, *, organisation: str) -> Affiliate | None:
    """The organisation as an affiliate, if it joined."""
    return connection.first(FIND_AFFILIATE, organisation=organisation)


def affiliate_with(connection: Connection, *, code: str) -> Affiliate | None:
    """Whose code this is; codes are upper case."""
    return connection.first(FIND_AFFILIATE_BY_CODE, code=code)


def insert_referral(connection: Connection, *, organisation: str, affiliate: str, now: float) -> bool:
    """Keep who brought the organisation. False: somebody did before."""
    return connection.run(INSERT_REFERRAL, organisation=organisation, affiliate=affiliate, created=now) == 1


def referral_of(connection: Connection, *, organisation: str) -> Referral | None:
    """Who brought the organisation, if anybody did."""
    return connection.first(FIND_REFERRAL, organisation=organisation)


def count_referrals(connection: Connection, *, affiliate: str) -> int:
    """How many organisations it brought."""
    found = connection.first(COUNT_REFERRALS, affiliate=affiliate)
    return 0 if found is None else found.many


def organisation_created(connection: Connection, *, organisation: str) -> int | None:
    """When the organisation was made."""
    found = connection.first(FIND_CREATED, organisation=organisation)
    return None if found is None else found.created


def shares_people(connection: Connection, *, affiliate: str, organisation: str, person: str) -> bool:
    """Whether this person, or any member of the organisation, is a member of the affiliate."""
    return connection.first(FIND_SHARED_MEMBER, affiliate=affiliate, organisation=organisation, person=person) is not None
