"""Audit rows of reads and refusals in a narrow table: texts that repeat stand once in a table of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
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
    op.create_index("audit_read_operation", "audit_read", ["organisation", "operation", "id"])


def downgrade() -> None:
    op.drop_index("audit_read_operation", "audit_read")
    op.drop_table("audit_read")
    op.drop_index("audit_name_text", "audit_name")
    op.drop_table("audit_name")
