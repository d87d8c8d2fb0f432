"""Invoices of some of a month's SIMs; how much is sent to one host, and which endpoints have shown that they want it."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("invoice", sa.Column("selected", sa.Integer, nullable=False, server_default="0"))
    op.add_column("webhook_endpoint", sa.Column("proven", sa.Integer, nullable=False, server_default="0"))
    op.execute("UPDATE webhook_endpoint SET proven = 1 WHERE failing_since IS NULL")
    op.create_table(
        "webhook_receiver",
        sa.Column("host", sa.Text, primary_key=True),
        sa.Column("strict", sa.Integer, nullable=False),
        sa.Column("open", sa.Integer, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("credit", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("webhook_receiver")
    op.drop_column("webhook_endpoint", "proven")
    op.drop_column("invoice", "selected")
