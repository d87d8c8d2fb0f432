"""Scheduled reports, and the webhook endpoints that belong to one."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

REAL: sa.Double[float] = sa.Double()


def upgrade() -> None:
    create_schedule()
    create_report()
    op.add_column("webhook_endpoint", sa.Column("schedule", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("webhook_endpoint", "schedule")
    op.drop_table("intelligence_report")
    op.drop_table("intelligence_schedule")


def create_schedule() -> None:
    op.create_table(
        "intelligence_schedule",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("composite", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=False),
        sa.Column("cron", sa.Text(), nullable=False),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=True),
        sa.Column("share_digest", sa.LargeBinary(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("next_ms", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("share_digest"),
    )
    op.create_index("intelligence_schedule_organisation", "intelligence_schedule", ["organisation", "id"])
    op.create_index("intelligence_schedule_due", "intelligence_schedule", ["next_ms"])


def create_report() -> None:
    op.create_table(
        "intelligence_report",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("fire_ms", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("lease", sa.Text(), nullable=True),
        sa.Column("due_ms", sa.BigInteger(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("created", REAL, nullable=False),
        sa.Column("finished", REAL, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("schedule", "fire_ms", name="intelligence_report_once"),
    )
    op.create_index("intelligence_report_newest", "intelligence_report", ["schedule", "id"])
    op.create_index("intelligence_report_due", "intelligence_report", ["due_ms"])
