"""The encryption keys that a running process knows; and which organisations may have webhooks in the operator's own network."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("replica", sa.Column("key_ids", sa.Text, nullable=False, server_default=""))
    op.add_column("organisation", sa.Column("private_receivers", sa.Integer, nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("organisation", "private_receivers")
    op.drop_column("replica", "key_ids")
