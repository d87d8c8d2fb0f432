"""Share links of scheduled reports, as whoever opens one finds them."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.reports.intelligence_tables import IntelligenceScheduleTable
from storage.reports.schedule_reports import SharedReportRow, newest_shared
from storage.reports.schedule_tiers import WORKS
from storage.schema import OrganisationTable
from storage.statement import Query, table

SCHEDULE, ORGANISATION = table(IntelligenceScheduleTable), table(OrganisationTable)


class ShareLink(NamedTuple):
    """A link that is right, and whose it is."""

    organisation: str
    name: str
    composite: str


class Shared(NamedTuple):
    """What a link leads to; no report before the first is made."""

    link: ShareLink
    report: SharedReportRow | None


LINK = Query(
    ShareLink,
    sa.select(SCHEDULE.c.organisation, ORGANISATION.c.name, SCHEDULE.c.composite)
    .join_from(SCHEDULE, ORGANISATION, ORGANISATION.c.id == SCHEDULE.c.organisation)
    .where(SCHEDULE.c.share_digest == sa.bindparam("digest", type_=sa.LargeBinary), WORKS),
)


def shared_by(connection: Connection, *, digest: bytes, now: float) -> Shared | None:
    """What the link with this digest leads to; None: there is no such link, or not any more."""
    link = connection.first(LINK, digest=digest, moment=now)
    return None if link is None else Shared(link, newest_shared(connection, digest=digest))
