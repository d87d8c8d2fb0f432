"""Which organisations' schedules work."""

import sqlalchemy as sa

from registry.limits import Role, Scope, Tier, scopes_of
from storage.schema import OrganisationTable
from storage.statement import table

ORGANISATION = table(OrganisationTable)
WRITING = [tier.value for tier in Tier if Scope.WRITE in scopes_of(tier, Role.MEMBER)]


def works(organisation: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Whether the organisation's tier carries the scope that schedules are made with.

    Choice: without it nobody there could delete one, so none runs and no link leads anywhere, until the tier carries it again.
    """
    return sa.exists().where(ORGANISATION.c.id == organisation, ORGANISATION.c.tier.in_(WRITING)).correlate_except(ORGANISATION)
