"""Invoices of some of a month's SIMs: what such an invoice bills is on no other one."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("invoice", sa.Column("selected", sa.Integer, nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("invoice", "selected")
