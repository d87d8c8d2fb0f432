"""Organisations in the affiliate programme, and whom they brought."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import StatementBuild, TableDescription, changes_one, first_row, insert_once, row_exists, value_or
from storage.organisations import MEMBERSHIP, ORGANISATION


class Affiliate(NamedTuple):
    """An organisation that joined, and the code it brings others with."""

    organisation: Annotated[str, Field(primary_key=True, foreign_key="organisation.id")]
    code: Annotated[str, Field(unique=True)]
    created: float


class AffiliateTable(TableDescription, row=Affiliate, table=True):
    """An organisation in the affiliate programme."""


class ReferralTable(TableDescription, table=True):
    """Who brought an organisation: one affiliate, for ever."""

    organisation: str = Field(primary_key=True, foreign_key="organisation.id")
    affiliate: str = Field(foreign_key="organisation.id", index=True)
    created: float


AFFILIATE = AffiliateTable.table

REFERRAL = ReferralTable.table


class Referral(NamedTuple):
    """Who brought an organisation, with what code, and when."""

    affiliate: str
    code: str
    created: float


AFFILIATE_COLUMNS = [AFFILIATE.c[name] for name in Affiliate._fields]

COLLEAGUES = sa.select(MEMBERSHIP.c.person_id).where(MEMBERSHIP.c.organisation_id == sa.bindparam("organisation"))


@changes_one
def insert_affiliate(*, organisation: str, code: str, now: float) -> StatementBuild:
    """Take `organisation` into the programme with this `code`. False: it is in already, or the code is taken. `now`: Unix seconds."""
    # No conflict is named: the organisation may have joined already, and the code may be somebody else's.
    return insert_once(AFFILIATE, organisation=organisation, code=code, created=now)


@first_row(Affiliate)
def affiliate_of(*, organisation: str) -> sa.Executable:
    return sa.select(*AFFILIATE_COLUMNS).where(AFFILIATE.c.organisation == organisation)


@first_row(Affiliate)
def affiliate_with(*, code: str) -> sa.Executable:
    """The affiliate whose code this is, or None; codes are upper case."""
    return sa.select(*AFFILIATE_COLUMNS).where(AFFILIATE.c.code == code)


@changes_one
def insert_referral(*, organisation: str, affiliate: str, now: float) -> StatementBuild:
    """Record that `affiliate` brought `organisation`. False: somebody is recorded already. `now`: Unix seconds."""
    return insert_once(REFERRAL, key=["organisation"], organisation=organisation, affiliate=affiliate, created=now)


@first_row(Referral)
def referral_of(*, organisation: str) -> sa.Executable:
    """The affiliate that brought `organisation`, with its code; None where nobody did."""
    return (
        sa.select(REFERRAL.c.affiliate, AFFILIATE.c.code, REFERRAL.c.created)
        .join_from(REFERRAL, AFFILIATE, AFFILIATE.c.organisation == REFERRAL.c.affiliate)
        .where(REFERRAL.c.organisation == organisation)
    )


@value_or(0)
def count_referrals(*, affiliate: str) -> sa.Executable:
    """How many organisations `affiliate` brought."""
    return sa.select(sa.func.count().label("many")).select_from(REFERRAL).where(REFERRAL.c.affiliate == affiliate)


@first_row(int)
def organisation_created(*, organisation: str) -> sa.Executable:
    """When `organisation` was created, Unix seconds; None where there is none such."""
    return sa.select(ORGANISATION.c.created).where(ORGANISATION.c.id == organisation)


@row_exists
def shares_people(*, affiliate: str, organisation: str, person: str) -> sa.Executable:
    """Whether `person`, or any member of `organisation`, is a member of `affiliate`."""
    return (
        sa.select(MEMBERSHIP.c.organisation_id)
        .where(
            MEMBERSHIP.c.organisation_id == affiliate,
            (MEMBERSHIP.c.person_id == person) | MEMBERSHIP.c.person_id.in_(COLLEAGUES),
        )
        .limit(1)
    )
