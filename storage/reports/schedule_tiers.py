"""Which schedules work: those whose organisation may have them, and whose maker may still act for it."""

import sqlalchemy as sa

from registry.limits import Role, Scope, Tier, scopes_of
from storage.reports.intelligence_tables import IntelligenceScheduleTable
from storage.schema import AccessGrantTable, ApiKeyTable, MembershipTable, OrganisationTable
from storage.statement import table

ORGANISATION, MEMBERSHIP = table(OrganisationTable), table(MembershipTable)
KEY, GRANT, SCHEDULE = table(ApiKeyTable), table(AccessGrantTable), table(IntelligenceScheduleTable)
WRITING = [tier.value for tier in Tier if Scope.WRITE in scopes_of(tier, Role.MEMBER)]
MOMENT = sa.bindparam("moment", type_=sa.Double)
# Choice: without the scope that schedules are made with nobody in the organisation could delete one, so none runs and no link leads
# anywhere, until the tier carries it again.
TIER_CARRIES = sa.exists().where(ORGANISATION.c.id == SCHEDULE.c.organisation, ORGANISATION.c.tier.in_(WRITING)).correlate(SCHEDULE)
IS_MEMBER = (
    sa.exists()
    .where(MEMBERSHIP.c.person_id == SCHEDULE.c.created_by, MEMBERSHIP.c.organisation_id == SCHEDULE.c.organisation)
    .correlate(SCHEDULE)
)
KEY_LIVES = (
    sa.exists()
    .where(KEY.c.id == SCHEDULE.c.made_with, KEY.c.revoked_at.is_(None), KEY.c.expires_at.is_(None) | (KEY.c.expires_at > MOMENT))
    .correlate(SCHEDULE)
)
GRANT_LIVES = (
    sa.exists().where(GRANT.c.id == SCHEDULE.c.made_with, GRANT.c.revoked_at.is_(None), GRANT.c.expires_at > MOMENT).correlate(SCHEDULE)
)
# Choice: what a schedule was made with ends it in any way that it ends itself, as it ends the keys that were made with it: a program that
# lost its access keeps nothing.
WORKS = TIER_CARRIES & IS_MEMBER & (SCHEDULE.c.made_with.is_(None) | KEY_LIVES | GRANT_LIVES)
"""Whether a schedule works at `moment`, Unix seconds; a condition on its row."""
