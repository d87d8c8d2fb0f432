"""Calls that wait until a person approves them."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
expands = True

REAL: sa.Double[float] = sa.Double()
OPEN_STATES = sa.text("state IN ('waiting', 'approved')")


def upgrade() -> None:
    op.create_table(
        "approval",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("credential", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created", REAL, nullable=False),
        sa.Column("expires_at", REAL, nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("decided_at", REAL, nullable=True),
        sa.Column("replica", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    of_key = ["organisation", "operation", "idempotency_key"]
    op.create_index("approval_open", "approval", of_key, unique=True, sqlite_where=OPEN_STATES, postgresql_where=OPEN_STATES)
    op.create_index("approval_key", "approval", [*of_key, "id"])
    op.create_index("approval_organisation", "approval", ["organisation", "id"])
    op.create_index("approval_state", "approval", ["state", "credential"])
    op.create_index("approval_created", "approval", ["created"])


def downgrade() -> None:
    if op.get_bind().scalar(sa.text("SELECT EXISTS (SELECT 1 FROM approval WHERE state IN ('waiting', 'approved'))")):
        raise RuntimeError("calls wait for an approval or are being executed; let them end, or decline them, before the downgrade")
    op.drop_table("approval")
