"""Tables of scheduled reports. Part of the schema, as those of schema.py."""

import sqlalchemy as sa
from sqlmodel import Field

from storage.named import Named


class IntelligenceScheduleTable(Named, table=True):
    """A composite that is run by cron. `input` is JSON text, `share_digest` the SHA-256 of the share link's token.

    `endpoint` is the webhook endpoint that reports are delivered to: a row of that table that names this schedule and no list shows.
    `next_ms` is the next boundary; `created_by` the principal who made it, `made_with` the key or grant that they showed: its runs count
    for that one, and rest when it has ended. None: made without one, or before it was kept; then they count for the person alone.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    composite: str = Field(sa_type=sa.Text)
    input: str = Field(sa_type=sa.Text)
    cron: str = Field(sa_type=sa.Text)
    timezone: str = Field(sa_type=sa.Text)
    endpoint: str | None = Field(default=None, sa_type=sa.Text)
    share_digest: bytes | None = Field(default=None, unique=True, sa_type=sa.LargeBinary)
    created_by: str = Field(sa_type=sa.Text)
    made_with: str | None = Field(default=None, sa_type=sa.Text)
    next_ms: int = Field(sa_type=sa.BigInteger)
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (
        sa.Index("intelligence_schedule_organisation", "organisation", "id"),
        sa.Index("intelligence_schedule_due", "next_ms"),
    )


class IntelligenceReportTable(Named, table=True):
    """One run of a schedule. `fire_ms` is its boundary, null when somebody asked for it; one row per boundary, whatever the replicas.

    `state`: waiting, running, done or failed. `body` is the finding and its sheet as JSON text, `error` a sentence of ours.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    schedule: str = Field(sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    fire_ms: int | None = Field(default=None, sa_type=sa.BigInteger)
    state: str = Field(sa_type=sa.Text)
    body: str | None = Field(default=None, sa_type=sa.Text)
    error: str | None = Field(default=None, sa_type=sa.Text)
    lease: str | None = Field(default=None, sa_type=sa.Text)
    due_ms: int | None = Field(default=None, sa_type=sa.BigInteger)
    tries: int = 0
    created: float = Field(sa_type=sa.Double)
    finished: float | None = Field(default=None, sa_type=sa.Double)
    __table_args__ = (
        sa.UniqueConstraint("schedule", "fire_ms", name="intelligence_report_once"),
        sa.Index("intelligence_report_newest", "schedule", "id"),
        sa.Index("intelligence_report_due", "due_ms"),
    )
