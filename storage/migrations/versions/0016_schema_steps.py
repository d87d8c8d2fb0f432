"""Which programs work on each schema version: those of the release before go on, and may start again, beside an upgrade."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
expands = True


def upgrade() -> None:
    op.create_table(
        "schema_step",
        sa.Column("revision", sa.Text, primary_key=True),
        sa.Column("works_from", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("schema_step")
