"""What is kept for ever of a call record that was removed, and how far the search for old ones came."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
expands = True


def upgrade() -> None:
    op.create_table(
        "call_record_digest",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "call_record_pass",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("begun", sa.BigInteger(), nullable=False),
        sa.Column("running", sa.Integer(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def downgrade() -> None:
    if op.get_bind().scalar(sa.text("SELECT EXISTS (SELECT 1 FROM call_record_digest)")):
        raise RuntimeError("the database holds ids of call records that were removed; without this schema they would be counted again")
    op.drop_table("call_record_pass")
    op.drop_table("call_record_digest")
