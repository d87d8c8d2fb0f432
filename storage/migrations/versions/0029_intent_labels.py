"""Intents are found by a value of their metadata: each entry is a row. Those of intents from before follow with the next version."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
expands = True

LABEL = ("organisation", "value", "intent", "key")


def upgrade() -> None:
    op.create_table("intent_label", *(sa.Column(name, sa.Text(), primary_key=True) for name in LABEL), sqlite_with_rowid=False)


def downgrade() -> None:
    op.drop_table("intent_label")
