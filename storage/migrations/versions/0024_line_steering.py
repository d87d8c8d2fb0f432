"""What an organisation did to the steering of its lines."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
expands = True

REAL: sa.Double[float] = sa.Double()


def upgrade() -> None:
    op.create_table(
        "line_steering",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=False),
        sa.Column("list_id", sa.BigInteger(), nullable=True),
        sa.Column("assigned", REAL, nullable=True),
        sa.Column("pushed", REAL, nullable=True),
        sa.Column("changed", REAL, nullable=False),
        sa.PrimaryKeyConstraint("organisation", "iccid"),
    )
    op.create_index("ix_line_steering_changed", "line_steering", ["changed"])
    op.create_index("line_steering_latest", "line_steering", ["organisation", "changed"])


def downgrade() -> None:
    op.drop_table("line_steering")
