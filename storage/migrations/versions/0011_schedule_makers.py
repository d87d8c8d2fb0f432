"""What a schedule was made with, and where a program registered from.

Schedules that are there keep none: nothing says which key or login made them, so they go on for the person who did.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("intelligence_schedule", sa.Column("made_with", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("intelligence_schedule", "made_with")
