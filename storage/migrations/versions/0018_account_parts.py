"""The parts that accounts with many lines are read by."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
expands = True

REAL: sa.Double[float] = sa.Double()


def upgrade() -> None:
    op.create_table(
        "account_listing",
        sa.Column("organisation", sa.Text(), primary_key=True),
        sa.Column("credential", sa.Text(), primary_key=True),
        sa.Column("account_id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("complete", sa.Integer(), nullable=False),
        sa.Column("read", REAL, nullable=False),
        sa.Column("checked", REAL, nullable=False),
    )
    op.create_index("ix_account_listing_checked", "account_listing", ["checked"])
    op.create_table(
        "account_part",
        sa.Column("organisation", sa.Text(), primary_key=True),
        sa.Column("credential", sa.Text(), primary_key=True),
        sa.Column("account_id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("prefix", sa.Text(), primary_key=True),
        sa.Column("lowest", sa.BigInteger(), nullable=False),
        sa.Column("highest", sa.BigInteger(), nullable=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("read", REAL, nullable=False),
        sa.Column("changed", REAL, nullable=False),
        sa.Column("members", sa.Text(), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("account_part")
    op.drop_table("account_listing")
