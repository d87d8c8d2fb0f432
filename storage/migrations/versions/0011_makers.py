"""What a schedule was made with, and where a program registered from.

Schedules that are there keep none: nothing says which key or login made them, so they go on for the person who did.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("intelligence_schedule", sa.Column("made_with", sa.Text(), nullable=True))
    op.add_column("oauth_client", sa.Column("network", sa.Text(), nullable=True))
    op.add_column("oauth_client", sa.Column("address", sa.Text(), nullable=True))
    op.create_index("ix_oauth_client_network", "oauth_client", ["network"])


def downgrade() -> None:
    op.drop_index("ix_oauth_client_network", "oauth_client")
    op.drop_column("oauth_client", "address")
    op.drop_column("oauth_client", "network")
    op.drop_column("intelligence_schedule", "made_with")
