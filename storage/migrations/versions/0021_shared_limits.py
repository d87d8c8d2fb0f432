"""What processes count together: buckets of calls, and places for calls under way at once."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
expands = True

REAL: sa.Double[float] = sa.Double()


def upgrade() -> None:
    op.create_table(
        "limit_process",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("lease_end", REAL, nullable=False),
        sa.Column("alone", sa.Integer, nullable=False),
    )
    op.create_table(
        "limit_bucket",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("tokens", REAL, nullable=False),
        sa.Column("at", REAL, nullable=False),
        sa.Column("full_at", REAL, nullable=False),
    )
    op.create_table(
        "limit_place",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("process", sa.Text, primary_key=True),
        sa.Column("held", sa.Integer, nullable=False),
        sa.Column("wanted", sa.Integer, nullable=False),
        sa.Column("since", REAL, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("limit_place")
    op.drop_table("limit_bucket")
    op.drop_table("limit_process")
