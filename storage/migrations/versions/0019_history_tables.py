"""What is kept for ever of an idempotency key and of an event that were removed; audit rows of reads in a narrow table; and which schema a
running process was written for."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
expands = True


def upgrade() -> None:
    op.create_table(
        "expired_key",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=True),
        sa.Column("claimed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "event_digest",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "audit_name",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("audit_name_text", "audit_name", ["text"], unique=True)
    op.create_table(
        "audit_read",
        sa.Column("id", sa.BigInteger(), nullable=False),
        *(
            sa.Column(name, sa.Integer(), nullable=False)
            for name in ("organisation", "operation", "principal", "key", "outcome", "surface")
        ),
        sa.Column("microseconds", sa.Integer(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("organisation", "id"),
        sqlite_with_rowid=False,
    )
    op.add_column("replica", sa.Column("revision", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    if op.get_bind().scalar(sa.text("SELECT EXISTS (SELECT 1 FROM expired_key)")):
        raise RuntimeError("the database holds keys whose answers were removed; without this schema they would be free, and draw again")
    op.drop_column("replica", "revision")
    op.drop_table("audit_read")
    op.drop_index("audit_name_text", "audit_name")
    op.drop_table("audit_name")
    op.drop_table("event_digest")
    op.drop_table("expired_key")
